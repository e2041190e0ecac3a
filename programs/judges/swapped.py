"""A judge that is asked in several orders, and whose preference counts only if all of them agree.

An LM tends to prefer the candidate in a certain place (Zheng et al. 2023, "Judging LLM-as-a-judge", section 3.3). The
remedy is theirs: ask again with the places changed, and do not count a preference that changes with them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import dspy

from eldgr_dspy.consultations import Abstention, Verdict
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.judges.counting import abstained
from eldgr_dspy.programs.judges.repeated_calls import (
    RepeatedCalls,
    Rounds,
    answers_of,
    classes_of,
    listed,
    read_verdict,
    require_read,
)
from eldgr_dspy.programs.one_call import Request, calls_of

Order = tuple[int, ...]
"""Pool indices in the order in which the candidates are shown."""


class SwapConsistent(RepeatedCalls):
    """Shows a judge the pool in several orders and passes on a preference that is the same in all of them.

        selector.judge = SwapConsistent(selector.judge)

    One consultation, with one call an order; all calls are made. Preferences are compared by answer, as answers vote,
    and not by candidate. A preference that changes is an abstention with reason `inconsistent`. If the judge gives no
    verdict in one order, the whole is an abstention; a reply that cannot be parsed is treated like a plain judge's.
    Scores are means over the orders.

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
        said = yield [
            Request(self.judge, {**about, "candidates": [candidates[index] for index in order]}, "judge")
            for order in orders
        ]
        require_read(said)
        answers = answers_of(candidates)
        replies = [
            read_verdict(one.content, [answers[index] for index in order], len(evidence))
            for order, one in zip(orders, said, strict=True)
        ]
        shown = [*map(_recorded, orders, replies)]
        verdicts = [reply for reply in replies if isinstance(reply, Verdict)]
        for number, why in enumerate(replies, start=1):
            if isinstance(why, Abstention):
                reason = f"{why.reason} (in order {number} of {len(orders)})"
                return abstained(replace(why, reason=reason), orders=shown)
        preferred = [order[verdict.preferred] for order, verdict in zip(orders, verdicts, strict=True)]
        classes = classes_of(answers)
        if len({classes[index] for index in preferred}) > 1:
            changed = f"the orders prefer candidates {listed(preferred)}"
            return abstained(Abstention.of("inconsistent", changed), orders=shown)
        return dspy.Prediction(
            preferred=preferred[0],
            assessments=_mean_assessments(orders, [one.content.get("assessments") for one in said]),
            judge_rationale=verdicts[0].rationale,
            orders=shown,
        )

    def most_calls(self, candidates: Sequence[str]) -> int | None:
        """Return the calls of all orders; None if the judge does not say what one takes."""
        each = calls_of(self.judge, candidates)
        return None if each is None else len(orders_of(candidates, self.orders)) * each


def orders_of(candidates: Sequence[str], most: int) -> list[Order]:
    """Return at most `most` orders of the candidates, no two of which show the same texts in the same places.

    First the pool's own and its reverse, then each rotation with its reverse. That gives all six orders of three
    candidates. In twice as many orders as candidates, each one is first, and last, equally often. An empty pool has no
    order.
    """
    distinct: dict[tuple[str, ...], Order] = {}
    for order in _turns(len(candidates)):
        distinct.setdefault(tuple(candidates[index] for index in order), order)
        if len(distinct) == most:
            break
    return list(distinct.values())


def _turns(n: int) -> Iterator[Order]:
    for start in range(n):
        turned = tuple((start + place) % n for place in range(n))
        yield turned
        yield turned[::-1]


def _recorded(order: Order, reply: Verdict | Abstention) -> dict[str, Any]:
    """A reply as a journal has it, by pool index."""
    if isinstance(reply, Abstention):
        return {"order": [*order], "preferred": None, "abstained": reply.reason}
    scores = None if reply.scores is None else _by_index(order, reply.scores)
    return {"order": [*order], "preferred": order[reply.preferred], "scores": scores, "rationale": reply.rationale}


def _by_index(order: Order, shown: Sequence[Any]) -> list[Any]:
    return [shown[order.index(index)] for index in range(len(order))]


def _mean_assessments(
    orders: Sequence[Order], shown: Sequence[Sequence[Mapping[str, Any]] | None]
) -> list[dict[str, float | None]] | None:
    """The mean of each aspect for each candidate, None if an order lacks it; None if an order has no assessments."""
    rows = [_by_index(order, row) for order, row in zip(orders, shown, strict=True) if row]
    return [*map(_mean, zip(*rows, strict=True))] if len(rows) == len(orders) else None


def _mean(assessments: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    values: dict[str, list[Any]] = {name: [one.get(name) for one in assessments] for name in assessments[0]}
    return {name: None if None in of else math.fsum(of) / len(of) for name, of in values.items()}
