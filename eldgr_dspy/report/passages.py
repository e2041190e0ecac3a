"""The passages of a question as a page shows them: in full if an answer occurs in them, with the answer marked."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

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


class _Mark(NamedTuple):
    start: int
    end: int
    label: str
    ships: bool


def passages(
    evidence: Sequence[PassageRow], case: Case | None, decisions: Sequence[Decided]
) -> tuple[list[dict[str, Any]], int]:
    """Return the passages that are shown, each with its number, title and text in pieces, and how many are left out.

    Args:
        evidence: The passages. case: the question; None if only the witness of what shipped is known.
        decisions: What the rules decided, with their witnesses.
    """
    marks = _marks(case, decisions)
    shown, plain = [], 0
    for index, passage in enumerate(evidence):
        title, text = (marks.get((index, name), []) for name in ("title", "text"))
        plain += not (title or text)
        if not (title or text) and plain > _PLAIN_PASSAGES:
            continue
        shown.append(
            {
                "index": index,
                "title": _pieces(passage.title, title) if title else [clip(passage.title, _PLAIN)],
                "text": _pieces(passage.text, text) if text else [clip(passage.text, _AROUND if title else _PLAIN)],
            }
        )
    return shown, max(0, plain - _PLAIN_PASSAGES)


def _marks(case: Case | None, decisions: Sequence[Decided]) -> dict[tuple[int, str], list[_Mark]]:
    """Where in the evidence the shipped answer and every other certified answer occur, by passage and field."""
    places: dict[tuple[int, str, int, int], list[str]] = {}
    for decision in decisions:
        if decision["witness"] is not None:
            stood = decision["witness"]
            place = (stood["passage"], stood["field"], stood["start"], stood["end"])
            places.setdefault(place, []).append(decision["rule"])
    marks: dict[tuple[int, str], list[_Mark]] = {}
    for (passage, name, start, end), rules in places.items():
        label = f"witness of what ships by {', '.join(rules)}"
        marks.setdefault((passage, name), []).append(_Mark(start, end, label, ships=True))
    for answer, witness in () if case is None else _witnesses(case):
        if witness is not None and (witness.passage, witness.field, witness.start, witness.end) not in places:
            mark = _Mark(witness.start, witness.end, f"witness of “{clip(answer, 80)}”", ships=False)
            marks.setdefault((witness.passage, witness.field), []).append(mark)
    return marks


def _witnesses(case: Case) -> Iterator[tuple[str, Witness | None]]:
    """The first spelling of each class of answers, with its witness."""
    seen = set[str]()
    for answer, key in zip(case.question.answers, case.vote.classes, strict=True):
        if answer is not None and key is not None and key not in seen:
            seen.add(key)
            yield answer, case.certificate(answer).witness


def _pieces(text: str, marks: Sequence[_Mark]) -> list[Piece]:
    """The text in pieces, each of which is inside of the same marks; what is far from any mark is cut, with a count."""
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
