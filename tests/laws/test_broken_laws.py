"""Each law has teeth: something wrong is planted for it, and `check_laws` finds it; and each law is really tried."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Choice, Decision, Steps, evidence_locked, majority_vote
from eldgr_dspy.decision import scalar_judge as full_authority
from eldgr_dspy.laws import LAW, LawBroken
from eldgr_dspy.laws.of_rules import OF_RULES
from eldgr_dspy.laws.situations import situations
from eldgr_dspy.laws.trials import Outcome, Subject, Trial
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Derivation, Reply, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.voting import majority
from eldgr_dspy.testing import check_laws, consultations
from eldgr_dspy.words import Role

# -- wrong rules -------------------------------------------------------------------------------------------------------


def asks_about_a_certified_consensus(case: Any) -> Steps:
    if case.task == "retrieval" and case.certified(case.consensus) is True:
        yield "repairer"
    return (yield from evidence_locked(case))


def repairs(
    case: Any, choice: Choice, *, marks: tuple[bool | None, ...], repair_marks: tuple[bool | None, ...]
) -> Steps:
    """Ship the repair where consensus and repair have these marks, else the choice."""
    if case.task == "retrieval" and case.repairable and case.certified(case.consensus) in marks:
        repair = case.repaired((yield "repairer"))
        if repair is not None and case.certified(repair) in repair_marks and not case.same(repair, case.consensus):
            return Choice("repair", repair)
    return choice


def replaces_a_yes_or_no(case: Any) -> Steps:
    return (yield from repairs(case, (yield from evidence_locked(case)), marks=(None,), repair_marks=(True,)))


def replaces_by_a_yes_or_no(case: Any) -> Steps:
    return (yield from repairs(case, (yield from evidence_locked(case)), marks=(False,), repair_marks=(None,)))


def repairs_first(case: Any) -> Steps:
    return (yield from repairs(case, (yield from evidence_locked(case)), marks=(False,), repair_marks=(True,)))


def lets_the_judge_into_a_settled_matter(case: Any) -> Steps:
    if case.task == "retrieval" and case.contested:
        preference = case.preferred((yield "judge"))
        if case.certified(preference) is True and not case.same(preference, case.consensus):
            return Choice("judge", preference)
    return (yield from evidence_locked(case))


def ships_nothing_by_default(case: Any) -> Steps:
    choice = yield from evidence_locked(case)
    return choice if choice.branch != "consensus" or case.certified(choice.answer) else Choice("consensus", None)


def miscalls_the_branch(case: Any) -> Steps:
    choice = yield from evidence_locked(case)
    return Choice("repair" if choice.branch == "judge" else choice.branch, choice.answer)


def edits_what_it_ships(case: Any) -> Steps:
    choice = yield from evidence_locked(case)
    return Choice(choice.branch, choice.answer and choice.answer.upper())


def never_repairs(case: Any) -> Steps:
    choice = yield from evidence_locked(case)
    return choice if choice.branch == "judge" else Choice("consensus", case.consensus)


def hears_the_judge_in_arithmetic(case: Any) -> Steps:
    return (yield from (full_authority if case.task == "arithmetic" else evidence_locked)(case))


def heeds_a_failure(case: Any) -> Steps:
    if case.task == "retrieval" and case.certified(case.consensus) is False and case.rival():
        reply = yield "judge"
        if isinstance(reply, Abstention) and reply.reason != "silent":
            return Choice("first", case.first)
    return (yield from evidence_locked(case))


def believes_every_derivation(case: Any) -> Steps:
    if case.task == "arithmetic" and case.repairable:
        reply = yield "deriver"
        if isinstance(reply, Derivation) and not case.same(reply.answer, case.consensus):
            return Choice("repair", reply.answer)
    return (yield from evidence_locked(case))


def always_asks_the_judge(case: Any) -> Steps:
    yield "judge"
    return (yield from evidence_locked(case))


def ships_the_latest_spelling(case: Any) -> Steps:
    branch, answer = yield from evidence_locked(case)
    return Choice(branch, next((one for one in reversed(case.question.answers) if case.same(one, answer)), answer))


# -- wrong votes, rankings, certificates -------------------------------------------------------------------------------


class LeavesOutTheRepairer(Case):
    """What is asked always is not all that the rule asks."""

    def roles(self) -> tuple[Role, ...]:
        return tuple(role for role in super().roles() if role != "repairer")


class LastWins(Case):
    """A vote in which a tie goes to the latest."""

    def __init__(self, question: Question, settings: Settings | None = None) -> None:
        super().__init__(question, settings)
        turned = majority(question.answers[::-1], question.task)
        self.vote = replace(turned, classes=turned.classes[::-1])


class FirstCountsTwice(Case):
    """A vote in which the first candidate has two."""

    def __init__(self, question: Question, settings: Settings | None = None) -> None:
        super().__init__(question, settings)
        more = majority((*question.answers[:1], *question.answers), question.task)
        self.vote = replace(more, classes=more.classes[1:])


class RanksByScore(Case):
    """A ranking by the judge's scores alone."""

    def record(self, choice: Choice, replies: Mapping[Role, Reply]) -> Decision:
        decision, verdict = super().record(choice, replies), replies.get("judge")
        scores = verdict.scores if isinstance(verdict, Verdict) else None
        return (
            replace(decision, ranking=tuple(sorted(decision.ranking, key=lambda i: -scores[i]))) if scores else decision
        )


