"""How each law about a rule is tried: a function of what a rule did, by the name of the law.

A statement returns None where the law has nothing to say of it, else what it found: whether the law holds, and
what it demands in words. What the laws claim, and what they do not, stands in `eldgr_dspy.laws`. Each outcome is looked
at from outside, by classes counted and certificates asked here; the rule's own account is not relied on. Standard
library alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from eldgr_dspy.answers import score
from eldgr_dspy.cases import is_as_written
from eldgr_dspy.consultations import Derivation, Repair, Verdict
from eldgr_dspy.decision import always, evidence_locked
from eldgr_dspy.laws.decorations import DECORATIONS, decorated, respellings
from eldgr_dspy.laws.trials import SILENT, Outcome, Trial
from eldgr_dspy.words import ROLES, Branch, Role


class Finding(NamedTuple):
    """What a law found on a trial to which it applies: whether it holds, and in words what it demands.

    `other` is what the same rule did on a changed trial, for a law that compares two.
    """

    holds: bool
    demanded: str
    other: Outcome | None = None


# -- what is final -----------------------------------------------------------------------------------------------------


def certified_consensus_is_final(found: Outcome) -> Finding | None:
    return _final(found) if found.mark is True else None


def inapplicable_consensus_is_final(found: Outcome) -> Finding | None:
    return _final(found) if found.mark is None else None


def _final(found: Outcome) -> Finding | None:
    if found.task != "retrieval":
        return None
    return Finding(_ships(found, "consensus", found.consensus) and not found.asked, "consensus, and nobody asked")


def no_correct_certified_consensus_is_overridden(found: Outcome) -> Finding | None:
    if not (_is_right(found, found.consensus) and found.supports(found.consensus)):
        return None
    return Finding(_is_right(found, found.answer), f"a right answer; right is {found.trial.gold!r}")


def override_needs_a_certificate(found: Outcome) -> Finding | None:
    if found.keeps(found.answer):
        return None
    return Finding(found.supports(found.answer), "consensus, or a certified answer")


# -- which case of Eq. 3 -----------------------------------------------------------------------------------------------


def certified_preference_outranks_repair(found: Outcome) -> Finding | None:
    if found.task != "retrieval" or found.mark is not False or not found.admits(found.preference):
        return None
    return Finding(_ships(found, "judge", found.preference), f"{found.preference!r}, by branch judge")


def repair_only_when_neither_is_certified(found: Outcome) -> Finding | None:
    if found.task != "retrieval" or found.branch != "repair":
        return None
    holds = found.mark is False and not found.admits(found.preference)
    return Finding(holds, "no repair: consensus or the preference is certified")


def default_is_consensus(found: Outcome) -> Finding | None:
    if found.admits(found.repair) or (found.task == "retrieval" and found.admits(found.preference)):
        return None
    return Finding(_ships(found, "consensus", found.consensus), "consensus")


def answer_is_consensus_preference_or_repair(found: Outcome) -> Finding | None:
    named: Mapping[str, Sequence[str | None]] = {
        "consensus": [found.consensus],
        "judge": [one for one in (found.preference, found.stated) if one is not None],
        "repair": [one for one in (found.repair,) if one is not None],
    }
    return Finding(found.answer in named.get(found.branch, ()), "the answer that the branch names")


def the_cases_partition(found: Outcome) -> Finding | None:
    unsettled = found.task == "arithmetic" or found.mark is False
    preferred, repaired = found.task == "retrieval" and found.admits(found.preference), found.admits(found.repair)
    cases: dict[Branch, tuple[bool, str | None]] = {
        "judge": (unsettled and preferred, found.preference),
        "repair": (unsettled and not preferred and repaired, found.repair),
        "consensus": (not unsettled or not (preferred or repaired), found.consensus),
    }
    holding: list[tuple[Branch, str | None]] = [(branch, answer) for branch, (holds, answer) in cases.items() if holds]
    branch, answer = holding[0]
    return Finding(len(holding) == 1 and _ships(found, branch, answer), f"{answer!r}, by branch {branch}")


# -- what is asked, and of whom ----------------------------------------------------------------------------------------


def lazy_equals_always(found: Outcome) -> Finding | None:
    rule = found.subject.rule
    roles: tuple[Role, ...] = found.case.roles() if rule is evidence_locked else ROLES
    if not set(found.asked) <= set(roles):
        return Finding(False, f"no role beyond those that are always asked: {', '.join(roles) or 'none'}")
    full = replace(found.subject, rule=always(rule, lambda _: roles)).settle(found.trial)
    same = (found.answer, found.branch) == (full.answer, full.branch)
    return Finding(same, "the same where every role is asked first", full)


def judges_differ_only_where_admissible(found: Outcome) -> Finding | None:
    if "judge" not in found.asked:
        return None
    other = found.again(found.trial.replying("judge", found.trial.other_judge))
    if found.agrees(other):
        return None
    admitted = found.admits(found.preference) or other.admits(other.preference)
    holds = found.task == "retrieval" and found.mark is False and admitted
    return Finding(holds, f"the same where the judge's reply is {found.trial.other_judge!r}", other)


def a_regression_needs_a_certified_wrong_answer(found: Outcome) -> Finding | None:
    if not _is_right(found, found.consensus) or _is_right(found, found.answer):
        return None
    return Finding(found.supports(found.answer), f"a right or a certified answer; right is {found.trial.gold!r}")


def failed_judge_equals_silent_judge(found: Outcome) -> Finding | None:
    if "judge" not in found.asked:
        return None
    failed, silent = (found.again(found.trial.replying("judge", one)) for one in (found.trial.failure, SILENT))
    why = f"the same where the judge abstains as silent and as failed ({found.trial.failure.reason!r})"
    return Finding(failed.agrees(silent), why, failed)


def unchecked_derivation_changes_nothing(found: Outcome) -> Finding | None:
    reply = found.trial.reply("deriver")
    if found.task != "arithmetic" or not isinstance(reply, Derivation) or found.case.checked(reply).passed:
        return None
    silent = found.again(found.trial.replying("deriver", SILENT))
    return Finding(found.agrees(silent), "the same where the deriver is silent", silent)


def homogeneous_pools_consult_no_judge(found: Outcome) -> Finding | None:
    if len(_classes(found)) > 1:
        return None
    return Finding("judge" not in (*found.asked, *found.case.roles()), "no judge asked")


# -- what does not matter ----------------------------------------------------------------------------------------------


def evidence_order_and_duplicates_do_not_matter(found: Outcome) -> Finding | None:
    passages, order = found.trial.question.passages, found.trial.evidence_order
    if not order:
        return None
    other = found.again(found.trial.with_evidence(tuple(passages[index] for index in order)))
    marked = all(found.case.certified(one) is other.case.certified(one) for one in found.trial.question.answers)
    return Finding(
        marked and found.agrees(other),
        f"the same, certificates too, with the passages in the order {list(order)}",
        other,
    )


def more_evidence_never_uncertifies(found: Outcome) -> Finding | None:
    answers = dict.fromkeys((*found.trial.question.answers, found.answer, found.repair))
    marked = [answer for answer in answers if found.case.certified(answer) is not False]
    if not (found.trial.more and marked):
        return None
    other = found.again(found.trial.with_evidence((*found.trial.question.passages, *found.trial.more)))
    lost = [answer for answer in marked if other.case.certified(answer) is not found.case.certified(answer)]
    final = found.task == "retrieval" and found.mark is not False
    more = [passage.text for passage in found.trial.more]
    return Finding(not lost and (found.agrees(other) or not final), f"the same certificates with {more} added", other)


def scores_never_cross_strata(found: Outcome) -> Finding | None:
    verdict, scores = found.trial.reply("judge"), found.trial.other_scores
    if not isinstance(verdict, Verdict) or not verdict.scores or len(scores) != len(verdict.scores):
        return None
    other = found.again(found.trial.replying("judge", replace(verdict, scores=scores)))
    alike = found.agrees(other) if found.trial.settings.preference == "global" else found.branch == other.branch
    rankings = [list(one.decision.ranking) for one in (found, other)]
    demanded = f"the same stratum with the scores {list(scores)}, and rankings by stratum, which are {rankings}"
    return Finding(alike and is_stratified(found) and is_stratified(other), demanded, other)


def ties_go_to_the_earliest(found: Outcome) -> Finding | None:
    classes = _classes(found)
    if sum(map(len, classes)) < 2:
        return None
    most = max(map(len, classes))
    leaders = [one for one in classes if len(one) == most]
    earliest = found.trial.question.answers[leaders[0][0]]
    holds = found.keeps(earliest) and found.decision.tie == (len(leaders) > 1)
    return Finding(holds, f"{earliest!r} as consensus, the earliest of {len(leaders)} with as many votes as any")


def candidate_order_does_not_matter(found: Outcome) -> Finding | None:
    order, scores = found.trial.pool_order, getattr(found.trial.reply("judge"), "scores", None) or ()
    tied = found.trial.settings.preference == "stratum" and len(set(scores)) < len(scores)
    if list(order) == sorted(order) or found.decision.tie or tied:
        return None
    other = found.again(_reordered(found.trial))
    return Finding(found.agrees(other), f"the same with the candidates in the order {list(order)}", other)


def spelling_within_a_class_does_not_matter(found: Outcome) -> Finding | None:
    answers = found.trial.question.answers
    members = next((one for one in _classes(found) if found.case.same(answers[one[0]], found.answer)), [])
    if found.branch not in ("consensus", "judge") or len({answers[index] for index in members}) < 2:
        return None
    written = [index for index in members if _stands_as_written(found, members, index)]
    expected = answers[min(written, default=members[0])]
    turned = dict(zip(members, [*members[1:], members[0]], strict=True))
    spelled = tuple(answers[turned.get(index, index)] for index in range(len(answers)))
    other = found.again(found.trial.with_answers(spelled))
    demanded = f"{expected!r}, and an answer of its class where the candidates are spelled {list(spelled)}"
    return Finding(found.answer == expected and found.agrees(other), demanded, other)


def spelling_does_not_decide(found: Outcome) -> Finding | None:
    if found.case.settings.certificate == "substring":
        return None
    answers, repair = found.trial.question.answers, found.trial.reply("repairer")
    for spelled in respellings(answers):
        trial = found.trial.with_answers(spelled)
        if isinstance(repair, Repair):
            again = decorated(repair.answer, DECORATIONS[len(repair.answer) % len(DECORATIONS)])
            trial = trial.replying("repairer", Repair(again or repair.answer))
        other = found.again(trial)
        holds = (
            found.agrees(other) and found.mark == other.mark and found.decision.certified == other.decision.certified
        )
        if not holds:
            return Finding(False, f"the same where the candidates are spelled {list(spelled)}", other)
    return Finding(True, "the same in every spelling") if any(answers) else None


# -- what the statements share -----------------------------------------------------------------------------------------


def _ships(found: Outcome, branch: Branch, answer: str | None) -> bool:
    return (found.branch, found.answer) == (branch, answer)


def _is_right(found: Outcome, answer: str | None) -> bool:
    gold = found.trial.gold
    return bool(gold.strip()) and score(answer, [gold], found.task).em


def _classes(found: Outcome) -> list[list[int]]:
    """The candidates that vote, by class, each class and each member in pool order; counted apart from the vote."""
    classes: list[list[int]] = []
    answers = found.trial.question.answers
    for index, answer in enumerate(answers):
        if found.case.same(answer, answer):
            known = next((one for one in classes if found.case.same(answers[one[0]], answer)), None)
            if known is None:
                classes.append([index])
            else:
                known.append(index)
    return classes


def is_stratified(found: Outcome) -> bool:
    """Whether the ranking has every candidate once, supported ones first."""
    case, answers = found.case, found.trial.question.answers
    derived = case.derived(found.trial.reply("deriver")) if "deriver" in found.asked else None

    def is_behind(answer: str | None) -> bool:
        if case.task == "arithmetic":
            return not case.same(answer, derived)
        return not case.same(answer, answer) or case.certified(answer) is False

    ranked = found.decision.ranking
    behind = [is_behind(answers[index]) for index in ranked]
    return sorted(ranked) == [*range(len(answers))] and behind == sorted(behind)


def _stands_as_written(found: Outcome, members: Sequence[int], index: int) -> bool:
    """Whether a class would be certified as written if all its members were spelled as this one."""
    spelled = list(found.trial.question.answers)
    for member in members:
        spelled[member] = found.trial.question.answers[index]
    question = replace(found.trial.question, answers=tuple(spelled))
    certificate = found.subject.case(question, found.trial.settings).certificate(spelled[index])
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
