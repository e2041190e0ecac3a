"""The decided questions of a pool as one table, from which every figure of the pool is a function.

A question takes four bytes a column, and twenty-eight bytes a consultation: a million questions of three roles and
eight rules about 140 MiB. Its texts are not kept.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.answers import official_score, score
from eldgr_dspy.answer_types.base import Score
from eldgr_dspy.decision import Decision
from eldgr_dspy.figures.authority import QuestionBounds, question_bounds
from eldgr_dspy.figures.baselines import Chances, chances_of
from eldgr_dspy.figures.distinct import Column, text_key
from eldgr_dspy.figures.results.audit_fields import Became
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import certify_again, is_withheld
from eldgr_dspy.rule.consultations import Abstention, Consultation, Heard
from eldgr_dspy.rule.named_judges import Label, asked_by, judge_in, name_in, role_of
from eldgr_dspy.rule.replies import journaled_reply
from eldgr_dspy.rule.spellings import has_number, other_spelling
from eldgr_dspy.words import NOTHING_TO_SAY, Branch, Consulted, Task, is_role

_WITHOUT_CERTIFICATES = ("first", "majority", "judge")  # rules that use no certificate, so asking for one adds no cost

Spellings = tuple[tuple[str, str, int], ...]
"""Answers of a question that the evidence has in another spelling alone: each, that spelling, and its candidates."""

_Scores = tuple[Score | None, Score | None]
"""An answer's score, None without a gold answer, and its score by the official script if that differs."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One rule's decision on one question, with the consultations that this rule needed."""

    decision: Decision | None  # None if a role that the rule needs was never asked
    missing: Consulted | None = None  # that role
    consultations: Sequence[Consultation] = ()


class Facts(NamedTuple):
    """What a question is, apart from the rules."""

    has_gold: bool  # it has a gold answer
    has_failure: bool  # a call for it failed
    candidates: int
    blanks: int  # candidates without an answer
    classes: int  # of answers that vote
    tie: bool
    conflict: bool  # the evidence certifies several classes
    bare: bool  # there is no evidence
    late: bool  # some answers could not be compared in time


class Ruling(NamedTuple):
    """What a rule decided on a question."""

    missing: Consulted | None = None  # the role that was never asked, so that nothing is decided
    score: Score | None = None  # of the answer; None without a gold answer
    official: Score | None = None  # by the official script, if that differs
    is_trusted: bool = False  # the answer ships if uncertified answers abstain
    has_answer: bool = False  # an answer ships
    labels: tuple[Label, ...] = ()

    @property
    def result(self) -> Score:
        """The score of a question with a gold answer, which the rule has decided."""
        assert self.score is not None, "the rule has not decided all questions"
        return self.score


class Marks(NamedTuple):
    """The marks of what `eldgr` decided on a question, for its audit."""

    branch: Branch
    level: str  # what supports the answer that shipped: its witness or derivation
    became: Became
    homogeneous: bool  # the candidates form one class
    support: bool | None  # the certificate of consensus; in arithmetic, whether a checked derivation agrees with it
    abstains: bool  # a role abstained; a failed call does not count


class ReplyMarks(NamedTuple):
    """How a consultation ended; texts are empty where they do not apply."""

    has_calls: bool  # an LM was called
    outcome: str  # `ok`, `abstained` or `failed`, by the reply that the rules have
    lacks: str  # why the question does not apply to a judge
    kind: str  # of an abstention without a usable reply
    implausible: str  # counts that the server reported and that cannot be true
    fault: str  # why a part of the reply could not be used, although the rest counts


def became(before: bool | None, after: bool | None) -> Became:
    """Return the outcome of an answer from whether it was right before and is right after; None if that is unknown."""
    if before is None or after is None:
        return "unscored"
    if after:
        return "right" if before else "won"
    return "lost" if before else "wrong"


def marks_of(case: Case, decision: Decision, outcome: Became, faults: Collection[Consulted] = ()) -> Marks:
    """Return the marks of what `eldgr` decided on a question; `faults` are the roles whose call failed."""
    is_consensus, certified = decision.branch == "consensus", decision.certified
    if case.type.way == "derivation":
        support: bool | None = is_consensus and certified is True
        level: str = case.settings.derivation if certified else "unchecked"
    else:
        support = certified if is_consensus else case.certified(decision.consensus)
        names = {True: "certified", False: "uncertified", None: "inapplicable"}
        level = decision.witness.level if decision.witness else names[certified]
    abstains = any(role not in faults for role in decision.abstentions)
    return Marks(decision.branch, level, outcome, case.vote.n_classes == 1, support, abstains)


def reply_marks(one: Consultation, reply: Heard | None) -> ReplyMarks:
    """Return the marks of a consultation; `reply` is what the rules have of it, or None for a certificate."""
    why, kind, lacks = reply if isinstance(reply, Abstention) else one.abstention, "", ""
    outcome = "abstained" if one.outcome == "ok" and why is not None else one.outcome
    if why is not None and why.kind == "not applicable":  # a pool to which a judge does not apply has its own sentence
        lacks = why.text
    elif why is not None and outcome == "abstained" and (one.role == "judge" or why.kind != NOTHING_TO_SAY):
        kind = why.kind  # finding no span or no derivation is a usable reply
    return ReplyMarks(bool(one.calls), outcome, lacks, kind, one.implausible or "", getattr(reply, "remark", ""))


def spellings_of(case: Case) -> Spellings:
    """Return such answers. A certificate of the user's own may refuse for any reason, so there are none under it."""
    if case.type.way != "evidence" or case.settings.own is not None:
        return ()
    answers = Counter(filter(None, case.question.answers))
    uncertified = (pair for pair in answers.items() if has_number(pair[0]) and case.certified(pair[0]) is False)
    others = ((answer, other_spelling(answer, case.question.passages), n) for answer, n in uncertified)
    return tuple((answer, other, n) for answer, other, n in others if other)


