"""Each law has teeth: something wrong is planted for it, and `check_laws` finds it; and each law is really tried."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Choice, Decision, Rule, Steps, evidence_locked
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
from tests.case_tables import each_case, tables_of


def asks_about_a_certified_consensus(case: Any) -> Steps:
    if case.task == "retrieval" and case.certified(case.consensus) is True:
        yield "repairer"
    return (yield from evidence_locked(case))


def repairing(mark: bool | None, repair_mark: bool | None) -> Rule:
    def rule(case: Any) -> Steps:
        choice = yield from evidence_locked(case)
        if case.task == "retrieval" and case.repairable and case.certified(case.consensus) is mark:
            repair = case.repaired((yield "repairer"))
            if repair is not None and case.certified(repair) is repair_mark and not case.same(repair, case.consensus):
                return Choice("repair", repair)
        return choice

    return rule


replaces_a_yes_or_no, replaces_by_a_yes_or_no = repairing(None, True), repairing(False, None)
repairs_first = repairing(False, True)


def lets_the_judge_into_a_settled_matter(case: Any) -> Steps:
    if case.task == "retrieval" and case.contested:
        preference = case.preferred((yield "judge"))
        if case.certified(preference) is True and not case.same(preference, case.consensus):
            return Choice("judge", preference)
    return (yield from evidence_locked(case))


def altering(change: Callable[[Any, Choice], Choice]) -> Rule:
    """Changes what the shipped rule decides."""

    def rule(case: Any) -> Steps:
        return change(case, (yield from evidence_locked(case)))

    return rule


ships_nothing_by_default = altering(
    lambda case, it: it if it.branch != "consensus" or case.certified(it.answer) else Choice("consensus", None)
)
miscalls_the_branch = altering(lambda case, it: Choice("repair" if it.branch == "judge" else it.branch, it.answer))
edits_what_it_ships = altering(lambda case, it: Choice(it.branch, it.answer and it.answer.upper()))
never_repairs = altering(lambda case, it: it if it.branch == "judge" else Choice("consensus", case.consensus))
ships_the_latest_spelling = altering(
    lambda case, it: next(
        (Choice(it.branch, one) for one in case.question.answers[::-1] if case.same(one, it.answer)), it
    )
)


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


class LeavesOutTheRepairer(Case):
    def roles(self) -> tuple[Role, ...]:
        return tuple(role for role in super().roles() if role != "repairer")


class LastWins(Case):
    def __init__(self, question: Question, settings: Settings | None = None) -> None:
        super().__init__(question, settings)
        self.vote, other = replace(self.vote), majority(self.voters(question.answers), question.task)
        for name in ("winner", "tie"):
            object.__setattr__(self.vote, name, getattr(other, name))

    def voters(self, answers: tuple[str | None, ...]) -> tuple[str | None, ...]:
        return answers[::-1]


class FirstCountsTwice(LastWins):
    def voters(self, answers: tuple[str | None, ...]) -> tuple[str | None, ...]:
        return (*answers[:1], *answers)


class RanksByScore(Case):
    def record(self, choice: Choice, replies: Mapping[Role, Reply]) -> Decision:
        decision, verdict = super().record(choice, replies), replies.get("judge")
        scores = verdict.scores if isinstance(verdict, Verdict) else None
        ranking = sorted(decision.ranking, key=lambda i: -scores[i] if scores else 0)
        return replace(decision, ranking=tuple(ranking))


def distrusts_long_evidence(answer: str, passages: tuple[Passage, ...]) -> bool:
    text = " ".join(passage.text for passage in passages)
    return answer in text and len(text) < 12


def reads_by_letter(answer: str, passages: tuple[Passage, ...]) -> bool:
    return any(answer in passage.text for passage in passages)


def reads_the_first_passage(answer: str, passages: tuple[Passage, ...]) -> bool:
    return reads_by_letter(answer, passages[:1])


def try_law(name: str, wrong: dict[str, Any]) -> None:
    """Try a law on a wrong rule or certificate, or in the situations on the shipped rule over a wrong case."""
    if "case" not in wrong:
        check_laws(**wrong, laws=[name], max_examples=20_000)  # it stops at the first
    for trial in situations():
        LAW[name].check(Subject(evidence_locked, **wrong).settle(trial))


@each_case("laws", "planted", named=globals().__getitem__)
def test_what_is_planted_for_a_law_breaks_it(name: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(LawBroken, match=f"^Law [0-9]+, {name}, is broken") as info:
        try_law(name, wrong)
    assert info.value.law.name == name


def test_every_law_about_a_rule_has_something_planted_for_it() -> None:
    assert {name for name, _ in tables_of("laws")["planted"]["cases"]} == {law.name for law in OF_RULES}


GOALS: dict[str, Callable[[Outcome], bool]] = {
    "a certified preference overrides": lambda it: it.decision.branch == "judge",
    "a certified repair overrides": lambda it: it.case.task == "retrieval" and it.decision.branch == "repair",
    "a checked derivation overrides": lambda it: it.case.task == "arithmetic" and it.decision.branch == "repair",
    "a checked derivation agrees": lambda it: it.decision.reason == "derivation_agrees",
    "preference and repair are both certified": lambda it: (
        it.decision.branch == "judge" and it.admits(it.repair) and not it.alike(it.preference, it.repair)
    ),
    "an uncertified preference yields to a certified repair": lambda it: (
        it.roles == ("judge", "repairer") and it.preference is not None and it.decision.branch == "repair"
    ),
    "a yes or no is preferred against an uncertified consensus": lambda it: (
        it.mark is False and it.preference is not None and it.case.certified(it.preference) is None
    ),
    "a tie": lambda it: it.decision.tie,
    "scores choose, under the other reading": lambda it: (
        it.decision.branch == "judge" and not it.alike(it.nominee, it.preference)
    ),
    "a class is certified by a later spelling": lambda it: (
        it.mark is True
        and next(a for a in it.trial.question.answers if it.case.same(a, it.case.consensus)) != it.case.consensus
    ),
    "a candidate's own text among the passages": lambda it: any("own text" in note for note in it.decision.notes),
    "a right consensus is lost": lambda it: (
        it.decision.branch == "judge" and it.trial.gold == it.case.consensus and it.case.task == "retrieval"
    ),
    "a reply that is not one": lambda it: any(
        "is not" in reason or "no derived" in reason for reason in it.decision.abstentions.values()
    ),
}


class Finish(Exception):
    """The search can stop."""


@pytest.mark.slow
def test_the_generators_reach_all_that_the_laws_speak_of() -> None:
    subject, missing = Subject(evidence_locked), set(GOALS)

    @settings(max_examples=50_000, database=None, phases=[Phase.generate], deadline=None)
    @given(trial=consultations())
    def look(trial: Trial) -> None:
        outcome = subject.settle(trial)
        missing.difference_update([what for what in missing if GOALS[what](outcome)])
        if not missing:
            raise Finish

    with suppress(Finish):
        look()
    assert missing == set()


def test_a_certified_repair_that_fills_a_pool_without_answers_is_among_the_situations() -> None:
    """It is drawn once in two thousand trials."""
    outcomes = map(Subject(evidence_locked).settle, situations("retrieval"))
    assert any(one.case.consensus is None and one.decision.branch == "repair" for one in outcomes)
