"""A judge that compares two candidates at a time, for pools that are too large or too long to be shown at once.

Answers meet in a knockout: one comparison fewer than there are answers, where comparing all pairs would take half the
square. Who meets whom is drawn from the texts, so the pool's order does not matter.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import dspy

from eldgr_dspy.consultations import Verdict
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.effects import Showing, showings
from eldgr_dspy.programs.consulting import Said
from eldgr_dspy.programs.judges.counting import abstained
from eldgr_dspy.programs.judges.repeated_calls import RepeatedCalls, Rounds, answers_of, classes_of
from eldgr_dspy.programs.one_call import Request, calls_of
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.replies import read_reply
from eldgr_dspy.signatures import CompareCandidates

Pair = tuple[int, int]
"""Two pool indices, in the order in which the candidates are shown."""


class Comparer(Judge):
    """Compares two candidates with one LM call; a judge of a pool of two, without scores."""

    signature = CompareCandidates

    def show(self, *, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> dict[str, Any]:
        """Return the question, the evidence and the candidates; raise an ArgumentError unless there are two."""
        if len(candidates) != 2:
            raise ArgumentError(f"candidates must be two for a Comparer; got {len(candidates)}. Use PairwiseJudge.")
        return super().show(question=question, evidence=evidence, candidates=candidates)

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
        knockout = _Knockout(question, evidence, candidates)
        while inputs := knockout.inputs():
            knockout.record((yield [Request(self.judge, fields, "judge") for fields in inputs]))
        return knockout.outcome()

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


@dataclass(frozen=True, slots=True)
class _Match:
    """Two candidates, what the judge was shown, and its verdict; without one, `winner` is None and has a reason."""

    pair: Pair
    winner: int | None
    shown: tuple[Showing, ...]
    reason: str = ""

    def recorded(self) -> Iterator[dict[str, Any]]:
        """Return the showings as a journal has them, by pool index."""
        for showing in self.shown:
            verdict = {"abstained": self.reason} if showing.preferred is None else {"rationale": showing.rationale}
            preferred = None if showing.preferred is None else self.pair[showing.preferred]
            yield {"order": [self.pair[place] for place in showing.order], "preferred": preferred, **verdict}


class _Knockout:
    """One candidate for each answer, and those that remain after each round."""

    def __init__(self, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> None:
        self._question, self._evidence, self._candidates = question, evidence, candidates
        self._answers = answers_of(candidates)
        self._classes = classes_of(self._answers)
        self._votes = Counter(self._classes)
        self._standing = _drawn(question, candidates, self._classes)
        self._played: list[_Match] = []

    def inputs(self) -> list[dict[str, object]]:
        """Return the next round's questions, one a comparison; empty once only one answer is left."""
        about = {"question": self._question, "evidence": self._evidence}
        return [{**about, "candidates": [self._candidates[index] for index in pair]} for pair in self._pairs()]

    def record(self, said: Sequence[Said]) -> None:
        """Record the replies to each comparison of the round."""
        pairs, n = self._pairs(), len(self._evidence)
        played = [_match(pair, reply, self._answers, n) for pair, reply in zip(pairs, said, strict=True)]
        self._played += played
        self._standing = [self._through(match) for match in played] + self._standing[2 * len(pairs) :]

    def outcome(self) -> dspy.Prediction:
        """Return the preference of the last comparison, or why there is none."""
        return _outcome(self._played) if self._played else _unasked(self._standing)

    def _pairs(self) -> list[Pair]:
        return list(zip(self._standing[::2], self._standing[1::2], strict=False))

    def _through(self, match: _Match) -> int:
        """Return who advances: without a verdict the answer with more votes; with equal votes the one shown first."""
        first, second = match.pair
        more = self._votes[self._classes[second]] > self._votes[self._classes[first]]
        return match.pair[more] if match.winner is None else match.winner


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


def _match(pair: Pair, said: Said, answers: Sequence[str], n_passages: int) -> _Match:
    both = [answers[index] for index in pair]
    shown = showings(said.content, both, n_passages) or (Showing((0, 1), None),)
    reply = read_reply("judge", said.content, both, n_passages)
    if isinstance(reply, Verdict):
        return _Match(pair, pair[reply.preferred], shown)
    return _Match(pair, None, shown, getattr(reply, "reason", ""))


def _unasked(standing: Sequence[int]) -> dspy.Prediction:
    if not standing:
        return abstained("there is no candidate to judge")
    return dspy.Prediction(preferred=standing[0], judge_rationale="there is one answer; nothing was asked", orders=[])


def _outcome(played: Sequence[_Match]) -> dspy.Prediction:
    final = played[-1]
    orders = [showing for match in played for showing in match.recorded()]
    if final.winner is None:
        return dspy.Prediction(abstained=f"the final is undecided: {final.reason}", orders=orders)
    loser = next(index for index in final.pair if index != final.winner)
    rationale = f"candidate {final.winner} won the last of {len(played)} comparisons, against candidate {loser}"
    return dspy.Prediction(preferred=final.winner, judge_rationale=rationale, orders=orders)
