"""The laws of a rule about what ships and who is asked: each a claim, what it does not claim, and how it is checked.

A check returns None if the law does not apply to the outcome. It counts classes and asks for certificates itself
instead of relying on the rule's own account.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eldgr_dspy.consultations import Derivation
from eldgr_dspy.decision import always, evidence_locked
from eldgr_dspy.laws.findings import Finding, Law, law_in
from eldgr_dspy.laws.trials import SILENT, Outcome
from eldgr_dspy.words import ROLES, Branch, Role

STATEMENTS: list[Law] = []
law = law_in(STATEMENTS)


@law(
    1,
    "In retrieval a certified consensus ships, whatever any role would reply, and nobody is asked.",
    "That it is right: a certificate states an occurrence, and the majority or the passage may be wrong.",
)
def certified_consensus_is_final(outcome: Outcome) -> Finding | None:
    return _final(outcome) if outcome.mark is True else None


@law(
    1,
    "In retrieval a consensus to which no certificate applies (a yes, no or refusal) ships, and nobody is asked.",
    "That it is right, or that the evidence supports it.",
)
def inapplicable_consensus_is_final(outcome: Outcome) -> Finding | None:
    return _final(outcome) if outcome.mark is None else None


def _final(outcome: Outcome) -> Finding | None:
    holds = _ships(outcome, "consensus", outcome.consensus) and not outcome.asked
    found = Finding(holds, f"{outcome.consensus!r}, by branch consensus, and nobody asked: {_why(outcome)}")
    return found if outcome.task == "retrieval" else None


@law(
    2,
    "A consensus that is right and certified is not replaced by a wrong answer.",
    "That no right consensus is lost: one without a certificate may be.",
)
def no_correct_certified_consensus_is_overridden(outcome: Outcome) -> Finding | None:
    if not (_is_right(outcome, outcome.consensus) and outcome.supports(outcome.consensus)):
        return None
    return Finding(_is_right(outcome, outcome.answer), f"a right answer; right is {outcome.trial.gold!r}")


@law(
    3,
    "What ships in the place of consensus carries a certificate; in arithmetic, a checked derivation.",
    "That it is an improvement: a certified answer may be wrong.",
)
def override_needs_a_certificate(outcome: Outcome) -> Finding | None:
    if outcome.keeps(outcome.answer):
        return None
    return Finding(outcome.supports(outcome.answer), "consensus, or a certified answer")


@law(
    4,
    "In retrieval, where consensus is uncertified and the judge's preference certified, the preference ships,"
    " whatever the repairer would say.",
    "That the preference is better than the repair.",
)
def certified_preference_outranks_repair(outcome: Outcome) -> Finding | None:
    if outcome.task != "retrieval" or outcome.mark is not False or not outcome.admits(outcome.preference):
        return None
    return Finding(_ships(outcome, "judge", outcome.preference), f"{outcome.preference!r}, by branch judge")


@law(
    5,
    "In retrieval a repair ships only where neither consensus nor the judge's preference is certified.",
    "That a repair ships wherever this is so: it has to be certified itself.",
)
def repair_only_when_neither_is_certified(outcome: Outcome) -> Finding | None:
    if outcome.task != "retrieval" or outcome.branch != "repair":
        return None
    holds = outcome.mark is False and not outcome.admits(outcome.preference)
    return Finding(holds, f"no repair: {'the preference is certified' if outcome.mark is False else _why(outcome)}")


@law(
    6,
    "Where nothing else carries what may override, consensus ships.",
    "That consensus is right, or that there is one.",
)
def default_is_consensus(outcome: Outcome) -> Finding | None:
    if outcome.admits(outcome.repair) or (outcome.task == "retrieval" and outcome.admits(outcome.preference)):
        return None
    holds = _ships(outcome, "consensus", outcome.consensus)
    return Finding(holds, f"{outcome.consensus!r}, by branch consensus: {_why(outcome)}")


@law(
    7,
    "What ships is consensus, the judge's preference or the repair, and the branch says which.",
    "That it is the best of them, or that a repair is among the candidates.",
)
def answer_is_consensus_preference_or_repair(outcome: Outcome) -> Finding | None:
    named: Mapping[str, Sequence[str | None]] = {
        "consensus": [outcome.consensus],
        "judge": [answer for answer in (outcome.preference, outcome.stated) if answer is not None],
        "repair": [answer for answer in (outcome.repair,) if answer is not None],
    }
    return Finding(outcome.answer in named.get(outcome.branch, ()), "the answer that the branch names")


@law(
    8,
    "Exactly one case of Eq. 3 holds, whatever the three certificates are (true, false, inapplicable), and it decides.",
    "That these cases are the right ones.",
)
def the_cases_partition(outcome: Outcome) -> Finding | None:
    unsettled = outcome.task == "arithmetic" or outcome.mark is False
    preferred, repaired = (
        outcome.task == "retrieval" and outcome.admits(outcome.preference),
        outcome.admits(outcome.repair),
    )
    cases: dict[Branch, tuple[bool, str | None]] = {
        "judge": (unsettled and preferred, outcome.preference),
        "repair": (unsettled and not preferred and repaired, outcome.repair),
        "consensus": (not unsettled or not (preferred or repaired), outcome.consensus),
    }
    holding: list[tuple[Branch, str | None]] = [(branch, answer) for branch, (holds, answer) in cases.items() if holds]
    branch, answer = holding[0]
    why = f": {_why(outcome)}" if branch == "consensus" else ""
    return Finding(len(holding) == 1 and _ships(outcome, branch, answer), f"{answer!r}, by branch {branch}{why}")


@law(
    9,
    "Asking only what can still matter and asking every role first give the same answer and branch.",
    "The same cost, or the same record of who was consulted.",
)
def lazy_equals_always(outcome: Outcome) -> Finding | None:
    rule = outcome.subject.rule
    roles: tuple[Role, ...] = outcome.case.roles() if rule is evidence_locked else ROLES
    if not set(outcome.asked) <= set(roles):
        return Finding(False, f"no role beyond those that are always asked: {', '.join(roles) or 'none'}")
    full = replace(outcome.subject, rule=always(rule, lambda _: roles)).settle(outcome.trial)
    same = (outcome.answer, outcome.branch) == (full.answer, full.branch)
    return Finding(same, "the same where every role is asked first", full)


@law(
    10,
    "Two judges change what ships only where consensus is uncertified and a preference is certified; in"
    " arithmetic never.",
    "Which of the two judges is right.",
)
def judges_differ_only_where_admissible(outcome: Outcome) -> Finding | None:
    if "judge" not in outcome.asked:
        return None
    other = outcome.again(outcome.trial.replying("judge", outcome.trial.other_judge))
    if outcome.agrees(other):
        return None
    admitted = outcome.admits(outcome.preference) or other.admits(other.preference)
    holds = outcome.task == "retrieval" and outcome.mark is False and admitted
    return Finding(holds, f"the same where the judge's reply is {outcome.trial.other_judge!r}", other)


@law(
    11,
    "Where a wrong answer replaces a right consensus, the wrong answer is certified.",
    "That regressions cannot happen: a certificate does not make an answer right.",
)
def a_regression_needs_a_certified_wrong_answer(outcome: Outcome) -> Finding | None:
    if not _is_right(outcome, outcome.consensus) or _is_right(outcome, outcome.answer):
        return None
    return Finding(outcome.supports(outcome.answer), f"a right or a certified answer; right is {outcome.trial.gold!r}")


@law(
    15,
    "A judge whose call failed or was late, or whose reply is unusable, changes as much as a judge that abstains.",
    "That failures cost nothing: they are counted, under `on_error='raise'` they are errors, and a judge that is"
    " given all of the time leaves none to the repairer.",
)
def failed_judge_equals_silent_judge(outcome: Outcome) -> Finding | None:
    if "judge" not in outcome.asked:
        return None
    failed, silent = (outcome.again(outcome.trial.replying("judge", said)) for said in (outcome.trial.failure, SILENT))
    why = f"the same where the judge abstains as silent and as failed ({outcome.trial.failure.reason!r})"
    return Finding(failed.agrees(silent), why, failed)


@law(
    16,
    "In arithmetic a derivation that fails its check ships the same as a deriver that abstains.",
    "That a checked derivation is right: it executes, and may answer another question.",
)
def unchecked_derivation_changes_nothing(outcome: Outcome) -> Finding | None:
    reply = outcome.trial.reply("deriver")
    if outcome.task != "arithmetic" or not isinstance(reply, Derivation) or outcome.case.checked(reply).passed:
        return None
    silent = outcome.again(outcome.trial.replying("deriver", SILENT))
    return Finding(outcome.agrees(silent), "the same where the deriver is silent", silent)


@law(
    17,
    "Where all candidates that answer agree, no judge is asked.",
    "That nobody is: a repairer or deriver may be, by the setting `homogeneous`.",
)
def homogeneous_pools_consult_no_judge(outcome: Outcome) -> Finding | None:
    if len(outcome.classes) > 1:
        return None
    return Finding("judge" not in (*outcome.asked, *outcome.case.roles()), "no judge asked")


def _ships(outcome: Outcome, branch: Branch, answer: str | None) -> bool:
    return (outcome.branch, outcome.answer) == (branch, answer)


def _why(outcome: Outcome) -> str:
    """Return why nothing may replace consensus."""
    if outcome.mark is not False:
        return "consensus is certified" if outcome.mark else "no certificate applies to consensus"
    offered = {"preference": outcome.preference if outcome.task == "retrieval" else None, "repair": outcome.repair}
    unfit = "is in the same class as consensus", "has no certificate"
    said = (f"the {name} {one!r} {unfit[not outcome.keeps(one)]}" for name, one in offered.items() if one is not None)
    return "; ".join(said) or "no role gives another answer"


def _is_right(outcome: Outcome, answer: str | None) -> bool:
    gold = outcome.trial.gold
    return bool(gold.strip()) and outcome.case.type.right(answer, [gold])