class RoleColumns:
    """The consultations of a role or a named judge, one entry a question that was asked."""

    def __init__(self) -> None:
        self.marks = Column[ReplyMarks]()
        self.places = array("i")  # of the questions in the pool
        self.calls, self.tokens, self.seconds = array("i"), array("q"), array("d")  # tokens: -1 if not reported

    def append(self, place: int, one: Consultation, marks: ReplyMarks) -> None:
        prompt, completion = one.prompt_tokens, one.completion_tokens
        tokens = 0 if not one.calls else -1 if prompt is None or completion is None else prompt + completion
        self.marks.append(marks)
        self.places.append(place)
        self.calls.append(one.calls)
        self.tokens.append(tokens)
        self.seconds.append(one.seconds or 0.0)

    def sums(self, mask: NDArray[np.bool_] | None = None) -> tuple[int, int, int | None, float]:
        """Return questions, calls, tokens (None if unreported for any) and seconds, of all or the marked questions."""
        mine: NDArray[np.bool_] | slice = slice(None) if mask is None else mask[np.array(self.places, np.int32)]
        tokens = np.array(self.tokens, np.int64)[mine]
        calls, seconds = np.array(self.calls, np.int64)[mine], np.array(self.seconds)[mine]
        return tokens.size, int(calls.sum()), int(tokens.sum()) if (tokens >= 0).all() else None, float(seconds.sum())


