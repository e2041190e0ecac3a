"""A judge that compares two candidates at a time, for pools that are too large or too long to be shown at once.

Answers meet in a knockout: one comparison fewer than there are answers, where comparing all pairs would take half the
square. Who meets whom is drawn from the texts, so the pool's order does not matter.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import dspy

from eldgr_dspy.consultations import Abstention
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.showings import Showing, showings
from eldgr_dspy.programs.judges.counting import NO_CANDIDATE, abstained
from eldgr_dspy.programs.judges.repeated_calls import RepeatedCalls, Rounds, answers_of, classes_of, read_verdict
from eldgr_dspy.programs.one_call import Request, calls_of
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.signatures import CompareCandidates

Pair = tuple[int, int]
"""Two pool indices, in the order in which the candidates are shown."""


class Comparer(Judge):
    """Compares two candidates with one LM call; a judge of a pool of two, without scores."""

    signature = CompareCandidates

    def show(self, **inputs: Any) -> dict[str, Any]:
        """Return the question, the evidence and the candidates; raise an ArgumentError unless there are two."""
        if (n := len(inputs["candidates"])) != 2:
            raise ArgumentError(f"candidates must be two for a Comparer; got {n}. Use PairwiseJudge.")
        return super().show(**inputs)

    def read(self, reply: dspy.Prediction, inputs: Mapping[str, Any]) -> dspy.Prediction:
        """Return `preferred`, 0 or 1, and `judge_rationale`."""
        return dspy.Prediction(preferred=reply.better, judge_rationale=reply.comparison_rationale)


class PairwiseJudge(RepeatedCalls):
    """Prefers the answer that wins a knockout of comparisons, two candidates a call.

        selector.judge = PairwiseJudge()
        selector.judge = PairwiseJudge(SwapConsistent(Comparer()))    # each pair in both orders

    One candidate represents each answer, so no two that would vote together, in either task, are compared. If a
    comparison fails (unparsable, out of range, inconsistent), the answer with more votes advances; with equal votes,
    the one shown first. If the final fails, there is no verdict. With a single answer, nothing is asked.

    Attributes:
        judge: Any module in the judge's role; it is given two candidates at a time.
    """

    def __init__(self, judge: dspy.Module | None = None) -> None:
        super().__init__()
        self.judge: dspy.Module = Comparer() if judge is None else judge

    def rounds(self, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> Rounds:
        """Hold the knockout; `orders` has one object a showing.

        Its keys are `order`, the pool indices of the two, `preferred`, and `rationale` or `abstained`.
        """
        answers, about = answers_of(candidates), {"question": question, "evidence": evidence}
        classes = classes_of(answers)
        standing, played = _drawn(question, candidates, classes), list[_Match]()
        while pairs := [*zip(standing[::2], standing[1::2], strict=False)]:
            said = yield [
                Request(self.judge, {**about, "candidates": [candidates[index] for index in pair]}, "judge")
                for pair in pairs
            ]
            matches = [
                _match(pair, reply.content, answers, len(evidence)) for pair, reply in zip(pairs, said, strict=True)
            ]
            played += matches
            standing = [_through(match, classes) for match in matches] + standing[2 * len(pairs) :]
        if played:
            return _outcome(played)
        if not standing:
            return abstained(NO_CANDIDATE)
        rationale = "there is one answer; nothing was asked"
        return dspy.Prediction(preferred=standing[0], judge_rationale=rationale, orders=[])

    def most_calls(self, candidates: Sequence[str]) -> int | None:
        """Return one less than the number of answers, in comparisons; None if the judge does not say what one takes.

        If comparisons differ in how many calls they take, each counts as the one that takes most.
        """
        classed = {
            text: key
            for text, key in zip(candidates, classes_of(answers_of(candidates)), strict=True)
            if key is not None
        }
        pairs = [pair for pair in combinations(classed, 2) if classed[pair[0]] != classed[pair[1]]]
        each = [calls_of(self.judge, pair) for pair in pairs]
        known = [calls for calls in each if calls is not None]
        return (len({*classed.values()}) - 1) * max(known, default=0) if len(known) == len(each) else None


class _Match(NamedTuple):
    """Two candidates; who won, or why nobody did; and the showings as a journal has them."""

    pair: Pair
    winner: int | Abstention
    shown: list[dict[str, Any]]


def _match(pair: Pair, content: Mapping[str, Any], answers: Sequence[str], n_passages: int) -> _Match:
    both = [answers[index] for index in pair]
    reply = read_verdict(content, both, n_passages)
    winner = reply if isinstance(reply, Abstention) else pair[reply.preferred]
    shown = list[dict[str, Any]]()
    for showing in showings(content, both, n_passages) or (Showing((0, 1), None),):
        reason = winner.reason if isinstance(winner, Abstention) else ""
        verdict = {"abstained": reason} if showing.preferred is None else {"rationale": showing.rationale}
        preferred = None if showing.preferred is None else pair[showing.preferred]
        shown.append({"order": [pair[place] for place in showing.order], "preferred": preferred, **verdict})
    return _Match(pair, winner, shown)


def _through(match: _Match, classes: Sequence[int | None]) -> int:
    """Return who advances: without a verdict the answer with more votes; with equal votes the one shown first."""
    first, second = (classes.count(classes[index]) for index in match.pair)
    return match.pair[second > first] if isinstance(match.winner, Abstention) else match.winner


def _drawn(question: str, candidates: Sequence[str], classes: Sequence[int | None]) -> list[int]:
    """Return one candidate for each answer, in an order that depends only on the texts."""
    drawn = sorted(
        (index for index, key in enumerate(classes) if key is not None),
        key=lambda index: hashlib.sha256(f"{question}\n{candidates[index]}".encode(errors="replace")).digest(),
    )
    standing: dict[int | None, int] = {}
    for index in drawn:
        standing.setdefault(classes[index], index)
    return list(standing.values())


def _outcome(played: Sequence[_Match]) -> dspy.Prediction:
    """The preference of the last comparison, or why there is none."""
    final = played[-1]
    orders = [showing for match in played for showing in match.shown]
    if isinstance(final.winner, Abstention):
        why = replace(final.winner, reason=f"the final is undecided: {final.winner.reason}")
        return abstained(why, orders=orders)
    loser = next(index for index in final.pair if index != final.winner)
    rationale = f"candidate {final.winner} won the last of {len(played)} comparisons, against candidate {loser}"
    return dspy.Prediction(preferred=final.winner, judge_rationale=rationale, orders=orders)
