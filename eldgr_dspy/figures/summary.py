"""From decisions to figures: what each rule was worth on a pool, how it compares, and what it changed.

A `Tally` takes the rows one by one and keeps a few bytes for each, so that a pool need not be in memory; `summary()`
gives the part of `summary.json` that belongs to the pool. Percentages are numbers from 0 to 100; what is undefined is
None, never 0.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from eldgr_dspy.answers import Score, official_score, score
from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Consultation
from eldgr_dspy.decision import Decision
from eldgr_dspy.figures.audit import Audit, Consulting, became
from eldgr_dspy.figures.authority import PoolBounds
from eldgr_dspy.figures.bounds import sways
from eldgr_dspy.figures.coverage import Confidence, risk_coverage
from eldgr_dspy.figures.remarks import Remarks
from eldgr_dspy.figures.results.summary import (
    AuditCounts,
    AuditInFull,
    Difference,
    Flips,
    Paired,
    PoolFigures,
    RuleContrast,
    RuleFigures,
    Scores,
)
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.statistics import Contrast, contrast, contrast_by_cluster, holm
from eldgr_dspy.words import ROLES, Role, Task

UNSCORED = -1

_Scores = tuple[Score, Score]
"""An answer's score, and its score by the official script."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One rule's decision on one question, with the consultations that it alone needed.

    Attributes:
        decision: None where a role that the rule needs was never asked; `missing` names that role.
    """

    decision: Decision | None
    missing: Role | None = None
    consultations: Sequence[Consultation] = ()


@dataclass(slots=True)
class _RuleTally:
    """What is kept of one rule: a byte each for right and trusted and a double for F1 a question, and sums a role.

    The official scores are those of the raw texts; `is_official` says that no question's differs from its score.
    """

    em: "array[int]" = field(default_factory=lambda: array("b"))
    trusted: "array[int]" = field(default_factory=lambda: array("b"))
    f1: "array[float]" = field(default_factory=lambda: array("d"))
    official_em: int = 0
    official_f1: float = 0.0
    is_official: bool = True
    calls: Counter[Role] = field(default_factory=Counter)
    asked: Counter[Role] = field(default_factory=Counter)
    missing: Counter[Role] = field(default_factory=Counter)
    tokens: Counter[Role] = field(default_factory=Counter)
    uncounted: set[Role] = field(default_factory=set)
    seconds: dict[Role, float] = field(default_factory=lambda: defaultdict(float))

    def take(self, consultations: Sequence[Consultation]) -> None:
        """Take what a question asked."""
        for one in consultations:
            self.asked[one.role] += 1
            self.calls[one.role] += one.calls
            self.seconds[one.role] += one.seconds or 0.0
            if not one.calls:
                continue
            if one.prompt_tokens is None or one.completion_tokens is None:
                self.uncounted.add(one.role)
            else:
                self.tokens[one.role] += one.prompt_tokens + one.completion_tokens


class Tally:
    """The figures of one pool, taken row by row in the pool's order."""

    def __init__(self, task: Task, rules: Sequence[str]) -> None:
        self.task: Task = task
        self.n = self.n_scored = self.failed = 0
        self.ties = self.most = self.without_answer = 0
        self.fewest: int | None = None
        self.audit = Audit(task)
        self._remarks = Remarks(task)
        self._rules = {name: _RuleTally() for name in rules}
        self._bounds = PoolBounds(task, rules)
        self._shares = array("d")
        self._clusters: dict[int, int] = {}
        self._cluster = array("q")
        self._sways: Counter[str] = Counter()

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
        self._remarks.take(case, [one for outcome in outcomes.values() for one in outcome.consultations])
        self.failed += bool(failed)
        if gold:
            self.n_scored += 1
            text = hash(folded_question(case.question.text))
            self._cluster.append(self._clusters.setdefault(text, len(self._clusters)))
        found: dict[str | None, _Scores] = {}
        scores = {name: self._take(name, outcome, gold, found) for name, outcome in outcomes.items()}
        if gold:
            self._bounds.take(case, gold)
        else:  # nobody knows what a judge's preference is worth there, but still whether it can matter
            self._sways.update(name for name in self._rules if sways(case.rule(name), case, "judge"))
        eldgr = outcomes.get("eldgr")
        if eldgr and eldgr.decision:
            after = scores["eldgr"]
            before = self._scores(eldgr.decision.consensus, gold, found)[0] if gold else None
            outcome = became(before.em, after.em) if before and after else "unscored"
            self.audit.take(case, eldgr.decision, outcome, failed)
        return scores

    def _count(self, case: Case) -> None:
        n, classes = len(case.question.answers), case.vote.classes
        self.fewest = n if self.fewest is None else min(self.fewest, n)
        self.most = max(self.most, n)
        self.without_answer += classes.count(None)
        self.ties += case.vote.tie
        self._shares.append(classes.count(case.vote.winner) / n if case.vote.winner is not None else 0.0)

    def _take(self, name: str, outcome: Outcome, gold: Sequence[str], found: dict[str | None, _Scores]) -> Score | None:
        tally = self._rules[name]
        if outcome.decision is None:
            if outcome.missing:
                tally.missing[outcome.missing] += 1
            return None
        tally.take(outcome.consultations)
        tally.trusted.append(outcome.decision.certified is not False)
        if not gold:
            tally.em.append(UNSCORED)
            return None
        scored, official = self._scores(outcome.decision.answer, gold, found)
        tally.em.append(scored.em)
        if scored.f1 is not None:
            tally.f1.append(scored.f1)
        tally.official_em += official.em
        tally.official_f1 += official.f1 or 0.0
        tally.is_official &= official == scored
        return scored

    def _scores(self, answer: str | None, gold: Sequence[str], found: dict[str | None, _Scores]) -> _Scores:
        """An answer's score and its official one, made once a question."""
        if answer not in found:
            found[answer] = score(answer, gold, self.task), official_score(answer, gold, self.task)
        return found[answer]

    # -- figures ------------------------------------------------------------------------------------------------------

    def summary(self) -> PoolFigures:
        """Return the pool's part of `summary.json`."""
        whole = {name: tally for name, tally in self._rules.items() if not tally.missing}
        return {
            "n": self.n,
            "n_scored": self.n_scored,
            "n_distinct": len(self._clusters),
            "n_failed": self.failed,
            "task": self.task,
            "ties": self.ties,
            "candidates": {"fewest": self.fewest, "most": self.most, "without_answer": self.without_answer},
            "rules": {name: self._figures(tally) for name, tally in whole.items()},
            "withheld": {name: dict(tally.missing) for name, tally in self._rules.items() if tally.missing},
            "contrasts": self._contrasts(whole),
            **self._bounds.figures(),
            "can_change": self._can_change(),
            "audit": self._audit() if "eldgr" in whole else None,
            "decided": self._decided(whole) if "eldgr" in whole else None,
            "risk_coverage": {name: risk_coverage(self._confidences(tally)) for name, tally in whole.items()}
            if self.n_scored
            else {},
            "remarks": [*self._remarks.sentences(), *self._on_officials(whole)],
        }

    def _on_officials(self, whole: Mapping[str, _RuleTally]) -> Iterator[str]:
        """A sentence where marks around answers would have changed a score."""
        found = {name: self._official(tally) for name, tally in whole.items() if not tally.is_official}
        if found:
            said = ", ".join(
                f"{name} {official['em']:.2f}" + (f" (F1 {official['f1']:.2f})" if official["f1"] is not None else "")
                for name, official in found.items()
            )
            yield (
                "Marks around an answer are taken off before it is scored."
                f" The official score of the raw texts differs: {said}."
            )

    def _can_change(self) -> dict[str, dict[Role, float]] | None:
        """On which share of the questions the judge can change what ships; None where a gold answer says what for."""
        if self.n_scored or not self.n:
            return None
        return {name: {"judge": 100.0 * self._sways[name] / self.n} for name in self._rules}

    def _decided(self, whole: Mapping[str, _RuleTally]) -> AuditInFull:
        """The audit in full."""
        eldgr = whole["eldgr"]
        return {
            "outcomes": self.audit.outcomes(),
            "flips": {
                name: self._flips(eldgr, whole[name]) for name in ("first", "majority", "judge") if name in whole
            },
            "funnel": self.audit.funnel(),
            "silences": self.audit.silences(),
            "laziness": {
                **self.audit.laziness({role: self._consulting(role) for role in ROLES}),
                "calls": eldgr.calls.total(),
                "seconds": round(sum(eldgr.seconds.values()), 3),
            },
        }

    def _flips(self, eldgr: _RuleTally, other: _RuleTally) -> Flips:
        if not self.n_scored:
            return {"correct_to_incorrect": None, "incorrect_to_correct": None}
        pairs = Counter(zip(other.em, eldgr.em, strict=True))
        return {"correct_to_incorrect": pairs[1, 0], "incorrect_to_correct": pairs[0, 1]}

    def _consulting(self, role: Role) -> Consulting:
        """What asking a role came to, by the rule that asked it most often."""
        widest = max(self._rules.values(), key=lambda tally: tally.asked[role])
        return Consulting(widest.asked[role], widest.calls[role], widest.seconds[role])

    def _confidences(self, tally: _RuleTally) -> Iterator[tuple[Confidence, bool]]:
        for trusted, share, em in zip(tally.trusted, self._shares, tally.em, strict=True):
            if em != UNSCORED:
                yield (bool(trusted), share), bool(em)

    def _audit(self) -> AuditCounts:
        """The audit's counts; without gold answers nobody can say what a flip did."""
        counts = self.audit.counts()
        if not self.n_scored:
            counts["correct_to_incorrect"] = counts["incorrect_to_correct"] = None
        return counts

    def _figures(self, tally: _RuleTally) -> RuleFigures:
        return {
            "em": _percentage(sum(1 for right in tally.em if right == 1), self.n_scored),
            "f1": _percentage(sum(tally.f1), self.n_scored) if self.task == "retrieval" else None,
            "official": None if tally.is_official else self._official(tally),
            "calls": {role: tally.calls[role] for role in ROLES},
            "asked": {role: tally.asked[role] for role in ROLES},
            "tokens": {role: None if role in tally.uncounted else tally.tokens[role] for role in ROLES},
            "seconds": round(sum(tally.seconds.values()), 3),
        }

    def _official(self, tally: _RuleTally) -> Scores:
        """The official scores of the raw texts, where stripping changed any."""
        return {
            "em": _percentage(tally.official_em, self.n_scored),
            "f1": _percentage(tally.official_f1, self.n_scored) if self.task == "retrieval" else None,
        }

    def _contrasts(self, whole: Mapping[str, _RuleTally]) -> list[RuleContrast]:
        pairs = [("eldgr", other) for other in whole if other != "eldgr"]
        pairs += [(other, "majority") for other in whole if other not in ("eldgr", "majority", "first")]
        if not self.n_scored:
            return []
        found = {pair: self._contrast(whole[pair[0]], whole[pair[1]]) for pair in pairs if set(pair) <= set(whole)}
        adjusted = holm([one["p"] for one in found.values()])
        return [
            {"rule": rule, "against": against, **one, "p_holm": p}
            for ((rule, against), one), p in zip(found.items(), adjusted, strict=True)
        ]

    def _contrast(self, one: _RuleTally, other: _RuleTally) -> Paired:
        found = self._paired(*([100.0 * right for right in tally.em if right != UNSCORED] for tally in (one, other)))
        graded = self._paired(*([100.0 * f1 for f1 in tally.f1] for tally in (one, other))) if one.f1 else None
        return as_figures(found, graded)

    def _paired(self, rule: Sequence[float], against: Sequence[float]) -> Contrast:
        """A contrast in which a question that stands several times counts once; see `statistics.clusters`."""
        if len(self._clusters) == self.n_scored:
            return contrast(rule, against)
        return contrast_by_cluster(rule, against, self._cluster)


def as_figures(found: Contrast, graded: Contrast | None) -> Paired:
    """Return a contrast of right and wrong, with that of F1 where there is one, as `summary.json` has it."""
    return {
        **_difference(found),
        "p": found.p,
        "wins": found.wins,
        "losses": found.losses,
        "notes": list(found.notes),
        "f1": None if graded is None else _difference(graded),
    }


def _difference(found: Contrast) -> Difference:
    return {"delta": found.delta, "ci": list(found.interval), "bca": found.bca and list(found.bca)}


def _percentage(total: float, n: int) -> float | None:
    return 100.0 * total / n if n else None
