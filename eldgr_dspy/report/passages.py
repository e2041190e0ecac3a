"""The passages of a question as they are shown: in full if an answer occurs in them, with the answer marked."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from eldgr_dspy.cases import Case
from eldgr_dspy.certificates import Witness
from eldgr_dspy.figures.results.decision import Decided
from eldgr_dspy.report.templates import clip
from eldgr_dspy.rows import PassageRow

_PLAIN = 400  # characters that are shown of a passage in which nothing is marked
_PLAIN_PASSAGES = 30  # how many of them are shown
_AROUND = 10_000  # characters on either side of what is marked

Piece = str | tuple[str, str, bool]
"""A stretch of a passage: plain, or marked with what it is marked as, and whether it is what shipped."""


class ShownPassage(NamedTuple):
    """A passage by its place, its title and its text in pieces."""

    place: int
    title: list[Piece]
    text: list[Piece]


class _Mark(NamedTuple):
    start: int
    end: int
    label: str
    ships: bool


def passages(
    evidence: Sequence[PassageRow], case: Case | None, decisions: Sequence[Decided]
) -> tuple[list[ShownPassage], int]:
    """Return the passages that are shown, and how many are left out.

    Args:
        evidence: The passages. case: the question; None if only the witness of what shipped is known.
        decisions: What the rules decided, with their witnesses.
    """
    marks = _marks(case, decisions)
    shown, plain = list[ShownPassage](), 0
    for index, passage in enumerate(evidence):
        title, text = (marks.get((index, name), []) for name in ("title", "text"))
        plain += not (title or text)
        if title or text or plain <= _PLAIN_PASSAGES:
            around = _AROUND if title else _PLAIN
            shown.append(
                ShownPassage(index, _pieces(passage.title, title, _PLAIN), _pieces(passage.text, text, around))
            )
    return shown, max(0, plain - _PLAIN_PASSAGES)


def _marks(case: Case | None, decisions: Sequence[Decided]) -> dict[tuple[int, str], list[_Mark]]:
    """Where in the evidence the shipped answer and every other certified answer occur, by passage and field."""
    places: dict[tuple[int, str, int, int], list[str]] = {}
    for decision in decisions:
        if (one := decision["witness"]) is not None:
            places.setdefault((one["passage"], one["field"], one["start"], one["end"]), []).append(decision["rule"])
    labels = {place: (f"witness of what ships by {', '.join(rules)}", True) for place, rules in places.items()}
    for answer, witness in () if case is None else _witnesses(case):
        if witness is not None:
            place = (witness.passage, witness.field, witness.start, witness.end)
            labels.setdefault(place, (f"witness of “{clip(answer, 80)}”", False))
    marks: dict[tuple[int, str], list[_Mark]] = {}
    for (passage, name, start, end), (label, ships) in labels.items():
        marks.setdefault((passage, name), []).append(_Mark(start, end, label, ships))
    return marks


def _witnesses(case: Case) -> Iterator[tuple[str, Witness | None]]:
    """The first spelling of each class of answers, with its witness."""
    seen = set[str]()
    for answer, key in zip(case.question.answers, case.vote.classes, strict=True):
        if answer is not None and key is not None and key not in seen:
            seen.add(key)
            yield answer, case.certificate(answer).witness


def _pieces(text: str, marks: Sequence[_Mark], longest: int) -> list[Piece]:
    """The text in pieces, each of which is inside of the same marks; what is far from any mark is cut, with a count."""
    if not marks:
        return [clip(text, longest)]
    begin = max(0, min(mark.start for mark in marks) - _AROUND)
    end = min(len(text), max(mark.end for mark in marks) + _AROUND)
    cuts = sorted({begin, end, *(place for mark in marks for place in (mark.start, mark.end))})
    before = [f"({begin:,} characters) …"] if begin else []
    after = [f"… ({len(text) - end:,} more characters)"] if end < len(text) else []
    return [*before, *(_piece(text, marks, start, stop) for start, stop in pairwise(cuts)), *after]


def _piece(text: str, marks: Sequence[_Mark], start: int, stop: int) -> Piece:
    inside = [mark for mark in marks if mark.start <= start and stop <= mark.end]
    label = "; ".join(mark.label for mark in inside)
    return (text[start:stop], label, any(mark.ships for mark in inside)) if inside else text[start:stop]
