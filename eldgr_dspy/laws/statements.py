"""The laws of a rule about what ships and who is asked: each a claim, what it does not claim, and how it is checked.

A check returns None if the law does not apply to the outcome. It counts classes and asks for certificates itself
instead of relying on the rule's own account.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eldgr_dspy.decision import always, evidence_locked
from eldgr_dspy.laws.findings import Finding, Law, law
from eldgr_dspy.laws.trials import SILENT, Outcome, in_words
from eldgr_dspy.rule.consultations import Abstention, Derivation, Verdict
from eldgr_dspy.words import ROLES, Branch, Role

_FAILED = Abstention("failed: the call timed out")


@law(1, "In retrieval a certified consensus ships, whatever any role would reply, and nobody is asked.")
def certified_consensus_is_final(outcome: Outcome) -> Finding | None:
    return _final(outcome) if outcome.mark is True else None


@law(1, "In retrieval a consensus to which no certificate applies (a yes, no or refusal) ships, and nobody is asked.")
def inapplicable_consensus_is_final(outcome: Outcome) -> Finding | None:
    return _final(outcome) if outcome.mark is None else None


def _final(outcome: Outcome) -> Finding | None:
    if outcome.case.task != "retrieval":
        return None
    holds = _ships(outcome, "consensus", outcome.consensus) and not outcome.roles
    return Finding(holds, f"{outcome.consensus!r}, by branch consensus, and nobody asked")


@law(2, "A consensus that is right and certified is not replaced by a wrong answer.")
def no_correct_certified_consensus_is_overridden(outcome: Outcome) -> Finding | None:
    if not (_is_right(outcome, outcome.consensus) and outcome.supports(outcome.consensus)):
        return None
    return Finding(_is_right(outcome, outcome.answer), f"a right answer; right is {outcome.trial.gold!r}")


@law(3, "What ships in the place of consensus carries a certificate; in arithmetic, a checked derivation.")
def override_needs_a_certificate(outcome: Outcome) -> Finding | None:
    if outcome.keeps(outcome.answer):
        return None
    return Finding(outcome.supports(outcome.answer), "consensus, or a certified answer")


@law(
    4,
    "In retrieval, where consensus is uncertified and the judge's preference certified, the preference ships,"
    " whatever the repairer would say.",
)
def certified_preference_outranks_repair(outcome: Outcome) -> Finding | None:
    if outcome.case.task != "retrieval" or outcome.mark is not False or not outcome.admits(outcome.preference):
        return None
    return Finding(_ships(outcome, "judge", outcome.preference), f"{outcome.preference!r}, by branch judge")


@law(5, "In retrieval a repair ships only where neither consensus nor the judge's preference is certified.")
def repair_only_when_neither_is_certified(outcome: Outcome) -> Finding | None:
    if outcome.case.task != "retrieval" or outcome.branch != "repair":
        return None
    holds = outcome.mark is False and not outcome.admits(outcome.preference)
    return Finding(holds, "no repair, since consensus is not uncertified or the preference is certified")


@law(6, "Where nothing else carries what may override, consensus ships.")
def default_is_consensus(outcome: Outcome) -> Finding | None:
    if outcome.admits(outcome.repair) or (outcome.case.task == "retrieval" and outcome.admits(outcome.preference)):
        return None
    return Finding(_ships(outcome, "consensus", outcome.consensus), f"{outcome.consensus!r}, by branch consensus")


@law(7, "What ships is consensus, the judge's preference or the repair, and the branch says which.")
def answer_is_consensus_preference_or_repair(outcome: Outcome) -> Finding | None:
    sources: Mapping[str, Sequence[str | None]] = {
        "consensus": [outcome.consensus],
        "judge": [answer for answer in (outcome.preference, outcome.nominee) if answer is not None],
        "repair": [answer for answer in (outcome.repair,) if answer is not None],
    }
    return Finding(outcome.answer in sources.get(outcome.branch, ()), "the answer that the branch names")


@law(
    8,
    "Exactly one case of Eq. 3 holds, whatever the three certificates are (true, false, inapplicable), and it decides.",
)
def the_cases_partition(outcome: Outcome) -> Finding | None:
    unsettled = outcome.case.task == "arithmetic" or outcome.mark is False
    preferred, repaired = (
        outcome.case.task == "retrieval" and outcome.admits(outcome.preference),
        outcome.admits(outcome.repair),
    )
    cases: list[tuple[bool, Branch, str | None]] = [
        (unsettled and preferred, "judge", outcome.preference),
        (unsettled and not preferred and repaired, "repair", outcome.repair),
        (not unsettled or not (preferred or repaired), "consensus", outcome.consensus),
    ]
    (_, branch, answer), *more = (case for case in cases if case[0])
    return Finding(not more and _ships(outcome, branch, answer), f"{answer!r}, by branch {branch}")


@law(9, "Asking only what can still matter and asking every role first give the same answer and branch.")
def lazy_equals_always(outcome: Outcome) -> Finding | None:
    rule = outcome.subject.rule
    roles: tuple[Role, ...] = outcome.case.roles() if rule is evidence_locked else ROLES
    if not set(outcome.roles) <= set(roles):
        return Finding(False, f"no role beyond those that are always asked: {', '.join(roles) or 'none'}")
    full = replace(outcome.subject, rule=always(rule, lambda _: roles)).settle(outcome.trial)
    same = (outcome.answer, outcome.branch) == (full.answer, full.branch)
    return Finding(same, "the same where every role is asked first", full)


@law(
    10,
    "Two judges change what ships only where consensus is uncertified and a preference is certified; in arithmetic"
    " never.",
)
def judges_differ_only_where_admissible(outcome: Outcome) -> Finding | None:
    if "judge" not in outcome.roles:
        return None
    others = (
        Verdict(class_[0]) for class_ in outcome.classes if outcome.trial.question.answers[class_[0]] != outcome.nominee
    )
    other = outcome.again(outcome.trial.replying("judge", rival := next(others, SILENT)))
    if outcome.agrees(other):
        return None
    admitted = outcome.admits(outcome.preference) or other.admits(other.preference)
    holds = outcome.case.task == "retrieval" and outcome.mark is False and admitted
    return Finding(holds, f"the same where the judge {in_words(rival)}", other)


@law(11, "Where a wrong answer replaces a right consensus, the wrong answer is certified.")
def a_regression_needs_a_certified_wrong_answer(outcome: Outcome) -> Finding | None:
    if not _is_right(outcome, outcome.consensus) or _is_right(outcome, outcome.answer):
        return None
    return Finding(outcome.supports(outcome.answer), f"a right or a certified answer; right is {outcome.trial.gold!r}")


@law(15, "A judge whose call failed or was late, or whose reply is unusable, changes as much as a judge that abstains.")
def failed_judge_equals_silent_judge(outcome: Outcome) -> Finding | None:
    if "judge" not in outcome.roles:
        return None
    failed, silent = (outcome.again(outcome.trial.replying("judge", reply)) for reply in (_FAILED, SILENT))
    return Finding(failed.agrees(silent), "the same where the judge abstains as silent and as failed", failed)


@law(16, "In arithmetic a derivation that fails its check ships the same as a deriver that abstains.")
def unchecked_derivation_changes_nothing(outcome: Outcome) -> Finding | None:
    reply = outcome.trial.reply("deriver")
    if outcome.case.task != "arithmetic" or not isinstance(reply, Derivation) or outcome.case.check(reply).passed:
        return None
    silent = outcome.again(outcome.trial.replying("deriver", SILENT))
    return Finding(outcome.agrees(silent), "the same where the deriver is silent", silent)


@law(17, "Where all candidates that answer agree, no judge is asked.")
def homogeneous_pools_consult_no_judge(outcome: Outcome) -> Finding | None:
    if len(outcome.classes) > 1:
        return None
    return Finding("judge" not in (*outcome.roles, *outcome.case.roles()), "no judge asked")


def _ships(outcome: Outcome, branch: Branch, answer: str | None) -> bool:
    return (outcome.branch, outcome.answer) == (branch, answer)


def _is_right(outcome: Outcome, answer: str | None) -> bool:
    gold = outcome.trial.gold
    return bool(gold.strip()) and outcome.case.type.right(answer, [gold])


STATEMENTS = tuple(one for one in (*vars().values(),) if isinstance(one, Law))
