"""Completions sampled in batches, each from its own random stream.

A trainer's sampler takes all its numbers from one stream, so the answer to a question depends on the questions before
it. Here each completion has its own numbers, one a token: the token at which the sum of the probabilities, in the order
of the vocabulary, first exceeds the number. So neither order nor batch changes what is drawn, except by rounding:
sequences that are read together are padded, which changes the last digits of logits, and a number that falls just there
takes another token. With a batch of one there is no such effect.

The global random streams are neither read nor changed.
"""

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.confidence import TokenConfidence, token_confidence


@dataclass(frozen=True, slots=True)
class Sampling:
    """How completions are sampled.

    Attributes:
        seed: The source of the random numbers, with the question's id, the checkpoint's name and the number of the
            sample.
        samples: How many completions each checkpoint writes for a question.
        temperature: The divisor of the logits; the paper's is 0.7.
        top_p: The smallest set of tokens whose probabilities add up to it is sampled from; the paper's is 0.9.
        max_new_tokens: Where a completion is cut off; the paper's is 128.

    Raises:
        ArgumentError: A value is outside its range.
    """

    seed: int
    samples: int = 1
    temperature: float = 0.7
    top_p: float = 0.9
    max_new_tokens: int = 128

    def __post_init__(self) -> None:
        _require("seed", self.seed, type(self.seed) is int, "a whole number")
        for name, count in (("samples", self.samples), ("max_new_tokens", self.max_new_tokens)):
            _require(name, count, type(count) is int and count >= 1, "a whole number, at least 1")
        for name, value, most in (("temperature", self.temperature, sys.float_info.max), ("top_p", self.top_p, 1)):
            holds = type(value) in (int, float) and 0 < value <= most
            _require(name, value, holds, f"a number greater than 0{' and at most 1' if most == 1 else ''}")


@dataclass(frozen=True, slots=True)
class Completion:
    """The result of sampling.

    Attributes:
        tokens: The text with its tokens, and log p of each under the model itself, at temperature 1 and over the whole
            vocabulary, whatever the sampling settings.
        ended: Whether the model ended it; otherwise it was cut off.
    """

    tokens: TokenConfidence
    ended: bool


def numbers(n: int, *parts: object) -> list[float]:
    """Return n random numbers in [0, 1) of the stream with that name; the same on every machine."""
    stream = random.Random("\x00".join(map(str, parts)))  # a text seeds it by its SHA-512, in every release of Python
    return [stream.random() for _ in range(n)]


def complete(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    randoms: Sequence[Sequence[float]],
    *,
    temperature: float,
    top_p: float,
) -> list[Completion]:
    """Return a completion of each prompt, all sampled in one batch; each has a random number for each token.

    The model is one of transformers in evaluation mode, adapters included. Its `generation_config` says what ends a
    completion and nothing else; see `eldgr_dspy.training.checkpoints`.
    """
    import torch

    longest = max(map(len, prompts))
    ids = torch.tensor([[tokenizer.pad_token_id] * (longest - len(prompt)) + list(prompt) for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    draw = _Draw(torch.tensor(randoms, dtype=torch.float64), temperature, top_p)
    output = model.generate(
        input_ids=ids.to(model.device),
        attention_mask=mask.to(model.device),
        logits_processor=[draw],
        do_sample=False,  # the processor leaves one token
        max_new_tokens=len(randoms[0]),
    )
    rows = zip(output[:, longest:].tolist(), zip(*draw.logps, strict=True), strict=True)
    return [_completion(model, tokenizer, tokens, logps) for tokens, logps in rows]


class _Draw:
    """Keeps of each row's logits only the token that its next number selects, and remembers its log p."""

    def __init__(self, randoms: Any, temperature: float, top_p: float) -> None:
        from transformers import TemperatureLogitsWarper, TopPLogitsWarper

        self._randoms, self._at = randoms, 0
        self._warpers: tuple[Any, Any] = (TemperatureLogitsWarper(float(temperature)), TopPLogitsWarper(float(top_p)))
        self.logps: list[list[float]] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        logits = scores.float()
        for warper in self._warpers:
            logits = warper(input_ids, logits)
        sums = logits.double().softmax(dim=-1).cumsum(dim=-1)
        choice = (sums > self._randoms[:, self._at, None].to(sums.device) * sums[:, -1:]).int().argmax(-1, keepdim=True)
        self.logps.append(scores.float().log_softmax(dim=-1).gather(1, choice)[:, 0].tolist())
        self._at += 1
        return scores.new_full(scores.shape, -float("inf")).scatter(1, choice, 0.0)


def _completion(model: Any, tokenizer: Any, tokens: list[int], logps: Sequence[float]) -> Completion:
    """Cut off what generation wrote after the end of a row while others of its batch continued."""
    ends = model.generation_config.eos_token_id
    end = next((at for at, token in enumerate(tokens) if token in ends), None)
    own = tokens[:end]
    return Completion(token_confidence(tokenizer, own, logps[: len(own)]), end is not None)


def _require(name: str, value: object, holds: bool, need: str) -> None:
    if not holds:
        raise ArgumentError(f"{name} must be {need}; got {value!r:.80}.")
