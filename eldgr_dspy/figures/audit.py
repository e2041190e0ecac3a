"""The decision audit: on which questions EL-DGR kept consensus or shipped a preference or a repair, and the effect.

Each question is reduced to a few marks, and every number is a function of how many questions have which marks.
Source: ours.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeAlias

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.cases import Case
from eldgr_dspy.decision import Decision
from eldgr_dspy.figures.results.audit_results import AuditCounts, Became, Decisions, RoleSilences, Saved, Stage
from eldgr_dspy.words import ROLES, Branch, Consulted, Role, Task


class Marks(NamedTuple):
    """The marks of a question.

    Attributes:
        branch: What decided.
        level: What supports the answer that shipped: in retrieval `exact`, `folded`, `uncertified` or `inapplicable`;
            in arithmetic the level at which its derivation passed, or `unchecked`.
        became: The outcome of the answer that shipped, against consensus.
        homogeneous: Whether the candidates form one class.
        settled: The certificate of consensus; in arithmetic, whether a checked derivation agrees with it.
        rival: Whether consensus is uncertified and another class certified. preferred: and the judge preferred a
            certified one.
        proposed: Whether a repair was proposed without an override by the judge; in arithmetic, a derivation given.
        certified: Whether that is certified; in arithmetic, whether its check passed.
        asked: The roles that were asked. always: those that `consult="always"` asks.
        abstained: The roles that abstained, each with the kind of its reason. failed: those whose call failed, each
            with its error.
    """

    branch: Branch
    level: str
    became: Became
    homogeneous: bool
    settled: bool | None
    rival: bool
    preferred: bool
    proposed: bool
    certified: bool
    asked: tuple[Role, ...]
    always: tuple[Role, ...]
    abstained: tuple[tuple[Role, str], ...]
    failed: tuple[tuple[Role, str], ...]


Audited: TypeAlias = Mapping[Marks, int]
"""How many questions have which marks."""


def became(before: bool, after: bool) -> Became:
    """Return the outcome of an answer from whether it was right before and is right after."""
    if after:
        return "right" if before else "won"
    return "lost" if before else "wrong"


class Consulting(NamedTuple):
    """The cost of asking a role in a run: questions, LM calls and seconds in all."""

    questions: int
    calls: int
    seconds: float


def marks_of(
    case: Case, decision: Decision, outcome: Became, kinds: Mapping[Role, str], failed: Collection[Consulted] = ()
) -> Marks:
    """Return the marks of what `eldgr` decided on a question.

    Args:
        case: The question. decision: what was decided. outcome: that of the answer, against consensus.
        kinds: The kind of each abstention and failure; a role that gave an invalid answer may be left out.
        failed: The roles whose call failed; a failed call does not count as an abstention.
    """
    silent, marks = decision.abstentions, _marks_by_evidence if case.type.way == "evidence" else _marks_by_derivation
    return Marks(
        decision.branch,
        _level(case, decision),
        outcome,
        case.vote.n_classes == 1,
        *marks(case, decision),
        asked=decision.consulted,
        always=case.roles(),
        abstained=tuple((role, kinds.get(role, "invalid")) for role in silent if role not in failed),
        failed=tuple((role, kinds.get(role, "")) for role in silent if role in failed),
    )


def _level(case: Case, decision: Decision) -> str:
    if case.type.way == "derivation":
        return case.settings.derivation if decision.certified else "unchecked"
    if decision.witness is not None:
        return decision.witness.level
    return "inapplicable" if decision.certified is None else "uncertified"


def _marks_by_evidence(case: Case, decision: Decision) -> tuple[bool | None, bool, bool, bool, bool]:
    """The marks from `settled` to `certified`; marks of open questions are not computed for others."""
    kept = decision.branch == "consensus"
    settled = decision.certified if kept else case.certified(decision.consensus)
    if settled is not False:
        return settled, False, False, False, False
    rival = case.rival()
    preferred = None if decision.preference is None else case.question.answers[decision.preference]
    proposed = decision.branch != "judge" and decision.repair is not None
    return (
        settled,
        rival,
        rival and case.certified(preferred) is True,
        proposed,
        proposed and case.certified(decision.repair) is True,
    )


def _marks_by_derivation(case: Case, decision: Decision) -> tuple[bool | None, bool, bool, bool, bool]:
    """The same; the judge is never asked there, and no class is certified before a derivation."""
    given, checked = decision.repair is not None, decision.certified is True
    return checked and decision.branch == "consensus", False, False, given, checked


# -- figures ----------------------------------------------------------------------------------------------------------


def _count(audited: Audited, holds: Callable[[Marks], object]) -> int:
    return sum(n for marks, n in audited.items() if holds(marks))


def audit_counts(audited: Audited, *, scored: bool) -> AuditCounts:
    """Return the counts of `audit` in `summary.json`; without gold answers the effect of a flip is unknown.

    `preserved + judge_overrides + repair_overrides` is the number of questions. In arithmetic a derivation that
    differs from consensus is a repair override, and `certified_consensus` counts checked derivations that equal it.
    """
    return {
        "preserved": _count(audited, lambda marks: marks.branch == "consensus"),
        "judge_overrides": _count(audited, lambda marks: marks.branch == "judge"),
        "repair_overrides": _count(audited, lambda marks: marks.branch == "repair"),
        "correct_to_incorrect": _count(audited, lambda marks: marks.became == "lost") if scored else None,
        "incorrect_to_correct": _count(audited, lambda marks: marks.became == "won") if scored else None,
        "abstentions": _count(audited, lambda marks: marks.abstained),
        "homogeneous": _count(audited, lambda marks: marks.homogeneous),
        "certified_consensus": _count(audited, lambda marks: marks.settled),
    }


def audit_outcomes(audited: Audited) -> list[Decisions]:
    """Return the questions by the branch that decided, the support of the answer that shipped, and its outcome."""
    totals = Counter[tuple[Branch, str, Became]]()
    for marks, n in audited.items():
        totals[marks.branch, marks.level, marks.became] += n
    return [
        {"branch": branch, "level": level, "outcome": became, "questions": n}
        for (branch, level, became), n in sorted(totals.items())
    ]


_RETRIEVAL: Mapping[str, Callable[[Marks], object]] = {
    "questions": lambda marks: True,
    "consensus uncertified": lambda marks: marks.settled is False,
    "another class certified": lambda marks: marks.rival,
    "judge preferred a certified one": lambda marks: marks.preferred,
    "judge overrides": lambda marks: marks.branch == "judge",
    "still open": lambda marks: marks.settled is False and marks.branch != "judge",
    "repair proposed": lambda marks: marks.proposed,
    "repair certified": lambda marks: marks.certified,
    "repair overrides": lambda marks: marks.branch == "repair",
}
_ARITHMETIC: Mapping[str, Callable[[Marks], object]] = {
    "questions": lambda marks: True,
    "derivation asked": lambda marks: "deriver" in marks.asked,
    "derivation given": lambda marks: marks.proposed,
    "derivation checked": lambda marks: marks.certified,
    "differs from consensus": lambda marks: marks.certified and not marks.settled,
    "repair overrides": lambda marks: marks.branch == "repair",
}


def audit_funnel(audited: Audited, task: Task) -> list[Stage]:
    """Return how many questions reach each stage before an override, in order."""
    stages = _RETRIEVAL if answer_type(task).way == "evidence" else _ARITHMETIC
    return [{"stage": name, "questions": _count(audited, holds)} for name, holds in stages.items()]


def audit_silences(audited: Audited) -> dict[Consulted, RoleSilences]:
    """Return for each role that was asked on how many questions it abstained or its call failed, and by what kinds.

    The kinds are those of `eldgr_dspy.words.ABSTENTION_KINDS`, and the errors of failed calls.
    """
    abstained, failed = Counter[tuple[Role, str]](), Counter[tuple[Role, str]]()
    for marks, n in audited.items():
        abstained.update(dict.fromkeys(marks.abstained, n))
        failed.update(dict.fromkeys(marks.failed, n))
    asked = {role for marks in audited for role in marks.asked}
    return {role: _silences(role, abstained, failed) for role in ROLES if role in asked}


def _silences(
    role: Role, abstained: Mapping[tuple[Role, str], int], failed: Mapping[tuple[Role, str], int]
) -> RoleSilences:
    silent, broken = (
        {kind: n for (other, kind), n in sorted(counts.items()) if other == role} for counts in (abstained, failed)
    )
    return {"abstained": sum(silent.values()), "failed": sum(broken.values()), "kinds": {**silent, **broken}}


def audit_laziness(audited: Audited, consulting: Mapping[Role, Consulting]) -> Saved:
    """Return on how many questions each role was asked, would always have been, and what that would cost more.

    Args:
        audited: The questions.
        consulting: The cost of asking each role. A consultation that was not made is assumed to cost the mean of
            the others; the saving is None if a role that would be asked never was.
    """
    asked, always = Counter[Role](), Counter[Role]()
    for marks, n in audited.items():
        asked.update(dict.fromkeys(marks.asked, n))
        always.update(dict.fromkeys(marks.always, n))
    spared = [(always[role] - asked[role], consulting[role]) for role in ROLES if always[role] > asked[role]]
    known = all(cost.questions for _, cost in spared)
    shares = [(n / cost.questions, cost) for n, cost in spared] if known else []
    calls = sum(share * cost.calls for share, cost in shares)
    seconds = sum((share * cost.seconds for share, cost in shares), 0.0)
    return {
        "asked": {role: asked[role] for role in ROLES},
        "always": {role: always[role] for role in ROLES},
        "calls_saved": round(calls) if known else None,
        "seconds_saved": round(seconds, 3) if known else None,
    }
