"""A policy of real architecture to be trained on a CPU in seconds: a Qwen2 of two layers, its own tokenizer with it.

The tokenizer knows the words of some texts, each with the space before it, and has a chat template. `warm` teaches
the model those texts for a moment, so that what it samples resembles them, and is wrong about as often as right.
"""

import re
from collections.abc import Sequence
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from benchmarks.experiments.partition.tokenizer import END, PAD, START, TEMPLATE

_UNK = "<|unk|>"
_PIECE = r" ?\w+| ?[^\w\s]|\s"


def tiny_tokenizer(texts: Sequence[str]) -> Any:
    """A tokenizer of the words and marks of the texts, spaces included; any other is unknown."""
    pieces = [piece for text in [*texts, "user\nassistant\nsystem\n"] for piece in re.findall(_PIECE, text)]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys([PAD, START, END, _UNK, *pieces]))}
    words = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token=_UNK))
    split: Any = pre_tokenizers.Split(Regex(_PIECE), behavior="isolated")
    words.pre_tokenizer, words.decoder = split, decoders.Fuse()
    fast: Any = PreTrainedTokenizerFast
    tokenizer = fast(
        tokenizer_object=words, pad_token=PAD, eos_token=END, unk_token=_UNK, additional_special_tokens=[START],
        padding_side="left",
    )  # fmt: skip
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def tiny_policy(tokenizer: Any, *, seed: int = 0) -> Any:
    """An untrained model; its first weights are wide enough for LoRA to learn beside frozen embeddings."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, initializer_range=0.2, tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id, bos_token_id=None,
    )  # fmt: skip
    return Qwen2ForCausalLM(config)


def warm(model: Any, tokenizer: Any, exchanges: Sequence[tuple[str, str]], steps: int = 60) -> Any:
    """Teach the model to answer questions in one of the ways shown, and return it."""
    batch = _batch(tokenizer, exchanges)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


def _batch(tokenizer: Any, exchanges: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Prompts and replies as tokens, and as labels the replies alone."""
    rows: list[tuple[list[int], list[int]]] = []
    for question, reply in exchanges:
        messages = [{"role": "user", "content": question}]
        prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        rows.append((tokenizer(prompt).input_ids, tokenizer(reply + tokenizer.eos_token).input_ids))
    longest = max(len(prompt) + len(answer) for prompt, answer in rows)

    def pad(ids: list[int], by: int) -> list[int]:
        return ids + [by] * (longest - len(ids))

    ids = torch.tensor([pad(prompt + answer, tokenizer.pad_token_id) for prompt, answer in rows])
    labels = torch.tensor([pad([-100] * len(prompt) + answer, -100) for prompt, answer in rows])
    return {"input_ids": ids, "labels": labels}
