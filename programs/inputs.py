"""Convert what a user gives to the selector, once and at the boundary, into a frozen `Question`."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from functools import partial
from numbers import Integral
from typing import Any

import dspy
import numpy as np

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType, require_options
from eldgr_dspy.answer_types.comparing import Comparisons
from eldgr_dspy.answer_types.extraction import extract_answer
from eldgr_dspy.base.structured import Structure
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.formats.columns import Columns, read_columns, statements_of
from eldgr_dspy.formats.rows import MAX_CANDIDATES, MAX_CHARACTERS, MAX_OPTIONS, MAX_PASSAGES
from eldgr_dspy.rule.ballots import Statement
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.words import Task

_REASONING = ("reasoning", "rationale", "text")
_REASONS = (str, dspy.Reasoning)
_TEXT = ("text", "long_text")
_MOST_DIGITS = 1_000  # of a number that is written out
_RECORD = (dict, dspy.Example, Mapping)  # a dict is known by its type; to ask an abstract class takes much longer
_NO_LIST = (str, bytes, Mapping, Set, dspy.Example)


def to_question(
    question: str,
    candidates: Any,
    evidence: Any,
    answer: Task | AnswerType,
    answer_field: str,
    options: Any = (),
    *,
    columns: bool = False,
    comparisons: Comparisons | None = None,
) -> Question:
    """Return the question with its pool, evidence and options, frozen, from the arguments of `Selector.forward`."""
    if not isinstance(question, str):
        raise ArgumentError(f"question must be text; got {_on_one_line(question)}. Give the question as a string.")
    pool = _pool(candidates, answer_field)
    _require_at_most(MAX_CANDIDATES, len(pool), "candidates")
    _require_field(pool, answer_field)
    kind = answer_type(answer)
    pairs = [_candidate(candidate, index, kind, answer_field) for index, candidate in enumerate(pool)]
    text, texts, answers = _cap(question, "question"), tuple(t for t, _ in pairs), tuple(a for _, a in pairs)
    values = statements_of(_values_of(pool)) if columns else ()  # confidence, logprobs, scores and tags
    passages, option_texts = to_passages(evidence), _options(options, kind)
    return Question(
        text, kind.name_in_files, answers, texts, passages, option_texts, kind, partial(tuple, values), comparisons
    )


def columns_of(candidates: Any, answer_field: str) -> list[Columns]:
    """Return what is stated of each candidate besides its text and answer; raises as `to_question` does."""
    return list(_columns(_pool(candidates, answer_field)))


def to_passages(evidence: Any) -> tuple[Passage, ...]:
    """Return the evidence, frozen; raises as `to_question` does."""
    passages = _passages(evidence)
    _require_at_most(MAX_PASSAGES, len(passages), "passages")
    return tuple(_passage(passage, index) for index, passage in enumerate(passages))


def _options(options: Any, kind: AnswerType) -> tuple[str, ...]:
    texts = [number_as_text(option) for option in _list(options, "options", "texts")]
    _require_at_most(MAX_OPTIONS, len(texts), "options")
    for index, option in enumerate(texts):
        if not isinstance(option, str):
            raise _wrong(f"options[{index}]", option, "text")
    require_options(kind, texts)
    return tuple(_cap(option, f"options[{index}]") for index, option in enumerate(texts))


def _pool(candidates: Any, answer_field: str) -> list[Any]:
    if isinstance(candidates, dspy.Prediction):
        if candidates.completions is None:
            return [candidates]
        candidates = candidates.completions
    if isinstance(candidates, dspy.Completions):
        if answer_field not in candidates:
            raise _no_field("completions", answer_field, [name for name, _ in candidates.items()])
        return [candidates[index] for index in range(len(candidates))]
    return _list(candidates, "candidates", "strings or predictions")


def _list(value: Any, name: str, items: str) -> list[Any]:
    """Return a list of what an argument holds. A table, such as a `DataFrame`, would yield the names of its columns."""
    if isinstance(value, _NO_LIST) or not isinstance(value, Iterable) or hasattr(value, "columns"):
        remedy = " Give its rows, as in table.to_dict('records')." if hasattr(value, "columns") else ""
        raise ArgumentError(f"{name} must be a list of {items}; got {_on_one_line(value)}.{remedy}")
    return list(value)


def _require_field(pool: Sequence[Any], answer_field: str) -> None:
    """Refuse a pool in which no record has the answer field: its name is wrong. A single one may lack an answer."""
    records = [record for record in pool if isinstance(record, _RECORD) and len(record)]
    if records and not any(answer_field in record for record in records):
        raise _no_field("candidates", answer_field, list(records[0].keys()))


def _candidate(value: Any, index: int, kind: AnswerType, answer_field: str) -> tuple[str, str | None]:
    """Return a candidate's text and its final answer, None if it has none."""
    name, need, reasoning = f"candidates[{index}]", "a string, a prediction, a finite number or None", ""
    if isinstance(value, _RECORD):
        texts = (value.get(field) for field in _REASONING)
        reasoning = next((str(text) for text in texts if text is not None and isinstance(text, _REASONS)), "")
        name, need, value = f"{name}.{answer_field}", "text, a finite number or None", value.get(answer_field)
    is_nan = isinstance(value, float | np.floating) and math.isnan(value)  # as a table writes what is missing
    if value is None or is_nan:
        return _cap(reasoning, name), None
    value = value if isinstance(value, str) else number_as_text(value)
    if not isinstance(value, str):
        raise _wrong(name, value, need)
    text = f"{reasoning}\n{value}" if reasoning and reasoning.strip() != value.strip() else value
    return _cap(text, name), _final(value, kind)


