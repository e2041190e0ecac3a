"""Compute results from decisions: each rule's score on a pool, its contrasts, and what it changed.

A `Tally` takes the rows one by one and keeps a few bytes for each, so that a pool need not be in memory; `summary()`
returns the pool's part of `summary.json`. Percentages are numbers from 0 to 100; an undefined value is None, never 0.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import Score
from eldgr_dspy.cases import Case
from eldgr_dspy.certifying import certify_again, is_withheld
from eldgr_dspy.consultations import Consultation
from eldgr_dspy.decision import Decision
from eldgr_dspy.figures.audit import Audit, Consulting, became
from eldgr_dspy.figures.authority import PoolBounds
from eldgr_dspy.figures.baselines import Baselines, judges_heard
from eldgr_dspy.figures.bounds import sways
from eldgr_dspy.figures.contrasts import as_figures, contrasts_of
from eldgr_dspy.figures.coverage import Confidence, risk_coverage, shipped
from eldgr_dspy.figures.judge_facts import JudgeFacts
from eldgr_dspy.figures.judges import Judges, flips_between
from eldgr_dspy.figures.remarks import Remarks
from eldgr_dspy.figures.results.summary import (
    AuditCounts,
    AuditInFull,
    Paired,
    PoolFigures,
    RuleContrast,
    RuleFigures,
    Scores,
    Shipping,
)
from eldgr_dspy.figures.rule_tally import RuleTally
from eldgr_dspy.named_judges import Asked, asked_by, first_of, judge_in, labelled, role_of, unlabelled
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.statistics import Contrast, contrast, contrast_by_cluster
from eldgr_dspy.words import ROLES, Consulted, Role, Task, is_role, roles_and

UNSCORED = -1
_WITHOUT_CERTIFICATES = ("first", "majority", "judge")
"""Rules that use no certificate, so that asking one does not add to their costs."""

_Scores = tuple[Score, Score]
"""An answer's score, and its score by the official script."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One rule's decision on one question, with the consultations that this rule needed.

    Attributes:
        decision: None if a role that the rule needs was never asked; `missing` names that role.
    """

    decision: Decision | None
    missing: Consulted | None = None
    consultations: Sequence[Consultation] = ()


class Tally:
    """The figures of one pool, taken row by row in the pool's order."""

    def __init__(self, task: Task, rules: Sequence[str]) -> None:
        self._type = answer_type(task)
        self.task = self._type.name
        self.n = self.n_scored = self.failed = 0
        self.ties = self.most = self.without_answer = self.conflicts = 0
        self.fewest: int | None = None
        self.audits = {name: Audit(task) for name in rules if unlabelled(name) == "eldgr"}
        self._remarks = Remarks(task)
        self._rules = {name: RuleTally() for name in rules}
        self._bounds = PoolBounds(task, rules)
        self._locked = first_of("eldgr", rules)
        self._judges = Judges(rules)
        self._baselines = Baselines(task)
        self._shares = array("d")
        self._clusters: dict[int, int] = {}
        self._cluster = array("q")
        self._sways: Counter[str] = Counter()

    def add(
        self,
        case: Case,
        gold: Sequence[str],
        outcomes: Mapping[str, Outcome],
        failed: Collection[Asked],
        sources: Sequence[str | None] = (),
    ) -> dict[str, Score | None]:
        """Take one question. Returns each rule's score, None without a gold answer or a decision.

        Args:
            failed: Who had a call for this question that failed; the question decided as if they had abstained, stays
                in n and is not counted among abstentions.
            sources: Where each candidate comes from, None where unknown.
        """
        self.n += 1
        if any(outcome.missing == "certificate" for outcome in outcomes.values()):
            certify_again(case, {})
            self._bounds.withhold()
            self._baselines.withhold()
        self._count(case)
        used = [asked for outcome in outcomes.values() for asked in outcome.consultations]
        self._remarks.add(case, used)
        heard = judges_heard(case, used)
        self._baselines.add(case, gold, sources, heard)
        self.failed += bool(failed)
        if gold:
            self.n_scored += 1
            text = hash(folded_question(case.question.text))
            self._cluster.append(self._clusters.setdefault(text, len(self._clusters)))

        @cache
        def scores_of(answer: str | None) -> _Scores:
            """An answer's score and its official one."""
            return case.type.score(answer, gold), case.type.official_score(answer, gold)

        scored = scores_of if gold else None
        scores = {name: self._take(name, case, outcome, scored) for name, outcome in outcomes.items()}
        if gold:
            self._bounds.add(case, gold)
        else:  # here the value of a judge's preference is unknown, but not whether it can matter
            self._sways.update(name for name in self._rules if sways(case.rule(name), case, "judge"))
        if self._judges:
            self._judges.add(case, used, heard, (lambda answer: scores_of(answer)[0].em) if gold else None)
        for name, audit in self.audits.items():
            eldgr = outcomes.get(name)
            if eldgr and eldgr.decision:
                after = scores[name]
                before = scores_of(eldgr.decision.consensus)[0] if gold else None
                outcome = became(before.em, after.em) if before and after else "unscored"
                own: set[Consulted] = {role_of(asked) for asked in failed if asked == asked_by(name, role_of(asked))}
                audit.add(case, eldgr.decision, outcome, own)
        return scores

    def _count(self, case: Case) -> None:
        n, classes = len(case.question.answers), case.vote.classes
        self.fewest = n if self.fewest is None else min(self.fewest, n)
        self.most = max(self.most, n)
        self.without_answer += classes.count(None)
        self.ties += case.vote.tie
        self.conflicts += self._type.way == "evidence" and case.n_certified > 1
        self._shares.append(classes.count(case.vote.winner) / n if case.vote.winner is not None else 0.0)

    def _take(
        self, name: str, case: Case, outcome: Outcome, scores_of: Callable[[str | None], _Scores] | None
    ) -> Score | None:
        tally = self._rules[name]
        if outcome.decision is None:
            if outcome.missing:
                tally.missing[outcome.missing] += 1
            return None
        bare = unlabelled(name) in _WITHOUT_CERTIFICATES
        tally.add([asked for asked in outcome.consultations if is_role(asked.role) or not bare])
        tally.trusted.append(not is_withheld(case, outcome.decision))
        tally.answered.append(outcome.decision.answer is not None)
        if scores_of is None:
            tally.em.append(UNSCORED)
            return None
        scored, official = scores_of(outcome.decision.answer)
        tally.em.append(scored.em)
        if scored.f1 is not None:
            tally.f1.append(scored.f1)
        tally.official_em += official.em
        tally.official_f1 += official.f1 or 0.0
        tally.is_official &= official == scored
        return scored

    # -- figures ------------------------------------------------------------------------------------------------------

    def summary(self, facts: Mapping[str, JudgeFacts] | None = None) -> PoolFigures:
        """Return the pool's part of `summary.json`; `facts` are those of the named judges, see `judge_facts`."""
        facts, lacking = facts or {}, self._judges.lacking()
        withheld = {name: dict(tally.missing) for name, tally in self._rules.items() if tally.missing}
        withheld |= {name: {"judge": self.n} for name in self._rules if judge_in(name) in lacking}
        whole = {name: tally for name, tally in self._rules.items() if name not in withheld}
        ends = self._bounds.figures([name for name in self._rules if judge_in(name) in lacking])
        audit, decided = self._audited(self._locked, whole)
        figures: PoolFigures = {
            "n": self.n,
            "n_scored": self.n_scored,
            "n_distinct": len(self._clusters),
            "n_failed": self.failed,
            "task": self.task,
            "ties": self.ties,
            "candidates": {"fewest": self.fewest, "most": self.most, "without_answer": self.without_answer},
            "conflicts": self.conflicts if self._type.way == "evidence" else None,
            "rules": {name: self._figures(tally) for name, tally in whole.items()},
            "withheld": withheld,
            "contrasts": self._contrasts(whole, [name for name, of in facts.items() if of["positioned"]]),
            "bounds": ends["bounds"],
            "bounds_any_span": ends["bounds_any_span"],
            "price": ends["price"],
            "baselines": self._baselines.figures(
                self._paired, {labelled("judge", name): why for name, why in lacking.items()}
            ),
            "can_change": self._can_change(),
            "audit": audit,
            "decided": decided,
            "risk_coverage": {name: risk_coverage(self._confidences(tally)) for name, tally in whole.items()}
            if self.n_scored
            else {},
            "shipping": {name: self._shipping(tally) for name, tally in whole.items()},
            "remarks": [*self._remarks.sentences(), *self._on_officials(whole)],
        }
        if self._type.is_own:
            figures["answer_type"] = {"way": self._type.way, "scores": [*self._type.scores]}
        if self._judges:
            figures["judges"] = self._judges.figures(figures, {name: tally.em for name, tally in whole.items()}, facts)
            for judge, of in figures["judges"].items():
                of["audit"], of["decided"] = self._audited(labelled("eldgr", judge), whole)
        return figures

    def _on_officials(self, whole: Mapping[str, RuleTally]) -> Iterator[str]:
        """A sentence if marks around answers would have changed a score."""
        officials = {name: self._official(tally) for name, tally in whole.items() if not tally.is_official}
        if officials:
            said = ", ".join(
                f"{name} {official['em']:.2f}" + (f" (F1 {official['f1']:.2f})" if official["f1"] is not None else "")
                for name, official in officials.items()
            )
            yield (
                "Marks around an answer are taken off before it is scored."
                f" The official score of the raw texts differs: {said}."
            )

    def _can_change(self) -> dict[str, dict[Role, float]] | None:
        """The share of questions on which the judge can change what ships; None with gold answers."""
        if self.n_scored or not self.n:
            return None
        return {name: {"judge": 100.0 * self._sways[name] / self.n} for name in self._rules}

    def _audited(self, locked: str, whole: Mapping[str, RuleTally]) -> tuple[AuditCounts | None, AuditInFull | None]:
        """The audit of `eldgr`, or of `eldgr[NAME]`, in short and in full; None without its result."""
        if locked not in whole:
            return None, None
        return self.audits[locked].counts(scored=self.n_scored > 0), self._decided(locked, whole)

    def _decided(self, locked: str, whole: Mapping[str, RuleTally]) -> AuditInFull:
        """The audit in full."""
        eldgr, judge, audit = whole[locked], asked_by(locked, "judge"), self.audits[locked]
        return {
            "outcomes": audit.outcomes(),
            "flips": {
                name: flips_between(whole[name].em, eldgr.em) for name in ("first", "majority", judge) if name in whole
            },
            "funnel": audit.funnel(),
            "silences": audit.silences(),
            "laziness": {
                **audit.laziness({role: self._consulting(asked_by(locked, role)) for role in ROLES}),
                "calls": eldgr.calls.total(),
                "seconds": round(sum(eldgr.seconds.values()), 3),
            },
        }

    def _consulting(self, asked: Asked) -> Consulting:
        """The cost of asking a role, or a named judge, by the rule that asked it most often."""
        role = role_of(asked)
        widest = max(
            (tally for name, tally in self._rules.items() if asked_by(name, role) == asked),
            key=lambda tally: tally.asked[role],
        )
        return Consulting(widest.asked[role], widest.calls[role], widest.seconds[role])

    def _confidences(self, tally: RuleTally) -> Iterator[tuple[Confidence, bool]]:
        for trusted, share, em in zip(tally.trusted, self._shares, tally.em, strict=True):
            if em != UNSCORED:
                yield (bool(trusted), share), bool(em)

    def _shipping(self, tally: RuleTally) -> Shipping:
        right, answered = np.array(tally.em, np.int8), np.array(tally.answered, bool)
        certified, texts = answered & np.array(tally.trusted, bool), np.array(self._cluster, np.int64)
        return {"abstain": shipped(certified, right, texts), "consensus": shipped(answered, right, texts)}

    def _figures(self, tally: RuleTally) -> RuleFigures:
        asked = roles_and({role for other in self._rules.values() for role in other.asked})
        return {
            "em": _percentage(sum(1 for right in tally.em if right == 1), self.n_scored),
            "f1": _percentage(sum(tally.f1), self.n_scored) if self._type.has_f1 else None,
            "official": None if tally.is_official else self._official(tally),
            "calls": {role: tally.calls[role] for role in asked},
            "asked": {role: tally.asked[role] for role in asked},
            "tokens": {role: None if role in tally.uncounted else tally.tokens[role] for role in asked},
            "seconds": round(sum(tally.seconds.values()), 3),
        }

    def _official(self, tally: RuleTally) -> Scores:
        """The official scores of the raw texts, where stripping changed any."""
        return {
            "em": _percentage(tally.official_em, self.n_scored),
            "f1": _percentage(tally.official_f1, self.n_scored) if self._type.has_f1 else None,
        }

    def _contrasts(self, whole: Mapping[str, RuleTally], untested: Collection[str]) -> list[RuleContrast]:
        if not self.n_scored:
            return []

        def paired(rule: str, against: str) -> Paired:
            return self._contrast(whole[rule], whole[against])

        return contrasts_of(whole, [*self._judges], paired, untested)

    def _contrast(self, rule: RuleTally, other: RuleTally) -> Paired:
        em = self._paired(*([100.0 * right for right in tally.em if right != UNSCORED] for tally in (rule, other)))
        graded = self._paired(*([100.0 * f1 for f1 in tally.f1] for tally in (rule, other))) if rule.f1 else None
        return as_figures(em, graded)

    def _paired(self, rule: Sequence[float], against: Sequence[float]) -> Contrast:
        """A contrast in which a repeated question counts once; see `statistics.clusters`."""
        if len(self._clusters) == self.n_scored:
            return contrast(rule, against)
        return contrast_by_cluster(rule, against, self._cluster)


def _percentage(total: float, n: int) -> float | None:
    return 100.0 * total / n if n else None
