"""A judge that compares two candidates at a time, for pools that are too large or too long to be shown at once.

Answers meet in a knockout: one comparison fewer than there are answers, where comparing all pairs would take half the
square. Who meets whom is drawn from the texts, so the pool's order does not matter.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import dspy

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.judges.frames import (
    NO_CANDIDATE,
    RepeatedCalls,
    Rounds,
    abstained,
    answers_of,
    classes_of,
    read_verdict,
)
from eldgr_dspy.programs.lms.one_call import Request, calls_of
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.rule.consultations import Abstention, Verdict
from eldgr_dspy.signatures import CompareCandidates


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
        classes, orders, final = classes_of(answers), list[dict[str, Any]](), None
        standing = _draw(question, candidates, classes)
        if not standing:
            return abstained(NO_CANDIDATE)
        pair, rationale = (0, 0), "there is one answer; nothing was asked"
        while pairs := [*zip(standing[::2], standing[1::2], strict=False)]:
            outcomes = yield [
                Request(self.judge, {**about, "candidates": [candidates[index] for index in pair]}, "judge")
                for pair in pairs
            ]
            winners = list[int]()
            for pair, outcome in zip(pairs, outcomes, strict=True):
                both = [answers[index] for index in pair]
                final = read_verdict(outcome.content, both, len(evidence))
                orders += _orders(pair, outcome.content, final)
                winners.append(_winner(pair, final, classes))
            standing = winners + standing[2 * len(pairs) :]
        if isinstance(final, Abstention):
            return abstained(replace(final, reason=f"the final is undecided: {final.reason}"), orders=orders)
        if final is not None:
            (loser,), n = {*pair} - {*standing}, len({*classes} - {None}) - 1
            rationale = f"candidate {standing[0]} won the last of {n} comparisons, against candidate {loser}"
        return dspy.Prediction(preferred=standing[0], judge_rationale=rationale, orders=orders)

    def most_calls(self, candidates: Sequence[str]) -> int | None:
        """Return one less than the number of answers, in comparisons; None if the judge does not say what one takes.

        If comparisons differ in how many calls they take, each counts as the one that takes most.
        """
        answering = {
            text: key
            for text, key in zip(candidates, classes_of(answers_of(candidates)), strict=True)
            if key is not None
        }
        pairs = (pair for pair in combinations(answering, 2) if answering[pair[0]] != answering[pair[1]])
        calls = [calls_of(self.judge, pair) for pair in pairs]
        return None if None in calls else (len({*answering.values()}) - 1) * max(filter(None, calls), default=0)


def _orders(pair: tuple[int, int], content: Mapping[str, Any], reply: Verdict | Abstention) -> list[dict[str, Any]]:
    """The orders in which a judge saw a pair: those that it states and that are valid, else the pair as it stands."""
    own = content.get("orders", [])
    entries = [entry for entry in own if _is_order(entry)] if isinstance(own, list) else []
    if "orders" not in content and isinstance(reply, Verdict):
        entries = [{"order": [0, 1], "preferred": reply.preferred, "rationale": reply.rationale}]
    orders = list[dict[str, Any]]()
    for entry in entries or [{"order": [0, 1], "preferred": None}]:
        order, preferred, rationale = (
            [pair[at] for at in entry["order"]],
            entry.get("preferred"),
            entry.get("rationale"),
        )
        if preferred is None:
            orders.append({"order": order, "preferred": None, "abstained": getattr(reply, "reason", "")})
        else:
            shown = rationale if isinstance(rationale, str) else ""
            orders.append({"order": order, "preferred": pair[preferred], "rationale": shown})
    return orders


def _is_order(entry: object) -> bool:
    """Whether an entry states places of a pair, and a preferred one among them or none."""
    order, preferred = (entry.get("order"), entry.get("preferred")) if isinstance(entry, Mapping) else (None, None)
    if not isinstance(order, list) or not all(type(at) is int and 0 <= at < 2 for at in order):
        return False
    return preferred is None or (type(preferred) is int and preferred in order)


def _winner(pair: tuple[int, int], reply: Verdict | Abstention, classes: Sequence[int | None]) -> int:
    """Return who advances: without a verdict the answer with more votes; with equal votes the one shown first."""
    first, second = (classes.count(classes[index]) for index in pair)
    return pair[reply.preferred if isinstance(reply, Verdict) else second > first]


def _draw(question: str, candidates: Sequence[str], classes: Sequence[int | None]) -> list[int]:
    """Return one candidate for each answer, in an order that depends only on the texts."""
    order = sorted(
        range(len(candidates)),
        key=lambda index: hashlib.sha256(f"{question}\n{candidates[index]}".encode(errors="replace")).digest(),
    )
    first = {classes[index]: index for index in reversed(order)}
    return [index for index in order if classes[index] is not None and first[classes[index]] == index]
