"""The small situations are enough to catch a rule that errs in one place, so that no seed decides whether it is caught.

Each mutant is one exact replacement in a lawful rule: that of the tutorial, or the shipped one as `test_plants` has it.
"""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from eldgr_dspy import decision
from eldgr_dspy.consultations import Repair, Verdict
from eldgr_dspy.decision import Choice, Rule, evidence_locked
from eldgr_dspy.laws import LAW, LAWS, LawBroken
from eldgr_dspy.laws.situations import few_situations, situations
from eldgr_dspy.laws.trials import Subject, Trial
from eldgr_dspy.testing import check_laws
from eldgr_dspy.words import TASKS, Task

pytest.importorskip("z3", reason="z3 is not installed; the extra `test` has it")

from tests.laws.test_plants import ASK_THE_JUDGE, ASKING, SHIPPING, Plant, planted

TUTORIAL = """
def rule(case):
    if case.certified(case.consensus) is False and case.rival():
        preference = case.preferred((yield "judge"))
        if case.certified(preference) is True:
            return Choice("judge", preference)
    return Choice("consensus", case.consensus)
"""
WANTED = [
    "certified_consensus_is_final",
    "inapplicable_consensus_is_final",
    "override_needs_a_certificate",
    "failed_judge_equals_silent_judge",
    "homogeneous_pools_consult_no_judge",
]
NO_REPAIR = "the_cases_partition"
"""The one law that the tutorial's rule is not meant for."""

ABOUT_RULES = [law for law in LAWS if law.statement is not None]
ABOUT_ONE_DECISION = [law.name for law in ABOUT_RULES if law.number <= 8 or law.number in (15, 17)]
"""Those that try nothing else beside it, and the one of the tutorial's that does: quick, and enough here."""

PREFERENCE, ASK = "case.certified(preference) is True", 'case.preferred((yield "judge"))'
OPEN = "case.certified(case.consensus) is False"


def rule_of(text: str) -> Rule:
    names: dict[str, Any] = {"Choice": Choice}
    exec(text, names)  # noqa: S102 -- our own text
    rule: Rule = names["rule"]
    return rule


def mutant(old: str, new: str) -> Rule:
    assert TUTORIAL.count(old) == 1, old
    return rule_of(TUTORIAL.replace(old, new))


CAUGHT_BY_THE_WANTED = {
    "an inapplicable preference overrides": (PREFERENCE, "case.certified(preference) is not False"),
    "only an inapplicable preference overrides": (PREFERENCE, "case.certified(preference) is None"),
    "an uncertified preference overrides": (PREFERENCE, "case.certified(preference) is False"),
    "any preference overrides": (PREFERENCE, "preference is not None"),
    "silence overrides": (PREFERENCE, "True"),
    "an inapplicable consensus is open": (OPEN, "case.certified(case.consensus) is not True"),
    "only an inapplicable consensus is open": (OPEN, "case.certified(case.consensus) is None"),
    "a certified consensus is open": (OPEN, "case.certified(case.consensus) is not None"),
    "only a certified consensus is open": (OPEN, "case.certified(case.consensus) is True"),
    "every consensus is open": (f"{OPEN} and ", ""),
    "no rival is looked for": (" and case.rival()", ""),
    "a tie is taken for a contest": ("case.rival()", "not case.vote.tie"),
    "the first ships by default": ('"consensus", case.consensus', '"consensus", case.first'),
}
CAUGHT_BY_SOME_LAW = CAUGHT_BY_THE_WANTED | {
    "silence counts as the first candidate": (ASK, f"{ASK} or case.first"),
    "an abstention is index 0": (ASK, 'case.question.answers[getattr((yield "judge"), "preferred", 0)]'),
    "what the judge states, not what it comes to": (ASK, 'case.stated((yield "judge"))'),
    "the preference in the name of consensus": ('Choice("judge"', 'Choice("consensus"'),
    "ties are left alone": ("case.rival()", "case.rival() and not case.vote.tie"),
    "a preference for the first is not heard": (PREFERENCE, f"{PREFERENCE} and preference != case.first"),
    "consensus in the judge's name": ('"judge", preference', '"judge", case.consensus'),
}


def by_the_situations_alone(rule: Rule, laws: Sequence[str], task: Task | None = "retrieval") -> None:
    """Raises for the first law that is broken in one of them."""
    for trial in situations(task):
        outcome = Subject(rule).settle(trial)
        for law in laws:
            LAW[law].check(outcome)


@pytest.mark.parametrize("slip", CAUGHT_BY_THE_WANTED.values(), ids=CAUGHT_BY_THE_WANTED)
def test_a_slip_in_the_tutorial_s_rule_breaks_one_of_the_tutorial_s_laws(slip: tuple[str, str]) -> None:
    with pytest.raises(LawBroken):
        by_the_situations_alone(mutant(*slip), WANTED)


@pytest.mark.parametrize("slip", CAUGHT_BY_SOME_LAW.values(), ids=CAUGHT_BY_SOME_LAW)
def test_a_slip_in_the_tutorial_s_rule_breaks_some_law(slip: tuple[str, str]) -> None:
    with pytest.raises(LawBroken):
        by_the_situations_alone(mutant(*slip), [law for law in ABOUT_ONE_DECISION if law != NO_REPAIR])


