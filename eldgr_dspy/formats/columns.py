"""The optional columns of a candidate: what a pool may state of it besides text, answer and source.

They are `confidence`, `logprobs`, `scores` and `tags`. What cannot be used is refused with a sentence. What is missing
stays missing, and a selector that needs it abstains.
"""

import re
import reprlib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from pydantic_core import ErrorDetails

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.ballots import MOST_NUMBERS, MOST_SCORES, NOTHING, Logprobs, Statement

LARGEST = 1e300  # of the numbers in a column, so that no sum of them overflows
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair
_SUMMARIES = ("mean", "min", "probability", "reasoning", "answer")
_STEPS = {"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]}
_NULL = {"type": "null"}


def _number(low: float, high: float, fault: str) -> BeforeValidator:
    """Return what refuses all but numbers from `low` to `high`; the fault has the value in the place of {}."""

    def check(value: Any) -> float:
        if not _is_number(value) or not low <= value <= high:
            raise ValueError(fault.format(quote(value)))
        return float(value)

    return BeforeValidator(check)


def _scores(scores: Any) -> dict[str, Any]:
    if scores is None:
        return {}
    if not isinstance(scores, Mapping):
        raise ValueError(f'must be an object; got {quote(scores)}. Name each score: {{"prm": 0.9}}')
    if len(scores) > MOST_SCORES:
        raise ValueError(f"must have at most {MOST_SCORES} scores; got {len(scores):,}. Leave some out")
    for name, score in scores.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                f"must have names of 1 to 100 letters, digits, '_', '-' and '.'; got {quote(name)}. Rename it"
            )
        steps = score if isinstance(score, list | tuple) else [score]
        if not steps or len(steps) > MOST_NUMBERS or not all(map(_is_number, steps)):
            raise ValueError(
                f"must have under {name!r} a number from -1e300 to 1e300, or a list with one for each step; "
                f"got {quote(score)}. Leave it out"
            )
    return {name: [*map(float, s)] if isinstance(s, list | tuple) else float(s) for name, s in scores.items()}


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and abs(value) <= LARGEST


def _tags(tags: Any) -> list[str]:
    if tags is None:
        return []
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) and tag.strip() for tag in tags):
        raise ValueError(f'must be a list of texts that are not blank; got {quote(tags)}. Write ["cot"]')
    if halves := [tag for tag in tags if _HALF.search(tag)]:
        raise ValueError(f"must be valid Unicode; got {quote(halves[0])}. Fix or drop it")
    return [*tags]


_Logprob = Annotated[
    float,
    _number(-LARGEST, 0, "must be a natural logarithm, a number from -1e300 to 0; got {}. Leave logprobs out"),
    WithJsonSchema({"type": "number", "maximum": 0}),
]
_UNIT = WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})
_Probability = Annotated[float, _number(0, 1, "must be a number from 0 to 1; got {}. Leave it out"), _UNIT]
Confidence = Annotated[
    float, _number(0, 1, "must be a number from 0 to 1; got {}. Divide a percentage by 100, or leave it out"), _UNIT
]
Scores = Annotated[
    dict[str, Any],
    BeforeValidator(_scores),
    WithJsonSchema({"anyOf": [{"type": "object", "additionalProperties": _STEPS}, _NULL]}),
]
Tags = Annotated[
    list[str],
    BeforeValidator(_tags),
    WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "string"}}, _NULL]}),
]


class Part(BaseModel):
    """A part of a pool, which has no other fields, and whose values are not converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class LogprobsRow(Part):
    """Log-probabilities (natural logarithms) of a candidate's tokens: all of them, or summaries."""

    tokens: list[_Logprob] = Field(default_factory=list, max_length=MOST_NUMBERS, description="In order.")
    answer_tokens: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="How many tokens at the end are the answer."
    )
    mean: _Logprob | None = Field(default=None, description="Mean over the tokens.")
    min: _Logprob | None = Field(default=None, description="The lowest.")
    probability: _Probability | None = Field(default=None, description="Mean of the tokens' probabilities.")
    reasoning: _Logprob | None = Field(default=None, description="Mean over the tokens before the answer.")
    answer: _Logprob | None = Field(default=None, description="Sum over the tokens of the answer.")

    @model_validator(mode="after")
    def _one_of_both(self) -> "LogprobsRow":
        if self.tokens and (summaries := [name for name in _SUMMARIES if getattr(self, name) is not None]):
            raise ValueError(f"must have tokens or summaries; got tokens and {summaries[0]}. Leave one out")
        if self.answer_tokens and not self.tokens:
            raise ValueError("must have tokens if it has answer_tokens; got none. Leave answer_tokens out")
        if self.answer_tokens and self.answer_tokens > len(self.tokens):
            raise ValueError(
                f"must have at most as many answer_tokens as tokens, {len(self.tokens):,}; got {self.answer_tokens:,}. "
                "Count only the tokens of the answer"
            )
        return self

    @model_serializer(mode="wrap")
    def _without_absent(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if value not in (None, [])}

    def summary(self) -> Logprobs:
        if self.tokens:
            return Logprobs.of_tokens(self.tokens, self.answer_tokens)
        return Logprobs(self.mean, self.min, self.probability, self.reasoning, self.answer)