def reads_one_passage(answer: str, passages: tuple[Passage, ...]) -> bool:
    return bool(passages) and answer in passages[0].text


def distrusts_long_evidence(answer: str, passages: tuple[Passage, ...]) -> bool:
    text = " ".join(passage.text for passage in passages)
    return answer in text and len(text) < 12


def looks_for_characters(answer: str, passages: tuple[Passage, ...]) -> bool:
    return any(answer in one.text for one in passages)


PLANTS: list[tuple[str, dict[str, Any]]] = [
    ("certified_consensus_is_final", {"rule": asks_about_a_certified_consensus}),
    ("inapplicable_consensus_is_final", {"rule": replaces_a_yes_or_no}),
    ("no_correct_certified_consensus_is_overridden", {"rule": lets_the_judge_into_a_settled_matter}),
    ("override_needs_a_certificate", {"rule": replaces_by_a_yes_or_no}),
    ("override_needs_a_certificate", {"rule": full_authority}),
    ("certified_preference_outranks_repair", {"rule": repairs_first}),
    ("certified_preference_outranks_repair", {"rule": majority_vote}),
    ("repair_only_when_neither_is_certified", {"rule": repairs_first}),
    ("default_is_consensus", {"rule": ships_nothing_by_default}),
    ("default_is_consensus", {"rule": full_authority}),
    ("answer_is_consensus_preference_or_repair", {"rule": edits_what_it_ships}),
    ("answer_is_consensus_preference_or_repair", {"rule": miscalls_the_branch}),
    ("the_cases_partition", {"rule": never_repairs}),
    ("lazy_equals_always", {"case": LeavesOutTheRepairer}),
    ("judges_differ_only_where_admissible", {"rule": hears_the_judge_in_arithmetic}),
    ("a_regression_needs_a_certified_wrong_answer", {"rule": full_authority}),
    ("evidence_order_and_duplicates_do_not_matter", {"certificate": reads_one_passage}),
    ("more_evidence_never_uncertifies", {"certificate": distrusts_long_evidence}),
    ("scores_never_cross_strata", {"case": RanksByScore}),
    ("ties_go_to_the_earliest", {"case": LastWins}),
    ("candidate_order_does_not_matter", {"case": FirstCountsTwice}),
    ("spelling_within_a_class_does_not_matter", {"rule": ships_the_latest_spelling}),
    ("spelling_does_not_decide", {"certificate": looks_for_characters}),
    ("failed_judge_equals_silent_judge", {"rule": heeds_a_failure}),
    ("unchecked_derivation_changes_nothing", {"rule": believes_every_derivation}),
    ("homogeneous_pools_consult_no_judge", {"rule": always_asks_the_judge}),
]