def test_the_tutorial_s_rule_itself_passes() -> None:
    tried = check_laws(rule_of(TUTORIAL), without=[NO_REPAIR], task="retrieval", max_examples=1)
    assert NO_REPAIR not in tried
    assert min(count for name, count in tried.items() if name not in OF_REPAIR_OR_SUMS) > 0


OF_REPAIR_OR_SUMS = ("repair_only_when_neither_is_certified", "unchecked_derivation_changes_nothing")
LOCKED = "".join(inspect.getsource(part) for part in (evidence_locked, decision._derive, decision._overrides))
MAY_REPAIR = "    if case.repairable:\n        repair"
INAPPLICABLE = "repair and case.certified(repair) is not False and not case.same(repair, case.consensus)"


def repairing_where(condition: str) -> str:
    return MAY_REPAIR.replace("if case.repairable", condition)


REPAIRING = [
    Plant("repair only where no judge was asked", MAY_REPAIR, repairing_where("elif case.repairable"), ""),
    Plant("repair only where there is a rival", MAY_REPAIR, repairing_where("if case.rival()"), ""),
    Plant("no repair of one class", MAY_REPAIR, repairing_where("if case.contested"), ""),
    Plant("no repair of no answers", MAY_REPAIR, repairing_where("if case.repairable and case.consensus"), ""),
    Plant("a yes or no as repair", "_overrides(case, repair)", INAPPLICABLE, ""),
    Plant("the repairer in the judge's place", ASK_THE_JUDGE, ASK_THE_JUDGE.replace('"judge"))', '"repairer"))'), ""),
    Plant("no judge", ASK_THE_JUDGE, "", ""),
    Plant("a judge of two classes at most", "case.rival()", "case.rival() and case.vote.n_classes == 2", ""),
]
LAWFUL = {"the judge asked in every contested pool"}
"""It asks too many, which is no law about what ships."""


def of_the_locked_rule(plants: Sequence[Plant]) -> list[Plant]:
    return [plant for plant in plants if plant.old in LOCKED and plant.name not in LAWFUL]


@pytest.mark.parametrize(
    "plant", of_the_locked_rule([*SHIPPING, *ASKING, *REPAIRING]), ids=lambda plant: plant.name.replace(" ", "_")
)
def test_a_slip_in_the_shipped_rule_breaks_some_law(plant: Plant) -> None:
    module = planted(plant)
    vars(module)["Choice"] = Choice  # the planted one is another class of the same name
    with pytest.raises(LawBroken):
        by_the_situations_alone(module.evidence_locked, ABOUT_ONE_DECISION, task=None)


def test_the_shipped_rule_keeps_every_law_in_every_situation_and_each_has_something_to_say() -> None:
    said = dict.fromkeys((law.name for law in ABOUT_RULES), 0)
    for trial in situations():
        outcome = Subject(evidence_locked).settle(trial)
        for law in ABOUT_RULES:
            said[law.name] += law.check(outcome)
    assert min(said.values()) > 0, said


def test_the_situations_are_of_the_task_that_is_asked_for_and_some_five_hundred() -> None:
    by_task = {task: list(situations(task)) for task in TASKS}
    assert {task: {trial.question.task for trial in found} for task, found in by_task.items()} == {
        "retrieval": {"retrieval"},
        "arithmetic": {"arithmetic"},
    }
    assert list(situations()) == [*by_task["retrieval"], *by_task["arithmetic"]]
    assert 450 < len(list(situations())) < 550


def test_what_is_tried_of_a_selector_is_a_part_of_them_under_the_default_settings() -> None:
    for task in TASKS:
        few, all_of_them = list(few_situations(task)), list(situations(task))
        assert all(trial in all_of_them for trial in few)
        assert 55 < len(few) < 75


def test_among_them_is_the_judge_s_yes_or_no_against_an_uncertified_consensus_where_another_is_certified() -> None:
    """What three hundred drawn trials met once in two hundred and fifty, and a rule with `is not False` gets wrong."""

    def met(several: Iterator[Trial]) -> int:
        outcomes = map(Subject(evidence_locked).settle, several)
        return sum(
            found.mark is False and found.case.rival() and found.case.certified(found.preference) is None
            for found in outcomes
        )

    assert (met(situations("retrieval")), met(few_situations("retrieval"))) == (12, 3)


def test_in_each_situation_what_a_law_varies_fits_the_question() -> None:
    for trial in situations():
        n, passages = len(trial.question.answers), len(trial.question.passages)
        assert sorted(trial.pool_order) == list(range(n))
        assert set(trial.evidence_order) == set(range(passages))
        assert len(trial.other_scores) in (0, n)
        assert trial.other_judge != trial.reply("judge") or n < 2 or not any(trial.question.answers)
        for reply in (trial.reply("judge"), trial.other_judge):
            assert not isinstance(reply, Verdict) or reply.preferred < n
        assert not isinstance(trial.reply("repairer"), Repair) or trial.question.task == "retrieval"
