"""A policy saved in a folder, as a training run leaves it there: the model, its tokenizer, or an adapter alone."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Tokenizer
from transformers.utils import logging

from tests.tiny_policy import tiny_policy, tiny_tokenizer, warmed
from tests.training.training_on import REPLIES

_FOLDER = TemporaryDirectory(prefix="eldgr-policies-")


@cache
def saved_policy() -> Path:
    """The folder of a whole model that has seen the replies for a moment, with a tokenizer that loads as it was."""
    _quiet()
    folder = Path(_FOLDER.name) / "whole"
    exchanges = [(question, reply) for question, replies in REPLIES.items() for reply in replies]
    tokenizer = byte_tokenizer([text for exchange in exchanges for text in exchange])
    model = warmed(tiny_policy(tokenizer), tokenizer, exchanges)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@cache
def saved_adapter() -> Path:
    """The folder of an adapter on that model which changes what it says; without a tokenizer."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    folder = Path(_FOLDER.name) / "adapter"
    torch.manual_seed(3)
    causal: Any = AutoModelForCausalLM
    base = causal.from_pretrained(saved_policy())
    drawn = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    get_peft_model(base, drawn).save_pretrained(str(folder))
    return folder


def byte_tokenizer(texts: list[str]) -> Any:
    """A tokenizer of pieces of the texts that spells any other byte by byte.

    It is cut as Qwen2 cuts, since whoever loads a folder with a model of that name takes its tokenizer for one.
    """
    qwen2 = Qwen2Tokenizer().backend_tokenizer
    bpe = Tokenizer(models.BPE())
    bpe.normalizer, bpe.pre_tokenizer, bpe.decoder = qwen2.normalizer, qwen2.pre_tokenizer, qwen2.decoder
    learner = trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=["<|pad|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator([*texts, "user\nassistant\n"] * 2, learner)
    fast: Any = PreTrainedTokenizerFast
    tokenizer = fast(tokenizer_object=bpe, pad_token="<|pad|>", eos_token="<|im_end|>", padding_side="left")
    tokenizer.chat_template = tiny_tokenizer(texts).chat_template
    return tokenizer


def _quiet() -> None:
    bars: Any = logging
    bars.disable_progress_bar()
