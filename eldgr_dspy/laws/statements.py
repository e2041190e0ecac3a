"""The check of each law about a rule: a function of the rule's outcome, with the name of the law.

A check returns None if the law does not apply to the outcome, else a `Finding`: whether the law holds, and what it
demands in words. `eldgr_dspy.laws` states what the laws claim and what they do not. A check counts classes and asks for
certificates itself instead of relying on the rule's own account. This module uses only the standard library.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from eldgr_dspy.certificates import is_as_written
from eldgr_dspy.consultations import Derivation, Repair, Verdict
from eldgr_dspy.decision import always, evidence_locked
from eldgr_dspy.laws.decorations import DECORATIONS, decorated, respellings
from eldgr_dspy.laws.trials import SILENT, Outcome, Trial
from eldgr_dspy.words import ROLES, Branch, Role


class Finding(NamedTuple):
    """The result of a law on a trial to which it applies: whether it holds, and what it demands in words.

    `other` is what the same rule did on a changed trial, for a law that compares two; `lines` come first in a message.
    """

    holds: bool
    demanded: str
    other: Outcome | None = None
    lines: tuple[tuple[str, str], ...] = ()


# -- what is final -----------------------------------------------------------------------------------------------------


def certified_consensus_is_final(outcome: Outcome) -> Finding | None:
    """Check that a certified consensus ships and nobody is asked."""
    return _final(outcome) if outcome.mark is True else None


def inapplicable_consensus_is_final(outcome: Outcome) -> Finding | None:
    """Check that a consensus to which no certificate applies ships and nobody is asked."""
    return _final(outcome) if outcome.mark is None else None


def _final(outcome: Outcome) -> Finding | None:
    holds = _ships(outcome, "consensus", outcome.consensus) and not outcome.asked
    found = Finding(holds, f"{outcome.consensus!r}, by branch consensus, and nobody asked: {_why(outcome)}")
    return found if outcome.task == "retrieval" else None


def no_correct_certified_consensus_is_overridden(outcome: Outcome) -> Finding | None:
    """Check that a right answer ships if consensus is right and certified."""
    if not (_is_right(outcome, outcome.consensus) and outcome.supports(outcome.consensus)):
        return None
    return Finding(_is_right(outcome, outcome.answer), f"a right answer; right is {outcome.trial.gold!r}")


def override_needs_a_certificate(outcome: Outcome) -> Finding | None:
    """Check that an answer that replaces consensus is certified."""
    if outcome.keeps(outcome.answer):
        return None
    return Finding(outcome.supports(outcome.answer), "consensus, or a certified answer")


# -- which case of Eq. 3 -----------------------------------------------------------------------------------------------


def certified_preference_outranks_repair(outcome: Outcome) -> Finding | None:
    """Check that a certified preference ships against an uncertified consensus."""
    if outcome.task != "retrieval" or outcome.mark is not False or not outcome.admits(outcome.preference):
        return None
    return Finding(_ships(outcome, "judge", outcome.preference), f"{outcome.preference!r}, by branch judge")


def repair_only_when_neither_is_certified(outcome: Outcome) -> Finding | None:
    """Check that consensus and the judge's preference are uncertified if a repair ships."""
    if outcome.task != "retrieval" or outcome.branch != "repair":
        return None
    holds = outcome.mark is False and not outcome.admits(outcome.preference)
    return Finding(holds, f"no repair: {'the preference is certified' if outcome.mark is False else _why(outcome)}")


def default_is_consensus(outcome: Outcome) -> Finding | None:
    """Check that consensus ships if nothing may override it."""
    if outcome.admits(outcome.repair) or (outcome.task == "retrieval" and outcome.admits(outcome.preference)):
        return None
    holds = _ships(outcome, "consensus", outcome.consensus)
    return Finding(holds, f"{outcome.consensus!r}, by branch consensus: {_why(outcome)}")


def answer_is_consensus_preference_or_repair(outcome: Outcome) -> Finding | None:
    """Check that the answer is the one that the branch names."""
    named: Mapping[str, Sequence[str | None]] = {
        "consensus": [outcome.consensus],
        "judge": [answer for answer in (outcome.preference, outcome.stated) if answer is not None],
        "repair": [answer for answer in (outcome.repair,) if answer is not None],
    }
    return Finding(outcome.answer in named.get(outcome.branch, ()), "the answer that the branch names")


def the_cases_partition(outcome: Outcome) -> Finding | None:
    """Check that exactly one case of Eq. 3 holds, and that it decides."""
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


# -- what is asked, and of whom ----------------------------------------------------------------------------------------


def lazy_equals_always(outcome: Outcome) -> Finding | None:
    """Check that asking every role first gives the same answer by the same branch."""
    rule = outcome.subject.rule
    roles: tuple[Role, ...] = outcome.case.roles() if rule is evidence_locked else ROLES
    if not set(outcome.asked) <= set(roles):
        return Finding(False, f"no role beyond those that are always asked: {', '.join(roles) or 'none'}")
    full = replace(outcome.subject, rule=always(rule, lambda _: roles)).settle(outcome.trial)
    same = (outcome.answer, outcome.branch) == (full.answer, full.branch)
    return Finding(same, "the same where every role is asked first", full)


