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
from eldgr_dspy.answer_types.base import AnswerType, Score
from eldgr_dspy.decision import Decision
from eldgr_dspy.figures.audit import Marks, became, marks_of
from eldgr_dspy.figures.authority import QuestionBounds, question_bounds
from eldgr_dspy.figures.baselines import Chances, chances_of
from eldgr_dspy.figures.distinct import Column, text_key
from eldgr_dspy.figures.results.audit_fields import Became
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import certify_again, is_withheld
from eldgr_dspy.rule.consultations import Abstention, Consultation, Heard
from eldgr_dspy.rule.named_judges import Asked, asked_by, judge_in, role_of, unlabelled
from eldgr_dspy.rule.replies import journaled_reply
from eldgr_dspy.rule.spellings import other_spelling
from eldgr_dspy.words import NOTHING_TO_SAY, Consulted, Task, is_role

_WITHOUT_CERTIFICATES = ("first", "majority", "judge")
"""Rules that use no certificate, so that asking one does not add to their costs."""

Spellings = tuple[tuple[str, str, int], ...]
"""Answers of a question that the evidence has in another spelling alone: each, that spelling, and its candidates."""

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


class Facts(NamedTuple):
    """What a question is, apart from the rules.

    Attributes:
        scored: Whether it has a gold answer. failed: whether a call for it failed.
        candidates: How many it has. unanswered: how many of them have no answer.
        classes: How many classes of answers vote. tie: whether several have as many votes.
        conflict: Whether the evidence certifies several classes. bare: whether there is no evidence.
        late: Whether some answers could not be compared in time.
    """

    scored: bool
    failed: bool
    candidates: int
    unanswered: int
    classes: int
    tie: bool
    conflict: bool
    bare: bool
    late: bool


class Ruled(NamedTuple):
    """What a rule decided on a question.

    Attributes:
        missing: The role that was never asked, so that nothing is decided.
        score: Of the answer; None without a gold answer. official: by the official script, if that differs.
        trusted: Whether it ships if uncertified answers abstain. answered: whether an answer ships at all.
        used: Whom the rule asked.
    """

    missing: Consulted | None = None
    score: Score | None = None
    official: Score | None = None
    trusted: bool = False
    answered: bool = False
    used: tuple[Asked, ...] = ()

    @property
    def defined(self) -> Score:
        """The score of a question with a gold answer, which the rule has decided."""
        assert self.score is not None, "the rule has not decided all questions"
        return self.score


class ReplyMarks(NamedTuple):
    """How a consultation ended.

    Attributes:
        called: Whether an LM was called.
        outcome: `ok`, `abstained` or `failed`, by the reply that the rules have.
        lacks: Why the question does not apply to a judge; empty if it does.
        kind: That of an abstention without a usable reply; empty for others.
        implausible: Counts that the server reported and that cannot be true.
        fault: Why a part of the reply could not be used, although the rest counts.
    """

    called: bool
    outcome: str
    lacks: str
    kind: str
    implausible: str
    fault: str


def reply_marks(one: Consultation, reply: Heard | None) -> ReplyMarks:
    """Return the marks of a consultation; `reply` is what the rules have of it, or None for a certificate."""
    why, kind, lacks = one.abstention, "", ""
    outcome = "abstained" if one.outcome == "ok" and isinstance(reply, Abstention) else one.outcome
    if why is not None and why.kind == "not applicable":  # a pool to which a judge does not apply has its own sentence
        lacks = why.text
    elif why is not None and one.outcome == "abstained" and (one.role == "judge" or why.kind != NOTHING_TO_SAY):
        kind = why.kind  # finding no span or no derivation is a usable reply
    return ReplyMarks(bool(one.calls), outcome, lacks, kind, one.implausible or "", getattr(reply, "remark", ""))


