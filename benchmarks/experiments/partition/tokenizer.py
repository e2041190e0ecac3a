"""A tokenizer made from some texts on the spot, with a chat template, that loads again as it was saved."""

from collections.abc import Sequence
from typing import Any, Final

PAD: Final = "<|pad|>"
START: Final = "<|im_start|>"
END: Final = "<|im_end|>"

TEMPLATE: Final = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def byte_tokenizer(texts: Sequence[str], size: int = 2000) -> Any:
    """Return a tokenizer of pieces of the texts that spells anything else byte by byte.

    It splits as Qwen2 does, since a loader of a folder with a model of that name assumes its tokenizer. A piece that
    occurs once in the texts is spelled out.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Tokenizer

    qwen2 = Qwen2Tokenizer().backend_tokenizer
    bpe = Tokenizer(models.BPE())
    bpe.normalizer, bpe.pre_tokenizer, bpe.decoder = qwen2.normalizer, qwen2.pre_tokenizer, qwen2.decoder
    learner = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator([*texts, "user\nassistant\n"] * 2, learner)
    fast: Any = PreTrainedTokenizerFast
    tokenizer = fast(tokenizer_object=bpe, pad_token=PAD, eos_token=END, padding_side="left")
    tokenizer.chat_template = TEMPLATE
    return tokenizer
