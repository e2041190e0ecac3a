"""A policy of real architecture to be trained on a CPU in seconds: a Qwen2 of two layers, its own tokenizer with it.

The tokenizer knows the words of some texts, each with the space before it, and has a chat template. `warmed` teaches
the model those texts for a moment, so that what it samples resembles them, and is wrong about as often as right.
"""

import re
from collections.abc import Sequence
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

_PAD, _START, _END, _UNKNOWN = "<|pad|>", "<|im_start|>", "<|im_end|>", "<|unk|>"
_TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_PIECE = r" ?\w+| ?[^\w\s]|\s"
_UNSCORED = -100


def tiny_tokenizer(texts: Sequence[str]) -> Any:
    """A tokenizer of the words and marks of the texts, spaces included; any other is unknown."""
    pieces = [piece for text in [*texts, "user\nassistant\nsystem\n"] for piece in re.findall(_PIECE, text)]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys([_PAD, _START, _END, _UNKNOWN, *pieces]))}
    words = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token=_UNKNOWN))
    split: Any = pre_tokenizers.Split(Regex(_PIECE), behavior="isolated")
    words.pre_tokenizer, words.decoder = split, decoders.Fuse()
    fast: Any = PreTrainedTokenizerFast
    tokenizer = fast(
        tokenizer_object=words,
        pad_token=_PAD,
        eos_token=_END,
        unk_token=_UNKNOWN,
        additional_special_tokens=[_START],
        padding_side="left",
    )
    tokenizer.chat_template = _TEMPLATE
    return tokenizer


def tiny_policy(tokenizer: Any, *, seed: int = 0, hidden: int = 32) -> Any:
    """An untrained model; its weights are spread wide enough for LoRA to learn beside frozen embeddings."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.2,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return Qwen2ForCausalLM(config)


def warmed(model: Any, tokenizer: Any, exchanges: Sequence[tuple[str, str]], steps: int = 60) -> Any:
    """Teach the model to answer questions in one of the ways shown, and return it."""
    rows = [_row(tokenizer, question, reply) for question, reply in exchanges]
    longest = max(len(tokens) for tokens, _ in rows)
    padded = [
        (tokens + [tokenizer.pad_token_id] * (longest - len(tokens)), asked, len(tokens)) for tokens, asked in rows
    ]
    ids = torch.tensor([tokens for tokens, _, _ in padded])
    scored = torch.tensor([[asked <= at < end for at in range(longest)] for _, asked, end in padded])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        model(input_ids=ids, labels=ids.masked_fill(~scored, _UNSCORED)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


def _row(tokenizer: Any, question: str, reply: str) -> tuple[list[int], int]:
    """The tokens of an exchange, and how many of them are the question."""
    messages = [{"role": "user", "content": question}]
    asked = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    prompt = tokenizer(asked).input_ids
    return [*prompt, *tokenizer(reply + _END).input_ids], len(prompt)
