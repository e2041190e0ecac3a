"""One row of a pool: its fields, its validation, and the sentence that says what is wrong and what to do."""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from eldgr_dspy.answer_types import BUILT_IN, IN_FILES, readable_type
from eldgr_dspy.answer_types.answers import answer_class
from eldgr_dspy.answer_types.base import require_options
from eldgr_dspy.answer_types.comparing import Comparisons
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.formats.columns import COLUMNS, Columns, Part, fault_of, quote, statements_of
from eldgr_dspy.formats.foreign_formats import named_layout
from eldgr_dspy.rule.ballots import Statement
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.text.thinking import find_thinking, may_think
from eldgr_dspy.words import Task

MAX_CANDIDATES = 1_000
MAX_PASSAGES = 10_000
MAX_OPTIONS = 1_000
MAX_CHARACTERS = 500_000  # of a question, candidate or passage
MAX_DEPTH = 32  # of `meta`, far below the depth at which Python's recursion limit matters

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_HALF = "half of a surrogate pair, which is not valid Unicode: fix or drop it"


def _answer(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value  # NaN means no answer


def _type_name(task: str) -> str:
    """Return the one name under which a type is stored, so that its other name makes no other pool."""
    try:
        return readable_type(task).name_in_files
    except ArgumentError:
        raise PydanticCustomError("answer_type", "not the name of an answer type") from None


def _visible(gold: str) -> str:
    """Refuse a blank gold answer: by the official normalisation an article would be right."""
    if not any(map(str.isalnum, gold)) and answer_class(gold, "retrieval") is None:
        raise ValueError(f"is {gold!r:.80}, which is blank: drop it; if no answer is known, gold is an empty list")
    return gold


def _plain(meta: dict[str, Any]) -> dict[str, Any]:
    """Refuse values that JSON cannot express, so that every row can be written as it was read."""
    if meta:
        _refuse_deep(meta, MAX_DEPTH)
        try:
            json.dumps(meta, allow_nan=False, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(f"holds {_HALF}") from None
        except (TypeError, ValueError):
            raise ValueError("holds NaN, an infinity or something else that JSON cannot express: drop it") from None
    return meta


def _refuse_deep(value: Any, levels: int) -> None:
    if levels < 0:
        raise ValueError(f"is nested more than {MAX_DEPTH} deep: flatten or drop it")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        _refuse_deep(inner, levels - 1)


Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]
Answer = Annotated[Text | None, BeforeValidator(_answer)]
Gold = Annotated[Text, AfterValidator(_visible)]
Meta = Annotated[dict[str, Any], AfterValidator(_plain)]


class CandidateRow(Columns):
    """One sampled candidate. `answer` is null if none could be extracted. Such a candidate does not vote.

    Thinking is removed from a stated answer. If the thinking never ends, there is no answer.
    """

    text: Text = Field("", description="The whole sampled text, reasoning included.")
    answer: Answer = Field(None, description="The final answer; null without one.")
    source: Text | None = Field(None, description="Where it came from: a model, a checkpoint, a sample number.")

    @model_validator(mode="before")
    @classmethod
    def _without_thinking(cls, fields: Any) -> Any:
        """Take the thinking out of a stated answer. It stays in the text, which without one is the whole answer."""
        answer = fields.get("answer") if isinstance(fields, dict) else None
        if not isinstance(answer, str) or not may_think(answer):
            return fields
        tags, parts, is_open = find_thinking(answer)
        if not tags:
            return fields
        final = answer[slice(*parts[-1])].strip() if parts and not is_open else None
        return {**fields, "answer": final, "text": fields.get("text") or answer}

    @model_serializer(mode="wrap")
    def _serialize(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out columns that are empty, as files from before them do, and put the others last."""
        fields: dict[str, Any] = write(self)
        columns = {name: value for name in COLUMNS if (value := fields.pop(name)) not in (None, {}, [])}
        return fields | columns


class PassageRow(Part):
    """One retrieved passage."""

    title: Text = Field("", description="The title or source.")
    text: Text = Field(description="The passage as retrieved.")


class Row(Part):
    """One question of a pool."""

    id: Annotated[str, Field(min_length=1, max_length=300)] = Field(description="Unique within the pool.")
    question: Text
    task: Annotated[Task, AfterValidator(_type_name)] = Field(
        description="The answer type. It is declared: the rule never looks at the answers to find out.",
        json_schema_extra={"enum": [*IN_FILES]},
    )
    candidates: list[CandidateRow] = Field(min_length=1, max_length=MAX_CANDIDATES, description="In sampled order.")
    evidence: list[PassageRow] = Field(default_factory=list, max_length=MAX_PASSAGES)
    options: list[Text] = Field(
        default_factory=list,
        max_length=MAX_OPTIONS,
        description="What there is to choose from, for a type that needs it.",
    )
    gold: list[Gold] = Field(default_factory=list, description="Accepted answers; empty where unknown.")
    meta: Meta = Field(default_factory=dict, description="Anything else; kept out of the content hash.")

    @model_validator(mode="after")
    def _readable(self) -> "Row":
        """Refuse options that the type cannot tell apart, or that it does not have."""
        try:
            require_options(readable_type(self.task), self.options)
        except ArgumentError as error:
            raise ValueError(str(error).rstrip(".")) from None
        return self

    def to_question(self, comparisons: Comparisons | None = None) -> Question:
        """Return the row as rules see it, without the gold answers; `comparisons` as in `Question`."""
        return Question(
            text=self.question,
            task=self.task,
            answers=tuple(candidate.answer for candidate in self.candidates),
            texts=tuple(candidate.text or candidate.answer or "" for candidate in self.candidates),
            passages=tuple(Passage(passage.title, passage.text) for passage in self.evidence),
            options=tuple(self.options),
            states=self.to_statements,
            comparisons=comparisons,
        )

    def to_statements(self) -> tuple[Statement, ...]:
        return statements_of(candidate.to_statement(candidate.source) for candidate in self.candidates)

    @property
    def empty_fields(self) -> set[str]:
        """The fields that a file leaves out where they are empty, as files from before them do."""
        return {name for name in ("options", "meta") if not getattr(self, name)}

    def digest(self) -> bytes:
        content = self.model_dump(exclude={"meta"} | self.empty_fields)
        return hashlib.sha256(_ENCODER.encode(content).encode("ascii")).digest()


def schema() -> dict[str, Any]:
    """Return the JSON schema of a row, as published in `artifacts/pool.schema.json`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Row.model_json_schema()}


def validate(record: Any, where: str) -> Row:
    """Return the row in `record`, one parsed JSON object; `where` is its place, for the message."""
    try:
        return Row.model_validate(record)
    except ValidationError as error:
        id_ = record.get("id") if isinstance(record, Mapping) else None
        id_text = f", id {id_!r:.80}" if isinstance(id_, str) else ""
        raise PoolError(f"{where}{id_text}: {named_layout(record) or _explain(error)}") from None


_REMEDIES = {
    "extra_forbidden": "not a field of a pool row: put anything else under `meta`",
    "string_type": "expected text in quotes",
    "string_unicode": f"it has {_HALF}",
    "string_too_short": "expected text that names the row",
    "answer_type": f"expected one of {', '.join(map(repr, BUILT_IN))}, or your own module:name, given as --answer",
    "too_short": "a row needs at least one candidate: drop it",
    "model_type": "expected an object",
    "list_type": "expected a list",
    "dict_type": "expected an object",
}

_OF_CANDIDATES = {
    "extra_forbidden": "not a field of a candidate, which has text, answer, source, confidence, logprobs, scores and "
    "tags: put anything else under the row's `meta`",
    "model_type": 'expected an object, such as {"answer": "Doha"}',
}
_OF_PASSAGES = {
    "extra_forbidden": "not a field of a passage, which has title and text: put anything else under the row's `meta`",
    "model_type": 'expected an object, such as {"text": "Doha is the capital of Qatar."}',
}
_PARTS: dict[str | int, dict[str, str]] = {"candidates": _OF_CANDIDATES, "evidence": _OF_PASSAGES}


def _explain(error: ValidationError) -> str:
    """Describe the first fault: where, what was found and what to do; and how many more there are."""
    first, *more = error.errors(include_url=False)
    kind, place = first["type"], first["loc"]
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".") or "row"
    if kind == "missing":
        fault = f"{name} is missing; add it."
    elif place[:1] == ("candidates",) and place[2:3] and place[2] in COLUMNS:
        fault = f"{name} {fault_of(first)}."
    elif kind in ("string_too_long", "too_long"):
        length, most = len(first["input"]), first.get("ctx", {})["max_length"]
        what = "characters" if kind == "string_too_long" else "items"
        fault = f"{name} has {length:,} {what}, and at most {most:,} are read: shorten it or drop the row."
    elif kind == "value_error":
        fault = f"{name} {first['msg'].removeprefix('Value error, ')}."
    else:
        remedy = {**_REMEDIES, **(_PARTS.get(place[0], {}) if place else {})}.get(kind, first["msg"])
        if kind == "string_type" and place[-1] == "answer":
            remedy += ", or null for no answer"
        fault = f"{name} is {quote(first['input'])} ({type(first['input']).__name__}); {remedy}."
    return f"{fault} ({len(more)} more in this row.)" if more else fault
