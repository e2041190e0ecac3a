"""The decision audit: on which questions EL-DGR kept consensus or shipped a preference or a repair, and the effect.

Each question is reduced to a few marks, and every number is a function of how many questions have which marks.
Source: ours.
"""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from eldgr_dspy.decision import Decision
from eldgr_dspy.figures.distinct import counts_by
from eldgr_dspy.figures.results.audit_fields import AuditCounts, Became, Decisions
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.words import Branch, Consulted


class Marks(NamedTuple):
    """The marks of a question.

    Attributes:
        branch: What decided.
        level: What supports the answer that shipped: in retrieval `exact`, `folded`, `uncertified` or `inapplicable`;
            in arithmetic the level at which its derivation passed, or `unchecked`.
        became: The outcome of the answer that shipped, against consensus.
        homogeneous: Whether the candidates form one class.
        settled: The certificate of consensus; in arithmetic, whether a checked derivation agrees with it.
        abstained: Whether a role abstained; a failed call does not count.
    """

    branch: Branch
    level: str
    became: Became
    homogeneous: bool
    settled: bool | None
    abstained: bool


def became(before: bool, after: bool) -> Became:
    """Return the outcome of an answer from whether it was right before and is right after."""
    if after:
        return "right" if before else "won"
    return "lost" if before else "wrong"


def marks_of(case: Case, decision: Decision, outcome: Became, failed: Collection[Consulted] = ()) -> Marks:
    """Return the marks of what `eldgr` decided on a question.

    Args:
        case: The question. decision: what was decided. outcome: that of the answer, against consensus.
        failed: The roles whose call failed.
    """
    is_consensus, certified = decision.branch == "consensus", decision.certified
    if case.type.way == "derivation":
        settled: bool | None = is_consensus and certified is True
        level: str = case.settings.derivation if certified else "unchecked"
    else:
        settled = certified if is_consensus else case.certified(decision.consensus)
        level = "inapplicable" if certified is None else "uncertified"
        level = decision.witness.level if decision.witness else level
    abstained = any(role not in failed for role in decision.abstentions)
    return Marks(decision.branch, level, outcome, case.vote.n_classes == 1, settled, abstained)


# -- figures ----------------------------------------------------------------------------------------------------------


def audit_counts(audited: Mapping[Marks, int], *, scored: bool) -> AuditCounts:
    """Return the counts of `audit` in `summary.json`; without gold answers the effect of a flip is unknown.

    `preserved + judge_overrides + repair_overrides` is the number of questions. In arithmetic a derivation that
    differs from consensus is a repair override, and `certified_consensus` counts checked derivations that equal it.
    """

    def count(holds: Callable[[Marks], object]) -> int:
        return counts_by(audited, lambda marks: bool(holds(marks)))[True]

    return {
        "preserved": count(lambda marks: marks.branch == "consensus"),
        "judge_overrides": count(lambda marks: marks.branch == "judge"),
        "repair_overrides": count(lambda marks: marks.branch == "repair"),
        "correct_to_incorrect": count(lambda marks: marks.became == "lost") if scored else None,
        "incorrect_to_correct": count(lambda marks: marks.became == "won") if scored else None,
        "abstentions": count(lambda marks: marks.abstained),
        "homogeneous": count(lambda marks: marks.homogeneous),
        "certified_consensus": count(lambda marks: marks.settled),
    }


def audit_outcomes(audited: Mapping[Marks, int]) -> list[Decisions]:
    """Return the questions by the branch that decided, the support of the answer that shipped, and its outcome."""
    totals = counts_by(audited, lambda marks: (marks.branch, marks.level, marks.became))
    return [
        {"branch": branch, "level": level, "outcome": became, "questions": n}
        for (branch, level, became), n in sorted(totals.items())
    ]