class Columns(Part):
    """What may be stated of a candidate. See `eldgr_dspy.rule.ballots.Statement`."""

    confidence: Confidence | None = Field(default=None, description="How probable its model says its answer is.")
    logprobs: Annotated[LogprobsRow | None, AfterValidator(lambda one: one if one and one.model_dump() else None)] = (
        Field(default=None, description="Log-probabilities of its tokens.")
    )
    scores: Scores = Field(default_factory=dict, description="A number by name, or one for each step of its reasoning.")
    tags: Tags = Field(default_factory=list, description="What made it: the parts of its pipeline.")

    def to_statement(self, source: str | None = None) -> Statement:
        """Return the columns as selectors read them, with where the candidate came from."""
        if (source, self.confidence, self.logprobs) == (None, None, None) and not self.scores and not self.tags:
            return NOTHING
        logprobs = None if self.logprobs is None else self.logprobs.summary()
        return Statement(self.confidence, logprobs, self.scores, tuple(self.tags), source)


COLUMNS = tuple(Columns.model_fields)


def read_columns(record: Any, place: str = "{}") -> Columns:
    """Return the columns among the fields of an object or an example. `place` names one in a message, with `{}`."""
    fields = {name: record.get(name) for name in COLUMNS}
    # These may be as OpenAI's chat API returns them, and DSPy with it: `content`, a list of tokens with `logprob`.
    of_chat = fields["logprobs"]
    if isinstance(of_chat, BaseModel):
        of_chat = of_chat.model_dump()
    is_chat = isinstance(of_chat, Mapping) and "content" in of_chat
    try:
        return Columns.model_validate({**fields, "logprobs": _of_chat(of_chat["content"]) if is_chat else of_chat})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name, *within = first["loc"]
        if is_chat and within:
            within = ["content", *within[1:], *["logprob"] * (len(within) > 1)]
        parts = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in within)
        raise ArgumentError(f"{place.format(name)}{parts} {fault_of(first)}.") from None


def _of_chat(content: Any) -> Any:
    if not isinstance(content, list):
        return content if content is None else {"tokens": content}
    return {"tokens": [token.get("logprob") if isinstance(token, Mapping) else token for token in content]}


_DEMANDS = {
    "model_type": 'must be an object; got {}. Write {{"mean": -0.5}}, or leave it out',
    "list_type": "must be a list of numbers; got {}. Leave it out",
    "extra_forbidden": f"is not a field of logprobs, which have tokens and answer_tokens, or {', '.join(_SUMMARIES)}; "
    "got {}. Leave it out",
}
_COUNT = "must be a whole number of at least 1; got {}. Leave it out"


def fault_of(error: ErrorDetails) -> str:
    """Return what is wrong within a column, and what to do: what follows its name in a message."""
    kind, value = error["type"], error["input"]
    if kind == "value_error":
        return error["msg"].removeprefix("Value error, ")
    if kind == "too_long":
        return f"must have at most {MOST_NUMBERS:,} numbers; got {len(value):,}. Leave it out"
    return _DEMANDS.get(kind, _COUNT).format(quote(value))


_SHORT = reprlib.Repr()  # a value may be nested so deeply, or be so large, that `repr` fails
_SHORT.maxstring = _SHORT.maxother = 80


def quote(value: object) -> str:
    """Return any value as a message quotes it: shortened, on one line."""
    try:
        return " ".join(_SHORT.repr(value).splitlines())
    except ValueError:
        return "a number with too many digits to show"


def statements_of(each: Iterable[Statement]) -> tuple[Statement, ...]:
    columns = tuple(each)
    return () if all(one is NOTHING for one in columns) else columns