def plant_id(plant: tuple[str, dict[str, Any]]) -> str:
    (wrong,) = plant[1].values()
    return f"{plant[0]}-{getattr(wrong, '__name__', wrong)}"


def try_law(name: str, wrong: dict[str, Any]) -> None:
    """Try a law on a wrong rule or certificate, or in the situations on the shipped rule over a wrong case."""
    if "case" not in wrong:
        check_laws(**wrong, laws=[name], max_examples=20_000)  # it stops at the first
    for trial in situations():
        LAW[name].check(Subject(evidence_locked, **wrong).settle(trial))


@pytest.mark.parametrize("plant", PLANTS, ids=plant_id)
def test_what_is_planted_for_a_law_breaks_it(plant: tuple[str, dict[str, Any]]) -> None:
    name, wrong = plant
    with pytest.raises(LawBroken, match=f"^Law [0-9]+, {name}, is broken") as caught:
        try_law(name, wrong)
    assert caught.value.law.name == name


def test_every_law_about_a_rule_has_something_planted_for_it() -> None:
    assert {name for name, _ in PLANTS} == {law.name for law in OF_RULES}


# -- what the laws speak of is reached ---------------------------------------------------------------------------------

REACHED: dict[str, Callable[[Outcome], bool]] = {
    "a certified preference overrides": lambda outcome: outcome.decision.branch == "judge",
    "a certified repair overrides": lambda outcome: (
        outcome.case.task == "retrieval" and outcome.decision.branch == "repair"
    ),
    "a checked derivation overrides": lambda outcome: (
        outcome.case.task == "arithmetic" and outcome.decision.branch == "repair"
    ),
    "a checked derivation agrees": lambda outcome: outcome.decision.reason == "derivation_agrees",
    "preference and repair are both certified": lambda outcome: (
        outcome.decision.branch == "judge"
        and outcome.admits(outcome.repair)
        and not outcome.alike(outcome.preference, outcome.repair)
    ),
    "an uncertified preference yields to a certified repair": lambda outcome: (
        outcome.roles == ("judge", "repairer")
        and outcome.preference is not None
        and outcome.decision.branch == "repair"
    ),
    "a yes or no is preferred against an uncertified consensus": lambda outcome: (
        outcome.mark is False and outcome.preference is not None and outcome.case.certified(outcome.preference) is None
    ),
    "a tie": lambda outcome: outcome.decision.tie,
    "scores choose, under the other reading": lambda outcome: (
        outcome.decision.branch == "judge" and not outcome.alike(outcome.nominee, outcome.preference)
    ),
    "a class is certified by a later spelling": lambda outcome: (
        outcome.mark is True
        and next(a for a in outcome.trial.question.answers if outcome.case.same(a, outcome.case.consensus))
        != outcome.case.consensus
    ),
    "a candidate's own text among the passages": lambda outcome: any(
        "own text" in note for note in outcome.decision.notes
    ),
    "a right consensus is lost": lambda outcome: (
        outcome.decision.branch == "judge"
        and outcome.trial.gold == outcome.case.consensus
        and outcome.case.task == "retrieval"
    ),
    "a reply that is not one": lambda outcome: any(
        "is not" in reason or "no derived" in reason for reason in outcome.decision.abstentions.values()
    ),
}


class EverythingReached(Exception):
    """The search can stop."""


@pytest.mark.slow
def test_the_generators_reach_all_that_the_laws_speak_of() -> None:
    subject, missing = Subject(evidence_locked), set(REACHED)

    @settings(max_examples=50_000, database=None, phases=[Phase.generate], deadline=None)
    @given(trial=consultations())
    def look(trial: Trial) -> None:
        outcome = subject.settle(trial)
        missing.difference_update([what for what in missing if REACHED[what](outcome)])
        if not missing:
            raise EverythingReached

    with suppress(EverythingReached):
        look()
    assert missing == set()


def test_a_certified_repair_that_fills_a_pool_without_answers_is_among_the_situations() -> None:
    """It is drawn once in two thousand trials."""
    outcomes = map(Subject(evidence_locked).settle, situations("retrieval"))
    assert any(one.case.consensus is None and one.decision.branch == "repair" for one in outcomes)
