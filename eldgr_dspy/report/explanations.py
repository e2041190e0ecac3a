"""How a rule decided a question, in words, and the passages of the question with the answers marked."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from eldgr_dspy.figures.results.decision_fields import Decided
from eldgr_dspy.formats.rows import PassageRow
from eldgr_dspy.report.templates import clip
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import FAILURE_PREFIX
from eldgr_dspy.rule.reasons import REASONS, refusal_of_derivation
from eldgr_dspy.words import Role

_LONGEST = 200  # characters of an answer or a reason in a sentence
_PLAIN = 400  # characters that are shown of a passage in which nothing is marked
_PLAIN_PASSAGES = 30  # how many of them are shown
_AROUND = 10_000  # characters on either side of what is marked


def path(case: Case | None, decision: Decided) -> Iterator[str]:
    """Yield how a rule reached its decision, a sentence or two a step; without a case, from what was recorded."""
    yield f"Consensus is {_quote(decision['consensus'])}{_votes(case)}."
    if case is not None and case.type.way == "evidence" and case.consensus is not None:
        yield f"Its certificate: {_as_ending(case.certificate(case.consensus).reason)}"
    for role in decision["consulted"]:
        yield _said_by(role, case, decision)
    if refusal := refusal_of_derivation(decision["notes"]):
        yield f"The derivation is not accepted: {_as_ending(refusal)}"
    yield REASONS.get(decision["reason"], f"What decides is {decision['branch']}.")
    yield f"{_quote(decision['answer'])} ships." if decision["answer"] is not None else "Nothing ships."


def _votes(case: Case | None) -> str:
    if case is None or case.vote.winner is None:
        return ""
    counts = case.vote.counts
    tie = "; others have as many, and its first vote comes earliest" if case.vote.tie else ""
    return f" with {counts[case.vote.winner]} of {sum(counts.values())} votes{tie}"


def _said_by(role: Role, case: Case | None, decision: Decided) -> str:
    reason, index = decision["abstentions"].get(role), decision["preference"]
    if reason is not None:
        if reason.startswith(FAILURE_PREFIX):  # all that a decision states
            return f"The {role}'s call failed: {_as_ending(reason.removeprefix(FAILURE_PREFIX))}"
        return f"The {role} abstains: {_as_ending(reason)}"
    if role != "judge":
        return f"The {role} gives {_quote(decision['repair'])}."
    if case is None or index is None:
        return f"The judge prefers candidate [{index}]."
    answer = case.question.answers[index]
    if case.type.way == "derivation":
        return f"The judge prefers candidate [{index}], {_quote(answer)}."
    support = {True: "certified", False: "uncertified", None: "a certificate does not apply to it"}
    return f"The judge prefers candidate [{index}], {_quote(answer)}: {support[case.certified(answer)]}."


def _quote(answer: str | None) -> str:
    return "no answer" if answer is None else f"“{clip(answer, _LONGEST)}”"


def _as_ending(reason: str) -> str:
    """A reason as the end of a sentence; some are sentences themselves."""
    return f"{clip(reason, _LONGEST).removesuffix('.')}."


Piece = str | tuple[str, str]  # a stretch of a passage: plain, or marked with what it is marked as
_Marks = dict[tuple[int, int], str]  # the labels of what is marked, by its first character and the one behind it


class ShownPassage(NamedTuple):
    place: int
    title: list[Piece]
    text: list[Piece]


def passages(
    evidence: Sequence[PassageRow], case: Case | None, decisions: Sequence[Decided]
) -> tuple[list[ShownPassage], int]:
    """Return the passages that are shown, in full where an answer occurs, and how many are left out."""
    marks = _marks(case, decisions)
    entries, plain = list[ShownPassage](), 0
    for index, passage in enumerate(evidence):
        title, text = marks[index, "title"], marks[index, "text"]
        plain += not (title or text)
        if title or text or plain <= _PLAIN_PASSAGES:
            around = _AROUND if title else _PLAIN
            pieces = _pieces(passage.title, title, _PLAIN), _pieces(passage.text, text, around)
            entries.append(ShownPassage(index, *pieces))
    return entries, max(0, plain - _PLAIN_PASSAGES)


def _marks(case: Case | None, decisions: Sequence[Decided]) -> defaultdict[tuple[int, str], _Marks]:
    """Where in the evidence the shipped answer and every other certified answer occur, by passage and field."""
    places = defaultdict[tuple[int, str, int, int], list[str]](list)
    for decision in decisions:
        if (one := decision["witness"]) is not None:
            places[one["passage"], one["field"], one["start"], one["end"]].append(decision["rule"])
    labels = {place: f"witness of what ships by {', '.join(rules)}" for place, rules in places.items()}
    for answer in dict.fromkeys(case.question.answers) if case else ():
        if answer is not None and case is not None and (of := case.certificate(answer).witness) is not None:
            labels.setdefault((of.passage, of.field, of.start, of.end), f"witness of “{clip(answer, 80)}”")
    marks = defaultdict[tuple[int, str], _Marks](dict)
    for (passage, name, start, end), label in labels.items():
        marks[passage, name][start, end] = label
    return marks


def _pieces(text: str, marks: _Marks, longest: int) -> list[Piece]:
    """The text in pieces, each of which is inside of the same marks; what is far from any mark is cut, with a count."""
    if not marks:
        return [clip(text, longest)]
    begin = max(0, min(start for start, _ in marks) - _AROUND)
    end = min(len(text), max(end for _, end in marks) + _AROUND)
    pieces: list[Piece] = [f"({begin:,} characters) …"] if begin else []
    for start, stop in pairwise(sorted({begin, end, *(place for mark in marks for place in mark)})):
        label = "; ".join(label for (first, last), label in marks.items() if first <= start and stop <= last)
        pieces.append((text[start:stop], label) if label else text[start:stop])
    return [*pieces, f"… ({len(text) - end:,} more characters)"] if end < len(text) else pieces