def spellings_of(case: Case) -> Spellings:
    """Return such answers. A certificate of the user's own may refuse for any reason, so there are none under it."""
    if case.type.way != "evidence" or case.settings.own is not None:
        return ()
    answers = Counter(filter(None, case.question.answers))
    others = ((answer, other_spelling(answer, case.question.passages), n) for answer, n in answers.items())
    return tuple((answer, other, n) for answer, other, n in others if other and case.certified(answer) is False)


class RoleColumns:
    """The consultations of a role or a named judge, one entry a question that was asked.

    Attributes:
        marks: How each ended. places: its question's place in the pool.
        calls, tokens, seconds: What it took; tokens are -1 where a server did not report them.
    """

    def __init__(self) -> None:
        self.marks = Column[ReplyMarks]()
        self.places, self.calls, self.tokens, self.seconds = array("i"), array("i"), array("q"), array("d")

    def append(self, place: int, one: Consultation, marks: ReplyMarks) -> None:
        """Add a consultation of the question at a place."""
        prompt, completion = one.prompt_tokens, one.completion_tokens
        tokens = 0 if not one.calls else -1 if prompt is None or completion is None else prompt + completion
        self.marks.append(marks)
        self.places.append(place)
        self.calls.append(one.calls)
        self.tokens.append(tokens)
        self.seconds.append(one.seconds or 0.0)

    def sums(self, mask: NDArray[np.bool_] | None = None) -> tuple[int, int, int | None, float]:
        """Return questions, calls, tokens and seconds; `mask` says of each question whether it counts, all by default.

        Tokens are None where a server did not report them for any.
        """
        mine: NDArray[np.bool_] | slice = slice(None) if mask is None else mask[np.array(self.places, np.int32)]
        tokens = np.array(self.tokens, np.int64)[mine]
        calls, seconds = np.array(self.calls, np.int64)[mine], np.array(self.seconds)[mine]
        return tokens.size, int(calls.sum()), int(tokens.sum()) if (tokens >= 0).all() else None, float(seconds.sum())