def judges_differ_only_where_admissible(outcome: Outcome) -> Finding | None:
    """Check that another judge changes the result only through a certified preference."""
    if "judge" not in outcome.asked:
        return None
    other = outcome.again(outcome.trial.replying("judge", outcome.trial.other_judge))
    if outcome.agrees(other):
        return None
    admitted = outcome.admits(outcome.preference) or other.admits(other.preference)
    holds = outcome.task == "retrieval" and outcome.mark is False and admitted
    return Finding(holds, f"the same where the judge's reply is {outcome.trial.other_judge!r}", other)


def a_regression_needs_a_certified_wrong_answer(outcome: Outcome) -> Finding | None:
    """Check that a wrong answer that replaces a right consensus is certified."""
    if not _is_right(outcome, outcome.consensus) or _is_right(outcome, outcome.answer):
        return None
    return Finding(outcome.supports(outcome.answer), f"a right or a certified answer; right is {outcome.trial.gold!r}")


def failed_judge_equals_silent_judge(outcome: Outcome) -> Finding | None:
    """Check that a failed call of the judge has the same effect as an abstention."""
    if "judge" not in outcome.asked:
        return None
    failed, silent = (outcome.again(outcome.trial.replying("judge", said)) for said in (outcome.trial.failure, SILENT))
    why = f"the same where the judge abstains as silent and as failed ({outcome.trial.failure.reason!r})"
    return Finding(failed.agrees(silent), why, failed)


def unchecked_derivation_changes_nothing(outcome: Outcome) -> Finding | None:
    """Check that a derivation that fails its check has the same effect as none."""
    reply = outcome.trial.reply("deriver")
    if outcome.task != "arithmetic" or not isinstance(reply, Derivation) or outcome.case.checked(reply).passed:
        return None
    silent = outcome.again(outcome.trial.replying("deriver", SILENT))
    return Finding(outcome.agrees(silent), "the same where the deriver is silent", silent)


def homogeneous_pools_consult_no_judge(outcome: Outcome) -> Finding | None:
    """Check that no judge is asked if all answers are of one class."""
    if len(_classes(outcome)) > 1:
        return None
    return Finding("judge" not in (*outcome.asked, *outcome.case.roles()), "no judge asked")


# -- what does not matter ----------------------------------------------------------------------------------------------


def evidence_order_and_duplicates_do_not_matter(outcome: Outcome) -> Finding | None:
    """Check that reordered and repeated passages certify and ship the same."""
    passages, order = outcome.trial.question.passages, outcome.trial.evidence_order
    if not order:
        return None
    other = outcome.again(outcome.trial.with_evidence(tuple(passages[index] for index in order)))
    marked = all(outcome.case.certified(text) is other.case.certified(text) for text in outcome.trial.question.answers)
    return Finding(
        marked and outcome.agrees(other),
        f"the same, certificates too, with the passages in the order {list(order)}",
        other,
    )


def more_evidence_never_uncertifies(outcome: Outcome) -> Finding | None:
    """Check that added passages keep certificates and final consensus; what none applied to may become certified."""
    answers = dict.fromkeys((*outcome.trial.question.answers, outcome.answer, outcome.repair))
    marked = [answer for answer in answers if outcome.case.certified(answer) is not False]
    if not (outcome.trial.more and marked):
        return None
    other = outcome.again(outcome.trial.with_evidence((*outcome.trial.question.passages, *outcome.trial.more)))
    lost = [answer for answer in marked if other.case.certified(answer) not in {outcome.case.certified(answer), True}]
    final = outcome.task == "retrieval" and outcome.mark is not False
    more = [passage.text for passage in outcome.trial.more]
    return Finding(not lost and (outcome.agrees(other) or not final), f"the same certificates with {more} added", other)


def scores_never_cross_strata(outcome: Outcome) -> Finding | None:
    """Check that other scores keep the stratum that ships, and that rankings go by stratum."""
    verdict, scores = outcome.trial.reply("judge"), outcome.trial.other_scores
    if not isinstance(verdict, Verdict) or not verdict.scores or len(scores) != len(verdict.scores):
        return None
    other = outcome.again(outcome.trial.replying("judge", replace(verdict, scores=scores)))
    alike = outcome.agrees(other) if outcome.trial.settings.preference == "global" else outcome.branch == other.branch
    rankings = [list(side.decision.ranking) for side in (outcome, other)]
    demanded = f"the same stratum with the scores {list(scores)}, and rankings by stratum, which are {rankings}"
    return Finding(alike and is_stratified(outcome) and is_stratified(other), demanded, other)


def ties_go_to_the_earliest(outcome: Outcome) -> Finding | None:
    """Check that consensus is the class with the most votes, and in a tie the earliest of these."""
    classes = _classes(outcome)
    if sum(map(len, classes)) < 2:
        return None
    most = max(map(len, classes))
    leaders = [class_ for class_ in classes if len(class_) == most]
    earliest = outcome.trial.question.answers[leaders[0][0]]
    holds = outcome.keeps(earliest) and outcome.decision.tie == (len(leaders) > 1)
    return Finding(holds, f"{earliest!r} as consensus, the earliest of {len(leaders)} with as many votes as any")


