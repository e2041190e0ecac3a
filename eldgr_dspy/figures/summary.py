"""Compute results from decisions: each rule's score on a pool, its contrasts, and what it changed.

A `Tally` takes the rows one by one and counts them by what the figures need, so that a pool need not be in memory;
`summary()` returns the pool's part of `summary.json`. Percentages are numbers from 0 to 100; an undefined value is
None, never 0.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType, Score
from eldgr_dspy.answers import official_score, score
from eldgr_dspy.cases import Case
from eldgr_dspy.certifying import certify_again, is_withheld
from eldgr_dspy.consultations import Consultation
from eldgr_dspy.decision import Decision
from eldgr_dspy.figures.audit import Audit, Consulting, became
from eldgr_dspy.figures.authority import PoolBounds
from eldgr_dspy.figures.baselines import Baselines, judges_heard
from eldgr_dspy.figures.bounds import sways
from eldgr_dspy.figures.contrasts import contrasts_of
from eldgr_dspy.figures.distinct import Distinct
from eldgr_dspy.figures.judge_facts import JudgeFacts
from eldgr_dspy.figures.judges import Judges
from eldgr_dspy.figures.remarks import Remarks
from eldgr_dspy.figures.results.summary import (
    AuditCounts,
    AuditInFull,
    PoolFigures,
    RuleContrast,
    RuleFigures,
)
from eldgr_dspy.figures.rule_tally import RuleTally
from eldgr_dspy.figures.scored import Marked, Marks, Scored
from eldgr_dspy.named_judges import Asked, asked_by, first_of, judge_in, labelled, role_of, unlabelled
from eldgr_dspy.words import ROLES, Consulted, Role, Task, is_role, roles_and

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
        self.task = answer_type(task).name_in_files
        self.n = self.failed = 0
        self.ties = self.most = self.without_answer = self.conflicts = 0
        self.fewest: int | None = None
        self.audits = {name: Audit(task) for name in rules if unlabelled(name) == "eldgr"}
        self._remarks = Remarks(task)
        self._rules = {name: RuleTally() for name in rules}
        self._bounds = PoolBounds(task, rules)
        self._locked = first_of("eldgr", rules)
        self._judges = Judges(rules)
        self._baselines = Baselines(task, (labelled("judge", judge_in(name)) for name in rules))
        self._marks = Distinct[Marks]()
        self._sways: Counter[tuple[str, Role]] = Counter()

    @property
    def _type(self) -> AnswerType:  # a user's type need not survive being pickled
        return answer_type(self.task)

    @property
    def _swaying(self) -> tuple[Role, ...]:
        return ("judge", "deriver") if self._type.way == "derivation" else ("judge",)

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
        chances = self._baselines.add(case, gold, sources, heard)
        self.failed += bool(failed)

        @cache
        def scores_of(answer: str | None) -> _Scores:
            """An answer's score and its official one."""
            return score(answer, gold, case.type), official_score(answer, gold, case.type)

        scored = scores_of if gold else None
        marks = {name: self._take(name, case, outcome, scored) for name, outcome in outcomes.items()}
        scores = {name: marked and marked.score for name, marked in marks.items()}
        if chances:
            lost, rules = self._bounds.add(case, gold), tuple(marks.get(name) for name in self._rules)
            self._marks.add(case.question.text, Marks(rules, _share(case), chances, lost))
        else:  # here the value of a judge's preference is unknown, but not whether it can matter
            self._sways.update(
                (name, role) for name in self._rules for role in self._swaying if sways(case.rule(name), case, role)
            )
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
        self._remarks.add_scored(case)
        return scores

    def _count(self, case: Case) -> None:
        n, classes = len(case.question.answers), case.vote.classes
        self.fewest = n if self.fewest is None else min(self.fewest, n)
        self.most = max(self.most, n)
        self.without_answer += classes.count(None)
        self.ties += case.vote.tie
        self.conflicts += self._type.way == "evidence" and case.n_certified > 1

    def _take(
        self, name: str, case: Case, outcome: Outcome, scores_of: Callable[[str | None], _Scores] | None
    ) -> Marked | None:
        tally = self._rules[name]
        if outcome.decision is None:
            if outcome.missing:
                tally.missing[outcome.missing] += 1
            return None
        bare = unlabelled(name) in _WITHOUT_CERTIFICATES
        tally.add([asked for asked in outcome.consultations if is_role(asked.role) or not bare])
        trusted, answered = not is_withheld(case, outcome.decision), outcome.decision.answer is not None
        tally.answered += answered
        tally.certified += answered and trusted
        if scores_of is None:
            return None
        scored, official = scores_of(outcome.decision.answer)
        return Marked(scored, None if official == scored else official, trusted, answered)

    # -- figures ------------------------------------------------------------------------------------------------------

    def summary(self, facts: Mapping[str, JudgeFacts] | None = None) -> PoolFigures:
        """Return the pool's part of `summary.json`; `facts` are those of the named judges, see `judge_facts`."""
        facts, lacking = facts or {}, self._judges.lacking()
        scored = Scored([*self._rules], self._marks.units())
        withheld = {name: tally.lacking() for name, tally in self._rules.items() if tally.missing}
        withheld |= {name: {"judge": self.n} for name in self._rules if judge_in(name) in lacking}
        whole = {name: tally for name, tally in self._rules.items() if name not in withheld}
        ends = self._bounds.figures(scored.lost, [name for name in self._rules if judge_in(name) in lacking])
        audit, decided = self._audited(self._locked, whole, scored)
        figures: PoolFigures = {
            "n": self.n,
            "n_scored": scored.n,
            "n_distinct": scored.n_distinct,
            "n_failed": self.failed,
            "task": ends["task"],
            "ties": self.ties,
            "candidates": {"fewest": self.fewest, "most": self.most, "without_answer": self.without_answer},
            "conflicts": self.conflicts if self._type.way == "evidence" else None,
            "rules": {name: self._figures(name, tally, scored) for name, tally in whole.items()},
            "withheld": withheld,
            "contrasts": self._contrasts(scored, whole, [name for name, of in facts.items() if of["positioned"]]),
            "bounds": ends["bounds"],
            "bounds_any_span": ends["bounds_any_span"],
            "price": ends["price"],
            "baselines": self._baselines.figures(
                scored.chances, {labelled("judge", name): why for name, why in lacking.items()}
            ),
            "can_change": self._can_change(scored),
            "audit": audit,
            "decided": decided,
            "risk_coverage": {name: scored.coverage(name) for name in whole} if scored.n else {},
            "shipping": {
                name: scored.shipping(name, tally.certified, tally.answered, self.n) for name, tally in whole.items()
            },
            "remarks": self._remarks.sentences(),
        }
        if "bounds_any_deriver" in ends:
            figures["bounds_any_deriver"] = ends["bounds_any_deriver"]
        figures["remarks"] += _on_officials(figures["rules"])
        if self._type.is_own:
            figures["answer_type"] = {"way": self._type.way, "scores": [*self._type.scores]}
        if self._judges:
            figures["judges"] = self._judges.figures(
                figures, lambda *pair: scored.flips(*pair) if {*pair} <= whole.keys() else None, facts
            )
            for judge, of in figures["judges"].items():
                of["audit"], of["decided"] = self._audited(labelled("eldgr", judge), whole, scored)
        return figures

    def _can_change(self, scored: Scored) -> dict[str, dict[Role, float]] | None:
        """The share of questions on which a judge or a deriver can change what ships; None with gold answers."""
        if scored.n or not self.n:
            return None
        return {
            name: {role: 100.0 * self._sways[name, role] / self.n for role in self._swaying} for name in self._rules
        }

    def _audited(
        self, locked: str, whole: Mapping[str, RuleTally], scored: Scored
    ) -> tuple[AuditCounts | None, AuditInFull | None]:
        """The audit of `eldgr`, or of `eldgr[NAME]`, in short and in full; None without its result."""
        if locked not in whole:
            return None, None
        return self.audits[locked].counts(scored=scored.n > 0), self._decided(locked, whole, scored)

    def _decided(self, locked: str, whole: Mapping[str, RuleTally], scored: Scored) -> AuditInFull:
        """The audit in full."""
        eldgr, judge, audit = whole[locked], asked_by(locked, "judge"), self.audits[locked]
        return {
            "outcomes": audit.outcomes(),
            "flips": {name: scored.flips(name, locked) for name in ("first", "majority", judge) if name in whole},
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

    def _figures(self, name: str, tally: RuleTally, scored: Scored) -> RuleFigures:
        asked = roles_and({role for other in self._rules.values() for role in other.asked})
        return {
            **scored.scores(name, graded=self._type.has_f1),
            "official": scored.official(name, graded=self._type.has_f1),
            "calls": {role: tally.calls[role] for role in asked},
            "asked": {role: tally.asked[role] for role in asked},
            "tokens": {role: None if role in tally.uncounted else tally.tokens[role] for role in asked},
            "seconds": round(sum(tally.seconds.values()), 3),
        }

    def _contrasts(
        self, scored: Scored, whole: Mapping[str, RuleTally], untested: Collection[str]
    ) -> list[RuleContrast]:
        return contrasts_of(whole, [*self._judges], scored.contrast, untested) if scored.n else []


def _share(case: Case) -> float:
    """The share of the candidates that vote for consensus."""
    return (
        case.vote.classes.count(case.vote.winner) / len(case.question.answers) if case.vote.winner is not None else 0.0
    )


def _on_officials(rules: Mapping[str, RuleFigures]) -> Iterator[str]:
    """A sentence if marks around answers would have changed a score."""
    officials = {name: of["official"] for name, of in rules.items() if of["official"] is not None}
    if officials:
        said = ", ".join(
            f"{name} {official['em']:.2f}" + (f" (F1 {official['f1']:.2f})" if official["f1"] is not None else "")
            for name, official in officials.items()
        )
        yield (
            "Marks around an answer are taken off before it is scored."
            f" The official score of the raw texts differs: {said}."
        )