def _columns(pool: Iterable[Any]) -> Iterator[Columns]:
    for index, candidate in enumerate(pool):
        yield read_columns(candidate, f"candidates[{index}].{{}}") if isinstance(candidate, _RECORD) else Columns()


def _values_of(pool: Sequence[Any]) -> Iterator[Statement]:
    for candidate, columns in zip(pool, _columns(pool), strict=True):
        source = candidate.get("source") if isinstance(candidate, _RECORD) else None
        yield columns.to_statement(source if isinstance(source, str) else None)


def number_as_text(value: Any) -> Any:
    """Return a finite number of few digits as its shortest text without an exponent, 4.0 as "4"; all else unchanged."""
    value = float(str(value)) if isinstance(value, np.floating) else value  # of its own shortest text: 0.1 of 32 bits
    if isinstance(value, bool) or not isinstance(value, Integral | float | Decimal):
        return value
    plain = int(value) if isinstance(value, Integral) else value
    number = Decimal(float.__repr__(plain)) if isinstance(plain, float) else Decimal(plain)
    digits = len(number.as_tuple().digits)
    if not number.is_finite() or max(digits, abs(number.adjusted())) > _MOST_DIGITS:
        return value
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _final(text: str, kind: AnswerType) -> str | None:
    if isinstance(text, Structure):
        return text
    extraction = extract_answer(text, kind)
    return extraction.answer if extraction else None


def _passages(evidence: Any) -> list[Any]:
    if evidence is None:
        return []
    if isinstance(evidence, dspy.Prediction):
        if "passages" not in evidence:
            raise ArgumentError(
                "evidence is a prediction without passages; give the retriever's, or a list of strings."
            )
        evidence = evidence["passages"]
    if isinstance(evidence, str):
        return [evidence]
    return _list(evidence, "evidence", "strings or passages")


def _passage(value: Any, index: int) -> Passage:
    if isinstance(value, str):
        return Passage("", _cap(value, f"evidence[{index}]"))
    get = value.get if isinstance(value, _RECORD) else lambda name: getattr(value, name, None)
    fields = {name: get(name) for name in (*_TEXT, "title")}
    text = next((fields[name] for name in _TEXT if fields[name] is not None), None)
    title = "" if fields["title"] is None else fields["title"]
    if not isinstance(text, str) or not isinstance(title, str):
        raise _wrong(f"evidence[{index}]", value, "a string, or something with text or long_text, and perhaps title")
    return Passage(title, _cap(text, f"evidence[{index}]"))


def _require_at_most(most: int, n: int, what: str) -> None:
    if n > most:
        raise ArgumentError(f"There are {n:,} {what}; give at most {most:,}.")


def _cap(text: str, name: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise ArgumentError(f"{name} has {len(text):,} characters; give at most {MAX_CHARACTERS:,}.")
    return text


def _no_field(what: str, answer_field: str, fields: Sequence[str]) -> ArgumentError:
    return ArgumentError(
        f"The {what} have no field {answer_field!r}. Set answer_field to the field that holds the answer; "
        f"they have {', '.join(map(repr, fields)) or 'no fields'}."
    )


def _wrong(name: str, value: object, need: str) -> ArgumentError:
    return ArgumentError(f"{name} must be {need}; got {_on_one_line(value)} ({type(value).__name__}).")


def _on_one_line(value: object) -> str:
    """A value on one line, since a prediction's text has several; never empty."""
    try:
        return f"{' '.join(repr(value).split()):.80}"
    except ValueError:  # a whole number of too many digits
        return "a number with too many digits to show"
