"""A policy saved in a folder, as a training run leaves it there: the model, its tokenizer, or an adapter alone."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers.utils import logging

from benchmarks.experiments.partition.tokenizer import byte_tokenizer
from tests.tiny_policy import tiny_policy, warm
from tests.training.training_on import REPLIES

_FOLDER = TemporaryDirectory(prefix="eldgr-policies-")


@cache
def saved_policy() -> Path:
    """The folder of a whole model that has seen the replies for a moment, with a tokenizer that loads as it was."""
    _quiet()
    folder = Path(_FOLDER.name) / "whole"
    exchanges = [(question, reply) for question, replies in REPLIES.items() for reply in replies]
    tokenizer = byte_tokenizer([text for exchange in exchanges for text in exchange])
    model = warm(tiny_policy(tokenizer), tokenizer, exchanges)
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
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    get_peft_model(base, config).save_pretrained(str(folder))
    return folder


def _quiet() -> None:
    bars: Any = logging
    bars.disable_progress_bar()
