"""What a user hands to the selector, converted once at the border into a frozen `Question`.

Candidates may be strings, predictions, the completions of one prediction, and their answers numbers; evidence may be
strings, mappings or objects with a text, or the prediction of a retriever. Anything else is refused with a sentence
that names the place.
"""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from numbers import Integral
from typing import Any

import dspy

from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.extraction import extract_answer
from eldgr_dspy.questions import Question
from eldgr_dspy.rows import MAX_CANDIDATES, MAX_CHARACTERS, MAX_PASSAGES
from eldgr_dspy.words import Task

_REASONING = ("reasoning", "rationale", "text")
_TEXT = ("text", "long_text")
_MOST_DIGITS = 1_000  # of a number that is written out
_NO_LIST = (str, bytes, Mapping, Set, dspy.Example)


def to_question(question: str, candidates: Any, evidence: Any, task: Task, answer_field: str) -> Question:
    """Return the question with its pool and evidence, frozen.

    Raises:
        ArgumentError: naming the argument, the place in it, what was found and what was expected.
    """
    if not isinstance(question, str):
        raise ArgumentError(f"question={_shown(question)} is not text; give the question as a string.")
    pool = _pool(candidates, answer_field)
    _require_at_most(MAX_CANDIDATES, len(pool), "candidates")
    _require_field(pool, answer_field)
    pairs = [_candidate(one, index, task, answer_field) for index, one in enumerate(pool)]
    asked = _capped(question, "question")
    return Question(asked, task, tuple(a for _, a in pairs), tuple(t for t, _ in pairs), to_passages(evidence))


def to_passages(evidence: Any) -> tuple[Passage, ...]:
    """Return the evidence, frozen; raises as `to_question` does."""
    passages = _passages(evidence)
    _require_at_most(MAX_PASSAGES, len(passages), "passages")
    return tuple(_passage(one, index) for index, one in enumerate(passages))


def _pool(candidates: Any, answer_field: str) -> list[Any]:
    """Return the candidates one by one, whatever they came in."""
    if isinstance(candidates, dspy.Prediction):
        if candidates.completions is None:
            return [candidates]
        candidates = candidates.completions
    if isinstance(candidates, dspy.Completions):
        if answer_field not in candidates:
            raise _no_field("completions", answer_field, [name for name, _ in candidates.items()])
        return [candidates[index] for index in range(len(candidates))]
    if isinstance(candidates, _NO_LIST) or not isinstance(candidates, Iterable):
        raise ArgumentError(f"candidates={_shown(candidates)} is not a pool; give a list of strings or predictions.")
    return list(candidates)


def _require_field(pool: Sequence[Any], answer_field: str) -> None:
    """Refuse a pool none of whose records answers: the field is misnamed. One record without it just has no answer."""
    records = [one for one in pool if isinstance(one, dspy.Example | Mapping) and len(one)]
    if records and not any(answer_field in one for one in records):
        raise _no_field("candidates", answer_field, list(records[0].keys()))


def _candidate(one: Any, index: int, task: Task, answer_field: str) -> tuple[str, str | None]:
    """Return a candidate's text and its final answer, None where it has none."""
    name, expected, reasoning = f"candidates[{index}]", "a string, a prediction, a finite number or None", ""
    if isinstance(one, dspy.Example | Mapping):
        texts = (one.get(field) for field in _REASONING)
        reasoning = next((str(text) for text in texts if isinstance(text, str | dspy.Reasoning)), "")
        name, expected, one = f"{name}.{answer_field}", "text, a finite number or None", one.get(answer_field)
    if one is None or (isinstance(one, float) and math.isnan(one)):  # as a table writes what is missing
        return _capped(reasoning, name), None
    one = _number_as_text(one)
    if not isinstance(one, str):
        raise _wrong(name, one, expected)
    text = f"{reasoning}\n{one}" if reasoning and reasoning.strip() != one.strip() else one
    return _capped(text, name), _final(one, task)


def _number_as_text(value: Any) -> Any:
    """Return a number as its shortest text without an exponent, 4.0 as "4"; anything else as it is.

    A truth value is no number here, nor is what is not finite, nor what takes very many digits.
    """
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


def _final(text: str, task: Task) -> str | None:
    found = extract_answer(text, task)
    return found.answer if found else None


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
    if isinstance(evidence, _NO_LIST) or not isinstance(evidence, Iterable):
        raise ArgumentError(f"evidence={_shown(evidence)} is not evidence; give a list of strings or passages.")
    return list(evidence)


def _passage(one: Any, index: int) -> Passage:
    if isinstance(one, str):
        return Passage("", _capped(one, f"evidence[{index}]"))
    found = {name: _field(one, name) for name in (*_TEXT, "title")}
    text = next((found[name] for name in _TEXT if found[name] is not None), None)
    title = "" if found["title"] is None else found["title"]
    if not isinstance(text, str) or not isinstance(title, str):
        raise _wrong(f"evidence[{index}]", one, "a string, or something with text or long_text, and perhaps title")
    return Passage(title, _capped(text, f"evidence[{index}]"))


def _field(one: Any, name: str) -> Any:
    return one.get(name) if isinstance(one, Mapping | dspy.Example) else getattr(one, name, None)


def _require_at_most(most: int, n: int, what: str) -> None:
    if n > most:
        raise ArgumentError(f"There are {n:,} {what}; at most {most:,} are decided upon at once.")


def _capped(text: str, name: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise ArgumentError(f"{name} has {len(text):,} characters; at most {MAX_CHARACTERS:,} are decided upon.")
    return text


def _no_field(what: str, answer_field: str, fields: Sequence[str]) -> ArgumentError:
    return ArgumentError(
        f"The {what} have no field {answer_field!r}; set answer_field to the one that answers, "
        f"of {', '.join(map(repr, fields)) or 'which there is none'}."
    )


def _wrong(name: str, value: object, expected: str) -> ArgumentError:
    return ArgumentError(f"{name} is {_shown(value)} ({type(value).__name__}); expected {expected}.")


def _shown(value: object) -> str:
    """A value on one line, as predictions are not by themselves; there is always something to show."""
    try:
        return f"{' '.join(repr(value).split()):.80}"
    except ValueError:  # a whole number of too many digits
        return "a number beyond writing down"
