"""A judge that is asked in several orders, and whose preference counts only if all of them agree.

An LM tends to prefer the candidate in a certain place (Zheng et al. 2023, "Judging LLM-as-a-judge", section 3.3). The
remedy is theirs: ask again with the places changed, and do not count a preference that changes with them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import dspy

from eldgr_dspy.consultations import Reply, Verdict
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.consulting import Said
from eldgr_dspy.programs.judges.repeated_calls import (
    RepeatedCalls,
    Rounds,
    answers_of,
    classes_of,
    listed,
    require_read,
)
from eldgr_dspy.programs.one_call import Request, calls_of
from eldgr_dspy.questions import require_one_of
from eldgr_dspy.replies import read_reply

OnInconsistent = Literal["abstain", "average"]
Order = tuple[int, ...]
"""Pool indices in the order in which the candidates are shown."""


class SwapConsistent(RepeatedCalls):
    """Shows a judge the pool in several orders and passes on a preference that is the same in all of them.

        selector.judge = SwapConsistent(selector.judge)

    One consultation, with one call an order; all calls are made. Preferences are compared by answer, as answers vote,
    and not by candidate. A preference that changes is an abstention with reason `inconsistent`, or is replaced by the
    candidate with the highest mean score. If the judge gives no verdict in one order, the whole is an abstention; a
    reply that cannot be parsed is treated like a plain judge's. Scores are means over the orders.

    Attributes:
        judge: Any module in the judge's role.
        orders: How many orders. on_inconsistent: What to do with a preference that changes.
    """

    def __init__(self, judge: dspy.Module, orders: int = 2, on_inconsistent: OnInconsistent = "abstain") -> None:
        """Wrap a judge.

        Args:
            judge: Any module in the judge's role.
            orders: At least 2. A pool has at most twice as many orders as candidates, see `orders_of`; if it has
                fewer, all are asked.
            on_inconsistent: `abstain`, or `average`: the highest mean score wins, ties to the earliest candidate.

        Raises:
            ArgumentError: naming the argument.
        """
        super().__init__()
        if type(orders) is not int or orders < 2:
            raise ArgumentError(f"orders must be a whole number of at least 2; got {orders!r}. For 1, use the judge.")
        require_one_of("on_inconsistent", on_inconsistent, get_args(OnInconsistent))
        self.judge = judge
        self.orders = orders
        self.on_inconsistent: OnInconsistent = on_inconsistent

    def rounds(self, question: str, evidence: Sequence[str], candidates: Sequence[str]) -> Rounds:
        """Ask in each order; the rationale is the first order's, which is the pool's.

        `orders` is a list of objects with `order`, `preferred`, `scores` and `rationale`, or `abstained`, all by pool
        index.
        """
        orders = orders_of(candidates, self.orders)
        said = yield [Request(self.judge, _inputs(question, evidence, candidates, one), "judge") for one in orders]
        return self._settled(orders, said, candidates, len(evidence))

    def most_calls(self, candidates: Sequence[str]) -> int | None:
        """Return the calls of all orders; None if the judge does not say what one takes."""
        each = calls_of(self.judge, candidates)
        return None if each is None else len(orders_of(candidates, self.orders)) * each

    def _settled(
        self, orders: Sequence[Order], said: Sequence[Said], candidates: Sequence[str], n_passages: int
    ) -> dspy.Prediction:
        require_read(said)
        answers = answers_of(candidates)
        shown = [
            _Shown.read(order, reply.content, answers, n_passages) for order, reply in zip(orders, said, strict=True)
        ]
        fields = {**self._verdict(shown, answers), "orders": [showing.recorded() for showing in shown]}
        return dspy.Prediction(**fields)

    def _verdict(self, shown: "Sequence[_Shown]", answers: Sequence[str]) -> dict[str, Any]:
        if not shown:
            return {"abstained": "there is no candidate to judge"}
        preferred: list[int] = []
        for number, showing in enumerate(shown):
            if showing.preferred is None:
                return {"abstained": f"{showing.reason} (in order {number + 1} of {len(shown)})"}
            preferred.append(showing.preferred)
        chosen: int | None = preferred[0]
        classes = classes_of(answers)
        if len({classes[index] for index in preferred}) > 1:
            chosen = _best(shown, len(answers)) if self.on_inconsistent == "average" else None
        if chosen is None:
            return {"abstained": f"inconsistent: the orders prefer candidates {listed(preferred)}"}
        return {
            "preferred": chosen,
            "assessments": _mean_assessments(shown, len(answers)),
            "judge_rationale": shown[0].rationale,
        }


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


def _inputs(question: str, evidence: Sequence[str], candidates: Sequence[str], order: Order) -> dict[str, object]:
    return {"question": question, "evidence": evidence, "candidates": [candidates[index] for index in order]}


@dataclass(frozen=True, slots=True)
class _Shown:
    """The verdict in one order, by pool index; without one, `preferred` is None and `reason` says why."""

    order: Order
    preferred: int | None = None
    scores: tuple[float, ...] | None = None
    assessments: tuple[Mapping[str, Any], ...] | None = None
    rationale: str = ""
    reason: str = ""

    @classmethod
    def read(cls, order: Order, content: Mapping[str, Any], answers: Sequence[str], n_passages: int) -> "_Shown":
        """Read a judge's reply to candidates shown in an order, checked like any verdict."""
        reply: Reply = read_reply("judge", content, [answers[index] for index in order], n_passages)
        if not isinstance(reply, Verdict):
            return cls(order, reason=getattr(reply, "reason", ""))
        places = sorted(range(len(order)), key=order.__getitem__)
        given = content.get("assessments") or None
        return cls(
            order,
            order[reply.preferred],
            None if reply.scores is None else tuple(reply.scores[place] for place in places),
            None if given is None else tuple(given[place] for place in places),
            reply.rationale,
        )

    def recorded(self) -> dict[str, Any]:
        """Return the order as a journal has it."""
        if self.preferred is None:
            return {"order": list(self.order), "preferred": None, "abstained": self.reason}
        scores = None if self.scores is None else list(self.scores)
        verdict = {"preferred": self.preferred, "scores": scores, "rationale": self.rationale}
        return {"order": list(self.order), **verdict}


def _best(shown: Sequence[_Shown], n: int) -> int | None:
    """Return the candidate with the highest mean score, None if an order gave no scores."""
    scores = [showing.scores for showing in shown if showing.scores is not None]
    if len(scores) < len(shown):
        return None
    return max(range(n), key=[math.fsum(row[index] for row in scores) for index in range(n)].__getitem__)


def _mean_assessments(shown: Sequence[_Shown], n: int) -> list[dict[str, float | None]] | None:
    given = [showing.assessments for showing in shown if showing.assessments is not None]
    return [_mean([row[index] for row in given]) for index in range(n)] if len(given) == len(shown) else None


def _mean(assessments: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the mean of each aspect, None if an order lacks it."""
    means: dict[str, float | None] = {}
    for name in assessments[0]:
        values = [assessment[name] for assessment in assessments if assessment.get(name) is not None]
        means[name] = math.fsum(values) / len(values) if len(values) == len(assessments) else None
    return means
