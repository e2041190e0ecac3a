"""The optional columns of a candidate: what a pool may state of it besides text, answer and source.

They are `confidence`, `logprobs`, `scores` and `tags`. What cannot be used is refused with a sentence; what is missing
stays missing, and a selector that needs it abstains.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from eldgr_dspy.ballots import MOST_NUMBERS, MOST_SCORES, NOTHING, Logprobs, Stated

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_SUMMARIES = ("mean", "min", "probability", "reasoning", "answer")
_NUMBER = {"type": "number"}


def _confidence(value: Any) -> float:
    if not _is_number(value) or not 0 <= value <= 1:
        raise ValueError(
            f"must be a number from 0 to 1; got {value!r:.80}: divide a percentage by 100, or leave it out"
        )
    return float(value)


def _logprob(value: Any) -> float:
    if not _is_number(value) or not value <= 0:
        raise ValueError(f"must be a finite number of at most 0, a natural logarithm; got {value!r:.80}: leave it out")
    return float(value)


def _probability(value: Any) -> float:
    if not _is_number(value) or not 0 <= value <= 1:
        raise ValueError(f"must be a number from 0 to 1; got {value!r:.80}: leave it out")
    return float(value)


def _scores(scores: Any) -> dict[str, Any]:
    if not isinstance(scores, Mapping):
        raise ValueError(f'must be an object, such as {{"prm": 0.9}}; got {scores!r:.80}')
    if len(scores) > MOST_SCORES:
        raise ValueError(f"has {len(scores):,} scores, and at most {MOST_SCORES} are read: leave some out")
    for name, score in scores.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"must have names of letters, digits, '_', '-' and '.'; got {name!r:.80}: rename it")
        steps = score if isinstance(score, list | tuple) else [score]
        if not steps or len(steps) > MOST_NUMBERS or not all(map(_is_number, steps)):
            raise ValueError(
                f"must have finite numbers, or for each step one; got {score!r:.80} for {name!r}: leave it out"
            )
    return {name: [*map(float, s)] if isinstance(s, list | tuple) else float(s) for name, s in scores.items()}


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number with more digits than a float holds
        return False


def _tags(tags: Any) -> list[str]:
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) and tag.strip() for tag in tags):
        raise ValueError(f'must be a list of texts, such as ["cot"]; got {tags!r:.80}')
    return [*tags]


_Logprob = Annotated[float, BeforeValidator(_logprob), WithJsonSchema({"type": "number", "maximum": 0})]
_Unit = {"type": "number", "minimum": 0, "maximum": 1}
Confidence = Annotated[float, BeforeValidator(_confidence), WithJsonSchema(_Unit)]
Scores = Annotated[
    dict[str, Any],
    BeforeValidator(_scores),
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER}]}}
    ),
]
Tags = Annotated[list[str], BeforeValidator(_tags)]


class LogprobsRow(BaseModel):
    """Log-probabilities (natural logarithms) of a candidate's tokens: all of them, or summaries."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    tokens: list[_Logprob] = Field(default_factory=list, max_length=MOST_NUMBERS, description="In order.")
    answer_tokens: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="How many tokens at the end are the answer."
    )
    mean: _Logprob | None = Field(default=None, description="Mean over the tokens.")
    min: _Logprob | None = Field(default=None, description="The lowest.")
    probability: Annotated[float, BeforeValidator(_probability), WithJsonSchema(_Unit)] | None = Field(
        default=None, description="Mean of the tokens' probabilities."
    )
    reasoning: _Logprob | None = Field(default=None, description="Mean over the tokens before the answer.")
    answer: _Logprob | None = Field(default=None, description="Sum over the tokens of the answer.")

    @model_validator(mode="after")
    def _one_of_both(self) -> "LogprobsRow":
        summaries = [
            name for name in ("mean", "min", "probability", "reasoning", "answer") if getattr(self, name) is not None
        ]
        if self.tokens and summaries:
            raise ValueError(f"must have tokens or summaries; got tokens and {summaries[0]}: leave one out")
        if self.answer_tokens and not self.tokens:
            raise ValueError("must have tokens if it has answer_tokens: leave it out")
        if self.answer_tokens and self.answer_tokens > len(self.tokens):
            raise ValueError(f"must have at most {len(self.tokens)} answer_tokens; got {self.answer_tokens}")
        return self

    @model_serializer(mode="wrap")
    def _without_absent(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if value not in (None, [])}

    def summary(self) -> Logprobs:
        """Return the summaries."""
        if self.tokens:
            return Logprobs.of_tokens(self.tokens, self.answer_tokens)
        return Logprobs(self.mean, self.min, self.probability, self.reasoning, self.answer)


def _no_blank(logprobs: LogprobsRow | None) -> LogprobsRow | None:
    return logprobs if logprobs is not None and logprobs.model_dump() else None


class Columns(BaseModel):
    """What may be stated of a candidate; see `eldgr_dspy.ballots.Stated`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    confidence: Confidence | None = Field(default=None, description="How probable its model says its answer is.")
    logprobs: Annotated[LogprobsRow | None, AfterValidator(_no_blank)] = Field(
        default=None, description="Log-probabilities of its tokens."
    )
    scores: Scores = Field(default_factory=dict, description="A number by name, or one for each step of its reasoning.")
    tags: Tags = Field(default_factory=list, description="What made it: the parts of its pipeline.")

    def stated(self, source: str | None = None) -> Stated:
        """Return the columns as selectors read them, with where the candidate came from."""
        if (source, self.confidence, self.logprobs) == (None, None, None) and not self.scores and not self.tags:
            return NOTHING
        logprobs = None if self.logprobs is None else self.logprobs.summary()
        return Stated(self.confidence, logprobs, self.scores, tuple(self.tags), source)


def any_stated(stated: Iterable[Stated]) -> tuple[Stated, ...]:
    """Return what is stated of each candidate; empty if nothing is stated of any."""
    known = tuple(stated)
    return () if all(one is NOTHING for one in known) else known
