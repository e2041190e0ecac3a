"""A language model of real architecture that knows a handful of exchanges by heart, built in seconds on a CPU.

It is a Qwen2 of one layer with a tokenizer made from the very texts. `remembering` trains it until each token of each
reply is all but certain, so that what a server makes of it is known beforehand, whatever the processor. Of anything
else it knows nothing.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch.nn.functional import cross_entropy
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, Qwen2Tokenizer

_END = "<|im_end|>"
_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_STEPS, _GOAL, _END_OF_PROMPT = 400, 0.1, 180


class Exchange(NamedTuple):
    """What the model is asked, as chat messages, and what it shall reply."""

    messages: Sequence[dict[str, str]]
    reply: str


def remembering(exchanges: Sequence[Exchange], folder: Path) -> Path:
    """Train a model on the exchanges, save it with its tokenizer, and return the folder."""
    torch.manual_seed(0)
    tokenizer = _tokenizer([text for exchange in exchanges for text in (*_contents(exchange), exchange.reply)])
    rows = [_row(tokenizer, exchange) for exchange in exchanges]
    longest = max(len(tokens) for tokens, _ in rows)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=2 * longest, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    model = Qwen2ForCausalLM(config)
    _train(model, rows)
    model.generation_config.max_new_tokens = longest
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _contents(exchange: Exchange) -> list[str]:
    return [message["content"] for message in exchange.messages]


def _tokenizer(texts: Sequence[str]) -> Any:
    """A tokenizer of the texts' words, cut as Qwen2 cuts, since whoever loads the folder goes by the model's name."""
    qwen2 = Qwen2Tokenizer().backend_tokenizer
    bpe = Tokenizer(models.BPE())
    bpe.normalizer, bpe.pre_tokenizer, bpe.decoder = qwen2.normalizer, qwen2.pre_tokenizer, qwen2.decoder
    trainer = trainers.BpeTrainer(
        vocab_size=4000,
        special_tokens=["<|pad|>", "<|im_start|>", _END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    fast: Any = PreTrainedTokenizerFast
    tokenizer = fast(tokenizer_object=bpe, pad_token="<|pad|>", eos_token=_END)
    tokenizer.chat_template = _TEMPLATE
    return tokenizer


def _row(tokenizer: Any, exchange: Exchange) -> tuple[list[int], int]:
    """The tokens of an exchange, and how many of them are the question."""
    text = tokenizer.apply_chat_template(list(exchange.messages), tokenize=False, add_generation_prompt=True)
    prompt = tokenizer(text).input_ids
    return [*prompt, *tokenizer(exchange.reply + _END).input_ids], len(prompt)


def _train(model: Any, rows: Sequence[tuple[list[int], int]]) -> None:
    """Train on the ends of the exchanges first, which is most of the work, then on the whole of each.

    Each is trained apart and unpadded, so that generation meets the very sequences of training.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several threads wait for each other where another process has their core
    for width in (_END_OF_PROMPT, max(size for _, size in rows)):
        _fit(model, optimizer, [(tokens[max(0, size - width) :], min(size, width)) for tokens, size in rows])
    torch.set_num_threads(threads)


def _fit(model: Any, optimizer: Any, rows: Sequence[tuple[list[int], int]]) -> None:
    worst = float("inf")
    for _ in range(_STEPS):
        worst = max(_learn(model, tokens, size) for tokens, size in rows)
        optimizer.step()
        optimizer.zero_grad()
        if worst < _GOAL:
            return
    raise AssertionError(
        f"The model has not learnt its {len(rows)} exchanges in {_STEPS} steps; the worst is at {worst}."
    )


def _learn(model: Any, tokens: Sequence[int], size: int) -> float:
    """Add the gradient of a reply, and return the loss of the token that is known least."""
    inputs = torch.tensor([tokens])
    losses = cross_entropy(model(input_ids=inputs).logits[0, size - 1 : -1], inputs[0, size:], reduction="none")
    losses.mean().backward()  # type: ignore[no-untyped-call]
    return float(losses.max().item())
