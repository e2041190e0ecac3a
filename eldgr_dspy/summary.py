"""From decisions to figures: what each rule was worth on a pool, how it compares, and what it changed.

A `Tally` takes the rows one by one and keeps a few bytes for each, so that a pool need not be in memory; `summary()`
gives the part of `summary.json` that belongs to the pool. Percentages are numbers from 0 to 100; what is undefined is
None, never 0.
"""

from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eldgr_dspy.answers import Score, score
from eldgr_dspy.audit import Audit
from eldgr_dspy.authority import PoolBounds
from eldgr_dspy.cases import Case
from eldgr_dspy.decision import Decision
from eldgr_dspy.statistics import Contrast, contrast, holm
from eldgr_dspy.words import ROLES, Role, Task

UNSCORED = -1


@dataclass(frozen=True, slots=True)
class Outcome:
    """One rule's decision on one question, with what it alone needed.

    Attributes:
        decision: None where a role that the rule needs was never asked; `missing` names that role.
        calls: LM requests a role. seconds: the time that its consultations took.
    """

    decision: Decision | None
    missing: Role | None = None
    calls: Mapping[Role, int] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(slots=True)
class _RuleTally:
    """What is kept of one rule: a byte for right or wrong and a double for F1 a question, and sums."""

    em: "array[int]" = field(default_factory=lambda: array("b"))
    f1: "array[float]" = field(default_factory=lambda: array("d"))
    calls: Counter[Role] = field(default_factory=Counter)
    asked: Counter[Role] = field(default_factory=Counter)
    missing: Counter[Role] = field(default_factory=Counter)
    seconds: float = 0.0


class Tally:
    """The figures of one pool, taken row by row in the pool's order."""

    def __init__(self, task: Task, rules: Sequence[str]) -> None:
        self.task: Task = task
        self.n = self.n_scored = self.failed = 0
        self.ties = self.most = self.without_answer = 0
        self.fewest: int | None = None
        self.audit = Audit()
        self._rules = {name: _RuleTally() for name in rules}
        self._bounds = PoolBounds(task, rules)

    def add(
        self, case: Case, gold: Sequence[str], outcomes: Mapping[str, Outcome], failed: Collection[Role]
    ) -> dict[str, Score | None]:
        """Take one question. Returns each rule's score, None where there is no gold answer or no decision.

        Args:
            failed: The roles whose call for this question did not come through; it decided as with a silent role, stays
                in n and is counted apart from abstentions.
        """
        self.n += 1
        self._count(case)
        self.failed += bool(failed)
        self.n_scored += bool(gold)
        scores = {name: self._take(name, outcome, gold) for name, outcome in outcomes.items()}
        if gold:
            self._bounds.take(case, gold)
        eldgr = outcomes.get("eldgr")
        if eldgr and eldgr.decision:
            self.audit.take(case, eldgr.decision, gold, failed)
        return scores

    def _count(self, case: Case) -> None:
        n = len(case.question.answers)
        self.fewest = n if self.fewest is None else min(self.fewest, n)
        self.most = max(self.most, n)
        self.without_answer += case.vote.classes.count(None)
        self.ties += case.vote.tie

    def _take(self, name: str, outcome: Outcome, gold: Sequence[str]) -> Score | None:
        tally = self._rules[name]
        if outcome.decision is None:
            if outcome.missing:
                tally.missing[outcome.missing] += 1
            return None
        tally.asked.update(outcome.decision.consulted)
        tally.calls.update(outcome.calls)
        tally.seconds += outcome.seconds
        found = score(outcome.decision.answer, gold, self.task) if gold else None
        tally.em.append(UNSCORED if found is None else found.em)
        if found is not None and found.f1 is not None:
            tally.f1.append(found.f1)
        return found

    # -- figures ------------------------------------------------------------------------------------------------------

    def summary(self) -> dict[str, Any]:
        """Return the pool's part of `summary.json`."""
        whole = {name: tally for name, tally in self._rules.items() if not tally.missing}
        return {
            "n": self.n,
            "n_scored": self.n_scored,
            "n_failed": self.failed,
            "task": self.task,
            "ties": self.ties,
            "candidates": {"fewest": self.fewest, "most": self.most, "without_answer": self.without_answer},
            "rules": {name: self._figures(tally) for name, tally in whole.items()},
            "withheld": {name: dict(tally.missing) for name, tally in self._rules.items() if tally.missing},
            "contrasts": self._contrasts(whole),
            **self._bounds.figures(),
            "audit": self._audit() if "eldgr" in whole else None,
        }

    def _audit(self) -> dict[str, int | None]:
        """The audit's counts; without gold answers nobody can say what a flip did."""
        unknown = {} if self.n_scored else {"correct_to_incorrect": None, "incorrect_to_correct": None}
        return {**self.audit.counts(), **unknown}

    def _figures(self, tally: _RuleTally) -> dict[str, Any]:
        return {
            "em": _percentage(sum(1 for right in tally.em if right == 1), self.n_scored),
            "f1": _percentage(sum(tally.f1), self.n_scored) if self.task == "retrieval" else None,
            "calls": {role: tally.calls[role] for role in ROLES},
            "asked": {role: tally.asked[role] for role in ROLES},
            "seconds": round(tally.seconds, 3),
        }

    def _contrasts(self, whole: Mapping[str, _RuleTally]) -> list[dict[str, Any]]:
        pairs = [("eldgr", other) for other in whole if other != "eldgr"]
        pairs += [(other, "majority") for other in whole if other not in ("eldgr", "majority", "first")]
        if not self.n_scored:
            return []
        found = [self._contrast(*pair, whole) for pair in pairs if set(pair) <= set(whole)]
        adjusted = holm([one["p"] for one in found])
        return [{**one, "p_holm": p} for one, p in zip(found, adjusted, strict=True)]

    def _contrast(self, rule: str, against: str, whole: Mapping[str, _RuleTally]) -> dict[str, Any]:
        one, other = whole[rule], whole[against]
        found = contrast(*([100.0 * right for right in tally.em if right != UNSCORED] for tally in (one, other)))
        graded = contrast(*([100.0 * f1 for f1 in tally.f1] for tally in (one, other))) if one.f1 else None
        return {
            "rule": rule,
            "against": against,
            **_difference(found),
            "p": found.p,
            "wins": found.wins,
            "losses": found.losses,
            "f1": graded and _difference(graded),
        }


def _difference(found: Contrast) -> dict[str, Any]:
    return {"delta": found.delta, "ci": list(found.interval), "bca": found.bca and list(found.bca)}


def _percentage(total: float, n: int) -> float | None:
    return 100.0 * total / n if n else None
