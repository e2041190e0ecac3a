"""A judge that is asked in several orders, and whose preference counts only if all of them agree.

An LM tends to prefer the candidate in a certain place (Zheng et al. 2023, "Judging LLM-as-a-judge", section 3.3). The
remedy is theirs: ask again with the places changed, and do not count a preference that changes with them.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dspy

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.judges.frames import (
    RepeatedCalls,
    Rounds,
    abstained,
    answers_of,
    classes_of,
    read_verdict,
    require_read,
)
from eldgr_dspy.programs.lms.one_call import Request
from eldgr_dspy.rule.consultations import Abstention, Verdict

Order = tuple[int, ...]
"""Pool indices in the order in which the candidates are shown."""


class SwapConsistent(RepeatedCalls):
    """Shows a judge the pool in several orders and passes on a preference that is the same in all of them.

        selector.judge = SwapConsistent(selector.judge)

    One consultation, with one call an order; all calls are made. Preferences are compared by answer, as answers vote,
    and not by candidate. A preference that changes is an abstention with reason `inconsistent`. If the judge gives no
    verdict in one order, the whole is an abstention; a reply that cannot be parsed is treated like a plain judge's.
    Scores are means over the orders, if each order has them.

    Attributes:
        judge: Any module in the judge's role. orders: How many orders.
    """

    def __init__(self, judge: dspy.Module, orders: int = 2) -> None:
        """Wrap a judge.

        Args:
            judge: Any module in the judge's role.
            orders: At least 2. A pool has at most twice as many orders as candidates, see `orders_of`; if it has
                fewer, all are asked.

        Raises:
            ArgumentError: naming the argument.
        """
        super().__init__()
        if type(orders) is not int or orders < 2:
            raise ArgumentError(f"orders must be a whole number of at least 2; got {orders!r}. For 1, use the judge.")
        self.judge = judge
        self.orders = orders

    def rounds(self, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> Rounds:
        """Ask in each order; the rationale is the first order's, which is the pool's.

        `orders` is a list of objects with `order`, `preferred`, `scores` and `rationale`, or `abstained`, all by pool
        index.
        """
        orders, about = orders_of(candidates, self.orders), {"question": question, "evidence": evidence}
        outcomes = yield [
            Request(self.judge, {**about, "candidates": [candidates[index] for index in order]}, "judge")
            for order in orders
        ]
        require_read(outcomes)
        answers = answers_of(candidates)
        replies = [
            _by_pool_index(order, read_verdict(one.content, [answers[index] for index in order], len(evidence)))
            for order, one in zip(orders, outcomes, strict=True)
        ]
        shown = [_journaled(order, reply) for order, reply in zip(orders, replies, strict=True)]
        for number, reply in enumerate(replies, start=1):
            if isinstance(reply, Abstention):
                reason = f"{reply.reason} (in order {number} of {len(orders)})"
                return abstained(replace(reply, reason=reason), orders=shown)
        verdicts = [reply for reply in replies if isinstance(reply, Verdict)]
        classes = classes_of(answers)
        if len({classes[verdict.preferred] for verdict in verdicts}) > 1:
            changed = ", ".join(str(verdict.preferred) for verdict in verdicts)
            return abstained(Abstention.of("inconsistent", f"the orders prefer candidates {changed}"), orders=shown)
        scores = [verdict.scores for verdict in verdicts if verdict.scores is not None]
        means = [{"scalar": math.fsum(of) / len(of)} for of in zip(*scores, strict=True)]
        return dspy.Prediction(
            preferred=verdicts[0].preferred,
            assessments=means if len(scores) == len(verdicts) else None,
            judge_rationale=verdicts[0].rationale,
            orders=shown,
        )


def orders_of(candidates: Sequence[str], most: int) -> list[Order]:
    """Return at most `most` orders of the candidates, no two of which show the same texts in the same places.

    First the pool's own and its reverse, then each rotation with its reverse. That gives all six orders of three
    candidates. In twice as many orders as candidates, each one is first, and last, equally often. An empty pool has no
    order.
    """
    distinct, n = dict[tuple[str, ...], Order](), len(candidates)
    for start in range(n):
        rotation = (*range(start, n), *range(start))
        for order in (rotation, rotation[::-1]):
            if len(distinct) == most:
                return [*distinct.values()]
            distinct.setdefault(tuple(candidates[index] for index in order), order)
    return [*distinct.values()]


def _by_pool_index(order: Order, reply: Verdict | Abstention) -> Verdict | Abstention:
    """Return a reply about candidates that were shown in an order, as one about the pool."""
    if isinstance(reply, Abstention):
        return reply
    scores = None if reply.scores is None else tuple(reply.scores[order.index(index)] for index in range(len(order)))
    return replace(reply, preferred=order[reply.preferred], scores=scores)


def _journaled(order: Order, reply: Verdict | Abstention) -> dict[str, Any]:
    if isinstance(reply, Abstention):
        return {"order": [*order], "preferred": None, "abstained": reply.reason}
    scores = None if reply.scores is None else [*reply.scores]
    return {"order": [*order], "preferred": reply.preferred, "scores": scores, "rationale": reply.rationale}