class DecidedRows:
    """The decided questions of one pool, in the pool's order.

    Attributes:
        type: The answer type. judges: the named judges of the rules.
        facts, rules, audits: What each question is, what each rule decided, and the audit of each `eldgr`.
        roles: The consultations that the rules used, by who was asked.
        chances, bounds: What baselines and bounds need of each question; None without a gold answer.
        spellings: Its answers that are uncertified for their spelling only.
    """

    def __init__(self, task: Task, rules: Sequence[str]) -> None:
        self.task = answer_type(task).name_in_files
        self.facts = Column[Facts]()
        self.rules = {name: Column[Ruled]() for name in rules}
        self.audits = {name: Column[Marks]() for name in rules if unlabelled(name) == "eldgr"}
        self.judges = [*dict.fromkeys(judge for rule in rules if (judge := judge_in(rule)) is not None)]
        self.roles = defaultdict[Asked, RoleColumns](RoleColumns)
        self.chances, self.bounds = Column[Chances | None](), Column[QuestionBounds | None]()
        self.spellings = Column[Spellings]()
        self._texts = array("q")

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def type(self) -> AnswerType:
        """The answer type."""
        return answer_type(self.task)

    def add(
        self,
        case: Case,
        gold: Sequence[str],
        outcomes: Mapping[str, Outcome],
        failed: Collection[Asked],
        sources: Sequence[str | None] = (),
    ) -> dict[str, Score | None]:
        """Add a question. Return each rule's score, None without a gold answer or a decision.

        Args:
            case: The question. gold: its gold answers. outcomes: what each rule decided.
            failed: Who had a call for this question that failed; the question decided as if they had abstained, stays
                in n and is not counted among abstentions.
            sources: Where each candidate comes from, None where unknown.
        """
        if any(outcome.missing == "certificate" for outcome in outcomes.values()):
            certify_again(case, {})

        @cache
        def scores_of(answer: str | None) -> _Scores:
            return score(answer, gold, case.type), official_score(answer, gold, case.type)

        scored = scores_of if gold else None
        ruled = {name: _apply_rule(name, case, outcomes.get(name), scored) for name in self.rules}
        for name, column in self.rules.items():
            column.append(ruled[name])
        entries = {one.label: one for outcome in outcomes.values() for one in outcome.consultations}
        replies = {label: journaled_reply(case.question, one) for label, one in entries.items() if is_role(one.role)}
        self._texts.append(text_key(case.question.text))
        verdicts: Any = {label: reply for label, reply in replies.items() if role_of(label) == "judge"}
        self.chances.append(chances_of(case, gold, sources, verdicts) if gold else None)
        rules = dict.fromkeys(map(unlabelled, self.rules))
        self.bounds.append(question_bounds(rules, case, gold) if gold else None)
        self.spellings.append(spellings_of(case))
        for name, audit in self.audits.items():
            eldgr = outcomes.get(name)
            if eldgr and eldgr.decision:
                audit.append(_audit(case, name, eldgr.decision, failed, scored))
        for label, one in entries.items():
            self.roles[label].append(len(self), one, reply_marks(one, replies.get(label)))
        self.facts.append(_facts(case, scored=bool(gold), failed=bool(failed)))
        return {name: ruled[name].score for name in outcomes}

    # -- what figures need ---------------------------------------------------------------------------------------------

    @cached_property
    def scored(self) -> NDArray[np.bool_]:
        """Whether each question has a gold answer, shape (n,)."""
        return self.facts.each(lambda facts: facts.scored).astype(bool)

    @cached_property
    def texts(self) -> NDArray[np.int64]:
        """The hash of each question's text, shape (n,)."""
        return np.array(self._texts, np.int64)

    def units(self, column: Column[Any]) -> Counter[Any]:
        """Return how many units of questions with a gold answer have the same values in a column."""
        return column.units(self.texts, self.scored)

    @property
    def withheld(self) -> bool:
        """Whether the certificates of a question are not known."""
        return any(of.missing == "certificate" for column in self.rules.values() for of in column)

    def asking(self, rule: str, role: Consulted) -> tuple[int, int, int | None, float]:
        """Return on how many questions a rule asked a role, and the calls, tokens and seconds that took."""
        label = asked_by(rule, role)
        return self.roles[label].sums(self.rules[rule].each(lambda of: label in of.used).astype(bool))


def _apply_rule(
    name: str, case: Case, outcome: Outcome | None, scores_of: Callable[[str | None], _Scores] | None
) -> Ruled:
    if outcome is None or outcome.decision is None:
        return Ruled(outcome.missing if outcome else None)
    bare = unlabelled(name) in _WITHOUT_CERTIFICATES
    used = tuple(one.label for one in outcome.consultations if is_role(one.role) or not bare)
    trusted, answered = not is_withheld(case, outcome.decision), outcome.decision.answer is not None
    if scores_of is None:
        return Ruled(None, None, None, trusted, answered, used)
    scored, official = scores_of(outcome.decision.answer)
    return Ruled(None, scored, None if official == scored else official, trusted, answered, used)


def _audit(
    case: Case,
    rule: str,
    decision: Decision,
    failed: Collection[Asked],
    scores_of: Callable[[str | None], _Scores] | None,
) -> Marks:
    own: set[Consulted] = {role_of(label) for label in failed if label == asked_by(rule, role_of(label))}
    outcome: Became = "unscored"
    if scores_of is not None:
        outcome = became(*(scores_of(answer)[0].em for answer in (decision.consensus, decision.answer)))
    return marks_of(case, decision, outcome, own)


def _facts(case: Case, *, scored: bool, failed: bool) -> Facts:
    """The facts of a question once its answers are scored: then it is known which could not be compared in time."""
    vote, answers = case.vote, case.question.answers
    return Facts(
        scored,
        failed,
        len(answers),
        vote.classes.count(None),
        vote.n_classes,
        vote.tie,
        case.type.way == "evidence" and case.n_certified > 1,
        not case.question.passages,
        case.type.comparisons is not None and bool(case.type.comparisons.late),
    )