class DecidedRows:
    """The decided questions of one pool, in the pool's order."""

    def __init__(self, task: Task, rules: Sequence[str]) -> None:
        self.type = answer_type(task)
        self.task = self.type.name_in_files
        self.facts = Column[Facts]()
        self.rules = {name: Column[Ruling]() for name in rules}
        self.audits = {name: Column[Marks]() for name in rules if name_in(name) == "eldgr"}
        self.judges = [*dict.fromkeys(judge for rule in rules if (judge := judge_in(rule)) is not None)]
        self.roles = defaultdict[Label, RoleColumns](RoleColumns)
        self.chances, self.bounds = Column[Chances | None](), Column[QuestionBounds | None]()
        self.spellings = Column[Spellings]()
        self._texts = array("q")

    def __len__(self) -> int:
        return len(self.facts)

    def add(
        self,
        case: Case,
        gold: Sequence[str],
        outcomes: Mapping[str, Outcome],
        faults: Collection[Label],
        sources: Sequence[str | None] = (),
    ) -> dict[str, Score | None]:
        """Add a question. Return each rule's score, None without a gold answer or a decision.

        Roles in `faults` had a call that failed: the question decided as if they had abstained, stays in n and is not
        counted among abstentions.
        """
        if any(outcome.missing == "certificate" for outcome in outcomes.values()):
            certify_again(case, {})

        @cache
        def scores_of(answer: str | None) -> _Scores:
            if not gold:
                return None, None
            plain, official = score(answer, gold, case.type), official_score(answer, gold, case.type)
            return plain, None if official == plain else official

        rulings = {name: _apply_rule(name, case, outcomes.get(name), scores_of) for name in self.rules}
        for name, column in self.rules.items():
            column.append(rulings[name])
        entries = {one.label: one for outcome in outcomes.values() for one in outcome.consultations}
        replies = {label: journaled_reply(case.question, one) for label, one in entries.items() if is_role(one.role)}
        self._texts.append(text_key(case.question.text))
        verdicts: Any = {label: reply for label, reply in replies.items() if role_of(label) == "judge"}
        self.chances.append(chances_of(case, gold, sources, verdicts) if gold else None)
        self.bounds.append(question_bounds(dict.fromkeys(map(name_in, self.rules)), case, gold) if gold else None)
        self.spellings.append(spellings_of(case))
        for name, audit in self.audits.items():
            if (eldgr := outcomes.get(name)) and eldgr.decision:
                before, after = scores_of(eldgr.decision.consensus)[0], scores_of(eldgr.decision.answer)[0]
                own: set[Consulted] = {role_of(label) for label in faults if label == asked_by(name, role_of(label))}
                outcome = became(before.em if before else None, after.em if after else None)
                audit.append(marks_of(case, eldgr.decision, outcome, own))
        for label, one in entries.items():
            self.roles[label].append(len(self), one, reply_marks(one, replies.get(label)))
        facts = Facts(
            has_gold=bool(gold),
            has_failure=bool(faults),
            candidates=len(case.question.answers),
            blanks=case.vote.classes.count(None),
            classes=case.vote.n_classes,
            tie=case.vote.tie,
            conflict=case.type.way == "evidence" and case.n_certified > 1,
            bare=not case.question.passages,
            late=case.type.comparisons is not None and bool(case.type.comparisons.late),  # known once all is scored
        )
        self.facts.append(facts)
        return {name: rulings[name].score for name in outcomes}

    @cached_property
    def has_gold(self) -> NDArray[np.bool_]:
        """Whether each question has a gold answer, shape (n,)."""
        return self.facts.each(lambda facts: facts.has_gold).astype(bool)

    def units(self, column: Column[Any]) -> Counter[Any]:
        """Return how many units of questions with a gold answer have the same values in a column."""
        return column.units(np.array(self._texts, np.int64), self.has_gold)

    @property
    def withholds(self) -> bool:
        """Whether the certificates of a question are not known."""
        return any(of.missing == "certificate" for column in self.rules.values() for of in column)

    def asking(self, rule: str, role: Consulted) -> tuple[int, int, int | None, float]:
        """Return on how many questions a rule asked a role, and the calls, tokens and seconds that took."""
        label = asked_by(rule, role)
        return self.roles[label].sums(self.rules[rule].each(lambda of: label in of.labels).astype(bool))


def _apply_rule(name: str, case: Case, outcome: Outcome | None, scores_of: Callable[[str | None], _Scores]) -> Ruling:
    if outcome is None or outcome.decision is None:
        return Ruling(outcome.missing if outcome else None)
    bare = name_in(name) in _WITHOUT_CERTIFICATES
    labels = tuple(one.label for one in outcome.consultations if is_role(one.role) or not bare)
    is_trusted, has_answer = not is_withheld(case, outcome.decision), outcome.decision.answer is not None
    return Ruling(None, *scores_of(outcome.decision.answer), is_trusted, has_answer, labels)
