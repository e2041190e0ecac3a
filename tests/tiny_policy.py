"""A policy of real architecture to be trained on a CPU in seconds: a Qwen2 of two layers, its own tokenizer with it.

The tokenizer knows the words of some texts, each with the space before it, and has a chat template. `warmed` teaches
the model those texts for a moment, so that what it samples resembles them, and is wrong about as often as right.
"""

import re
from collections.abc import Sequence
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from eldgr_dspy.training.miniature.policy import example, learn, tiny_qwen2
from eldgr_dspy.training.miniature.tokenizer import END, PAD, START, TEMPLATE

_UNKNOWN = "<|unk|>"
_PIECE = r" ?\w+| ?[^\w\s]|\s"


def tiny_tokenizer(texts: Sequence[str]) -> Any:
    """A tokenizer of the words and marks of the texts, spaces included; any other is unknown."""
    pieces = [piece for text in [*texts, "user\nassistant\nsystem\n"] for piece in re.findall(_PIECE, text)]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys([PAD, START, END, _UNKNOWN, *pieces]))}
    words = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token=_UNKNOWN))
    split: Any = pre_tokenizers.Split(Regex(_PIECE), behavior="isolated")
    words.pre_tokenizer, words.decoder = split, decoders.Fuse()
    fast: Any = PreTrainedTokenizerFast
    tokenizer = fast(
        tokenizer_object=words,
        pad_token=PAD,
        eos_token=END,
        unk_token=_UNKNOWN,
        additional_special_tokens=[START],
        padding_side="left",
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def tiny_policy(tokenizer: Any, *, seed: int = 0) -> Any:
    """An untrained model."""
    return tiny_qwen2(tokenizer, seed=seed)


def warmed(model: Any, tokenizer: Any, exchanges: Sequence[tuple[str, str]], steps: int = 60) -> Any:
    """Teach the model to answer questions in one of the ways shown, and return it."""
    shown = [example(tokenizer, [{"role": "user", "content": question}], reply) for question, reply in exchanges]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        learn(model, shown, tokenizer.pad_token_id)
        optimizer.step()
        optimizer.zero_grad()
    return model