def candidate_order_does_not_matter(outcome: Outcome) -> Finding | None:
    """Check that without a tie the same class ships when the candidates are reordered."""
    order, scores = outcome.trial.pool_order, getattr(outcome.trial.reply("judge"), "scores", None) or ()
    tied = outcome.trial.settings.preference == "stratum" and len(set(scores)) < len(scores)
    if list(order) == sorted(order) or outcome.decision.tie or tied:
        return None
    other = outcome.again(_reordered(outcome.trial))
    return Finding(outcome.agrees(other), f"the same with the candidates in the order {list(order)}", other)


def spelling_within_a_class_does_not_matter(outcome: Outcome) -> Finding | None:
    """Check which spelling of a class ships, whichever candidates have which spelling."""
    answers = outcome.trial.question.answers
    members = next((group for group in _classes(outcome) if outcome.case.same(answers[group[0]], outcome.answer)), [])
    if outcome.branch not in ("consensus", "judge") or len({answers[index] for index in members}) < 2:
        return None
    written = [index for index in members if _stands_as_written(outcome, members, index)]
    expected = answers[min(written, default=members[0])]
    turned = dict(zip(members, [*members[1:], members[0]], strict=True))
    spelled = tuple(answers[turned.get(index, index)] for index in range(len(answers)))
    other = outcome.again(outcome.trial.with_answers(spelled))
    demanded = f"{expected!r}, and an answer of its class where the candidates are spelled {list(spelled)}"
    return Finding(outcome.answer == expected and outcome.agrees(other), demanded, other)


def spelling_does_not_decide(outcome: Outcome) -> Finding | None:
    """Check that marks around answers change neither class, branch nor certificate."""
    if outcome.case.settings.certificate == "substring":
        return None
    answers, repair = outcome.trial.question.answers, outcome.trial.reply("repairer")
    for spelled in respellings(answers):
        trial = outcome.trial.with_answers(spelled)
        if isinstance(repair, Repair):
            again = decorated(repair.answer, DECORATIONS[len(repair.answer) % len(DECORATIONS)])
            trial = trial.replying("repairer", Repair(again or repair.answer))
        other = outcome.again(trial)
        holds = (
            outcome.agrees(other)
            and outcome.mark == other.mark
            and outcome.decision.certified == other.decision.certified
        )
        if not holds:
            return Finding(False, f"the same where the candidates are spelled {list(spelled)}", other)
    return Finding(True, "the same in every spelling") if any(answers) else None


# -- what the statements share -----------------------------------------------------------------------------------------


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


def _classes(outcome: Outcome) -> list[list[int]]:
    """The candidates that vote, by class, each class and each member in pool order; counted apart from the vote."""
    classes: list[list[int]] = []
    answers = outcome.trial.question.answers
    for index, answer in enumerate(answers):
        if outcome.case.same(answer, answer):
            known = next((class_ for class_ in classes if outcome.case.same(answers[class_[0]], answer)), None)
            if known is None:
                classes.append([index])
            else:
                known.append(index)
    return classes


def is_stratified(outcome: Outcome) -> bool:
    """Whether the ranking has every candidate once, supported ones first."""
    case, answers = outcome.case, outcome.trial.question.answers
    derived = case.derived(outcome.trial.reply("deriver")) if "deriver" in outcome.asked else None

    def is_behind(answer: str | None) -> bool:
        if case.task == "arithmetic":
            return not case.same(answer, derived)
        return not case.same(answer, answer) or case.certified(answer) is False or case.refuses(answer)

    ranked = outcome.decision.ranking
    behind = [is_behind(answers[index]) for index in ranked]
    return sorted(ranked) == [*range(len(answers))] and behind == sorted(behind)


def _stands_as_written(outcome: Outcome, members: Sequence[int], index: int) -> bool:
    """Whether a class would be certified as written if all its members were spelled as this one."""
    spelled = list(outcome.trial.question.answers)
    for member in members:
        spelled[member] = outcome.trial.question.answers[index]
    question = replace(outcome.trial.question, answers=tuple(spelled))
    certificate = outcome.subject.case(question, outcome.trial.settings).certificate(spelled[index])
    return certificate.certified is True and is_as_written(certificate)


def _reordered(trial: Trial) -> Trial:
    """The same candidates in the trial's other order, and the judge's reply about the same candidates."""
    question, order, verdict = trial.question, trial.pool_order, trial.reply("judge")
    moved = replace(
        question,
        answers=tuple(question.answers[index] for index in order),
        texts=tuple(question.texts[index] for index in order) if question.texts else (),
    )
    if isinstance(verdict, Verdict):
        scores = tuple(verdict.scores[index] for index in order) if verdict.scores else None
        verdict = replace(verdict, preferred=order.index(verdict.preferred), scores=scores)
    return replace(trial.replying("judge", verdict), question=moved)
