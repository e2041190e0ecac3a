"""Compare answers by the names of their types: for the vote, and for the score. See `eldgr_dspy.answer_types`."""

from collections.abc import Sequence

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType, Score, a_score
from eldgr_dspy.answer_types.number import number_in, numeric_equal
from eldgr_dspy.answer_types.short import exact_match, normalise, token_f1
from eldgr_dspy.matching.text_keys import POLAR, AnswerClass
from eldgr_dspy.words import Task

__all__ = [
    "POLAR",
    "AnswerClass",
    "Score",
    "answer_class",
    "class_key",
    "differ_by_percent_sign",
    "exact_match",
    "is_polar",
    "normalise",
    "number_in",
    "numeric_equal",
    "official_score",
    "score",
    "token_f1",
]


def official_score(text: str | None, gold: Sequence[str], answer: Task | AnswerType) -> Score:
    """Score an answer as the official script does: nothing is stripped before `normalise`.

    Raises:
        ArgumentError: `gold` is empty or one text, or `answer` is not an answer type.
    """
    kind = answer_type(answer)
    return a_score(kind.official_score(text, gold), lambda: f"{kind.name}.official_score({text!r:.60}, ...)")


def score(text: str | None, gold: Sequence[str], answer: Task | AnswerType) -> Score:
    """Score an answer as its type is scored: exact match and F1 of short text, equality of numbers.

    Raises:
        ArgumentError: `gold` is empty or one text, or `answer` is not an answer type.
    """
    kind = answer_type(answer)
    return a_score(kind.score(text, gold), lambda: f"{kind.name}.score({text!r:.60}, ...)")


def answer_class(text: str | None, answer: Task | AnswerType) -> AnswerClass | None:
    """Return the class in which an answer votes, or None if the answer is None or shows nothing.

    Raises:
        ArgumentError: `answer` is not an answer type.
    """
    return answer_type(answer).class_of(text)


def class_key(text: str | None, answer: Task | AnswerType) -> str | None:
    """Return the key of an answer's class, by which answers are compared, or None where there is no class."""
    class_ = answer_class(text, answer)
    return class_.key if class_ else None


def is_polar(answer: str) -> bool:
    """Say whether the answer is yes, no, true or false, so that a certificate is inapplicable to it."""
    return class_key(answer, "short") in POLAR


def differ_by_percent_sign(one: str, other: str | None) -> bool:
    """Return whether two answers are the same number apart from a percent sign: 20%, 20 and 0.2 say the same."""
    first, second = number_in(one), None if other is None else number_in(other)
    if first is None or second is None or first.percent == second.percent:
        return False
    percent, plain = (first.value, second.value) if first.percent else (second.value, first.value)
    return plain in (percent, percent / 100)
