"""A policy of real architecture that trains on a processor: a Qwen2 of two layers, and how it is taught.

An example is a prompt and its reply, both as tokens; the policy learns from the reply alone.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

_UNSCORED: Final = -100


class Example(NamedTuple):
    """The tokens of a prompt and of the reply to it, its end included."""

    prompt: list[int]
    reply: list[int]


def tiny_qwen2(tokenizer: Any, *, seed: int = 0, hidden: int = 32, inner: int = 64, spread: float = 0.2) -> Any:
    """Return an untaught model of two layers.

    Args:
        tokenizer: Whose vocabulary it has.
        seed: Of its weights; torch's global stream continues from there.
        hidden: Its width; four heads share it.
        inner: The width between the two maps of a layer.
        spread: The standard deviation of the first weights: wide enough for LoRA to learn with frozen embeddings.
    """
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=spread,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return Qwen2ForCausalLM(config)


def example(tokenizer: Any, messages: Sequence[dict[str, str]], reply: str) -> Example:
    """Return an exchange as tokens, the prompt as it is rendered for a reply."""
    asked = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    return Example(tokenizer(asked).input_ids, tokenizer(reply + tokenizer.eos_token).input_ids)


def learn(model: Any, batch: Sequence[Example], pad: int) -> float:
    """Add the gradient of a batch of examples, and return its loss."""
    import torch

    longest = max(len(pair.prompt) + len(pair.reply) for pair in batch)
    spare = [longest - len(pair.prompt) - len(pair.reply) for pair in batch]
    rows = list(zip(batch, spare, strict=True))
    ids = torch.tensor([pair.prompt + pair.reply + [pad] * left for pair, left in rows])
    scored = torch.tensor([[_UNSCORED] * len(pair.prompt) + pair.reply + [_UNSCORED] * left for pair, left in rows])
    loss = model(input_ids=ids, labels=scored).loss
    loss.backward()
    return float(loss.item())
