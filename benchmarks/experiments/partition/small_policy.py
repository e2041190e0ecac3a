"""The policy before it is taught: a Qwen2 of any size with random weights, and its examples as tensors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

_IGNORE: Final = -100


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a policy.

    Attributes:
        layers: How many.
        hidden: The width; the inner one is four times as wide.
        heads: Of each layer's attention.
        positions: Tokens of a prompt and its reply at most.
    """

    layers: int
    hidden: int
    heads: int
    positions: int


class Example(NamedTuple):
    """The tokens of a prompt and of the reply to it, its end included."""

    prompt: list[int]
    reply: list[int]


def new_policy(tokenizer: Any, shape: Shape, seed: int) -> Any:
    """Return an untaught model whose weights are drawn from the seed."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=shape.hidden,
        intermediate_size=4 * shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        max_position_embeddings=shape.positions,
        initializer_range=min(0.05, 0.6 / shape.hidden**0.5),
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return Qwen2ForCausalLM(config)


def example(tokenizer: Any, messages: Sequence[dict[str, str]], reply: str) -> Example:
    """Return an exchange as tokens, the prompt as it is rendered for a reply."""
    prompt = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    return Example(tokenizer(prompt).input_ids, tokenizer(reply + tokenizer.eos_token).input_ids)


def loss_of(model: Any, batch: Sequence[Example], pad: int) -> Any:
    """Return the loss of a batch, in which the replies alone are learnt."""
    import torch

    longest = max(len(pair.prompt) + len(pair.reply) for pair in batch)
    rows = [(pair, longest - len(pair.prompt) - len(pair.reply)) for pair in batch]
    ids = torch.tensor([pair.prompt + pair.reply + [pad] * spare for pair, spare in rows])
    mask = torch.tensor([[1] * (longest - spare) + [0] * spare for _, spare in rows])
    targets = [[_IGNORE] * len(pair.prompt) + pair.reply + [_IGNORE] * spare for pair, spare in rows]
    labels = torch.tensor(targets)
    device = model.device
    return model(input_ids=ids.to(device), attention_mask=mask.to(device), labels=labels.to(device)).loss
