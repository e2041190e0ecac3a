"""A changed rule fails: each change is planted in the shipped text, and the tables and the proof are to see it.

A plant is one exact replacement in the source of `eldgr_dspy.decision`. What it breaks is named: a law, or what else is
claimed in `tests/laws/claims.py`. Most change what ships; those that change only who is asked say so.
"""

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import pytest

from eldgr_dspy import decision
from tests.laws.patterns import Checked
from tests.laws.proving import Rules, refute

SOURCE = inspect.getsource(decision)


@dataclass(frozen=True)
class Plant:
    """One change: `old` stands in the source exactly once, and `new` in its place breaks `breaks`."""

    name: str
    old: str
    new: str
    breaks: str


def planted(plant: Plant) -> ModuleType:
    """The decision module with a change."""
    assert SOURCE.count(plant.old) == 1, f"{plant.name}: the text to change is not there, or not once"
    module = ModuleType("planted")
    exec(compile(SOURCE.replace(plant.old, plant.new), "planted", "exec"), module.__dict__)  # noqa: S102 -- our own text
    return module


ASK_THE_JUDGE = """    if case.rival():
        preference = case.preferred((yield "judge"))
        if _overrides(case, preference):
            return Choice("judge", preference)
"""
ASK_THE_REPAIRER = """    if case.repairable:
        repair = case.repaired((yield "repairer"))
        if _overrides(case, repair):
            return Choice("repair", repair)
"""
SHIP_A_FINAL_CONSENSUS = """    if case.certified(case.consensus) is not False:
        return Choice("consensus", case.consensus)
"""
OVERRIDES = "return answer is not None and case.certified(answer) is True and not case.same(answer, case.consensus)"
DERIVED = "derived is not None and not case.same(derived, case.consensus)"
STATED = "preference is not None and not case.same(preference, case.consensus)"
TRIES = "if _overrides(case, preference):"

SHIPPING = [
    Plant(
        "the repairer before the judge",
        ASK_THE_JUDGE + ASK_THE_REPAIRER,
        ASK_THE_REPAIRER + ASK_THE_JUDGE,
        "certified_preference_outranks_repair",
    ),
    Plant(
        "the judge before a final consensus",
        SHIP_A_FINAL_CONSENSUS + ASK_THE_JUDGE,
        ASK_THE_JUDGE + SHIP_A_FINAL_CONSENSUS,
        "certified_consensus_is_final",
    ),
    Plant(
        "the judge let in where consensus is certified",
        "case.certified(case.consensus) is not False",
        "case.certified(case.consensus) is None",
        "no_correct_certified_consensus_is_overridden",
    ),
    Plant(
        "the judge let in where consensus is inapplicable",
        "case.certified(case.consensus) is not False",
        "case.certified(case.consensus)",
        "inapplicable_consensus_is_final",
    ),
    Plant("no consensus is final", SHIP_A_FINAL_CONSENSUS, "", "judges_differ_only_where_admissible"),
    Plant(
        "an answer of consensus's class overrides",
        OVERRIDES,
        "return answer is not None and case.certified(answer) is True",
        "override_needs_a_certificate",
    ),
    Plant(
        "classes compared by spelling",
        OVERRIDES,
        "return answer is not None and case.certified(answer) is True and answer != case.consensus",
        "override_needs_a_certificate",
    ),
    Plant(
        "an inapplicable answer overrides",
        OVERRIDES,
        OVERRIDES.replace("is True", "is not False"),
        "default_is_consensus",
    ),
    Plant("an uncertified answer overrides", OVERRIDES, OVERRIDES.replace("is True", "is False"), "is_eq3"),
    Plant("an uncertified preference overrides", TRIES, "if preference is not None:", "override_needs_a_certificate"),
    Plant(
        "a silent judge ships nothing",
        TRIES,
        "if preference is None or _overrides(case, preference):",
        "failed_judge_equals_silent_judge",
    ),
    Plant(
        "an uncertified repair overrides",
        "if _overrides(case, repair):",
        "if repair is not None and not case.same(repair, case.consensus):",
        "a_regression_needs_a_certified_wrong_answer",
    ),
    Plant(
        "repair although it may not be asked",
        ASK_THE_REPAIRER,
        ASK_THE_REPAIRER.replace("case.repairable", "True"),
        "the_cases_partition",
    ),
    Plant("the other reading of Eq. 3", "case.preferred((yield", "case.stated((yield", "is_eq3"),
    Plant(
        "the repair in the judge's name",
        'Choice("repair", repair)',
        'Choice("judge", repair)',
        "answer_is_consensus_preference_or_repair",
    ),
    Plant(
        "consensus in the repair's place",
        'Choice("repair", repair)',
        'Choice("repair", case.consensus)',
        "repair_only_when_neither_is_certified",
    ),
    Plant(
        "the tasks exchanged",
        'case.task == "arithmetic"',
        'case.task != "arithmetic"',
        "unchecked_derivation_changes_nothing",
    ),
    Plant(
        "a derivation that agrees counts as repair",
        DERIVED,
        "derived is not None",
        "no_correct_certified_consensus_is_overridden",
    ),
    Plant(
        "a silent deriver ships nothing",
        DERIVED,
        "not case.same(derived, case.consensus)",
        "unchecked_derivation_changes_nothing",
    ),
    Plant(
        "the derivation in the judge's name",
        'Choice("repair", derived)',
        'Choice("judge", derived)',
        "answer_is_consensus_preference_or_repair",
    ),
    Plant("the scalar judge overrides with its own class", STATED, "preference is not None", "is_the_scalar_judge"),
    Plant(
        "the scalar judge reads the other preference",
        "case.stated((yield",
        "case.preferred((yield",
        "is_the_scalar_judge",
    ),
    Plant("the first is consensus", 'Choice("first", case.first)', 'Choice("first", case.consensus)', "is_first"),
    Plant("asked always, the last role is forgotten", "in roles(case):", "in roles(case)[:-1]:", "lazy_equals_always"),
    Plant(
        "decide prefers the repair",
        '(True, True, True): ("judge", preference,',
        '(True, True, True): ("repair", repair,',
        "certified_preference_outranks_repair",
    ),
    Plant(
        "decide overrides an inapplicable consensus",
        "table.get((m is False,",
        "table.get((not m,",
        "inapplicable_consensus_is_final",
    ),
    Plant(
        "decide lets an inapplicable preference override",
        "m is False, s is True,",
        "m is False, s is not False,",
        "override_needs_a_certificate",
    ),
    Plant(
        "decide certifies empty answers",
        "(marks.get(answer, False) for answer in",
        "(marks.get(answer, True) for answer in",
        "default_is_consensus",
    ),
    Plant(
        "decide asks for the certificate of empty answers",
        "fromkeys(three) if answer}",
        "fromkeys(three) if answer is not None}",
        "is_eq3",
    ),
]

ASKING = [
    Plant("the judge asked without a rival", "case.rival()", "True", "who_is_asked_can_matter"),
    Plant("the judge asked in every contested pool", "case.rival()", "case.contested", "asks_who_can_matter"),
    Plant(
        "the judge asked of one class",
        ASK_THE_JUDGE,
        ASK_THE_JUDGE.replace("case.rival()", "True"),
        "homogeneous_pools_consult_no_judge",
    ),
    Plant(
        "the judge asked in arithmetic",
        'derived = case.derived((yield "deriver"))',
        'yield "judge"\n        derived = case.derived((yield "deriver"))',
        "asks_who_can_matter",
    ),
    Plant(
        "the scalar judge asked of one class", "if case.contested:", "if True:", "homogeneous_pools_consult_no_judge"
    ),
    Plant(
        "the majority asks",
        '"""Ship consensus."""\n    yield from ()',
        'yield "judge"',
        "homogeneous_pools_consult_no_judge",
    ),
]


UNSEEN_BY_THE_TABLES = [
    Plant(
        "a rule that looks into a reply",
        'case.preferred((yield "judge"))',
        'case.preferred((yield "judge") or {"judge": None})',
        "failed_judge_equals_silent_judge",
    ),
]
"""Only the proof has replies that refuse to be looked at."""

EQUIVALENT = [
    Plant("any true certificate", "case.certified(answer) is True", "case.certified(answer)", "nothing"),
    Plant("a rival where it is contested", "case.rival()", "case.contested and case.rival()", "nothing"),
    Plant(
        "no preference is asked about twice",
        TRIES,
        "if preference is not None and _overrides(case, preference):",
        "nothing",
    ),
]
"""No changes at all: a certificate has three values, and where there is a rival there are two classes."""

ABOUT_SHIPPING = ("is_eq3", "is_the_scalar_judge", "is_majority", "is_first")
ABOUT_ASKING = ("asks_who_can_matter", "who_is_not_asked_cannot_matter", "who_is_asked_can_matter")


def breaks_the_tables(module: ModuleType) -> bool:
    """Whether a module fails on the patterns; a rule that raises fails too."""
    try:
        Checked(module).all()
    except (AssertionError, KeyError):
        return True
    return False


@cache
def rules_of(plant: Plant) -> Rules:
    return Rules(planted(plant))


def refuted(plant: Plant, law: str) -> str | None:
    """The first counter-model of what is claimed by the name `law`, None where it is proved."""
    return next(filter(None, map(refute, rules_of(plant).claims(law))), None)


def refuted_of_the_rule(plant: Plant, law: str) -> str | None:
    """The same of the rule alone, which is claimed first."""
    return refute(next(rules_of(plant).claims(law)))


def named(plants: Sequence[Plant]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("plant", plants, ids=lambda plant: plant.name.replace(" ", "_"))


@named([*SHIPPING, *ASKING])
def test_the_tables_see_a_planted_change(plant: Plant) -> None:
    assert breaks_the_tables(planted(plant))


@named([*SHIPPING, *ASKING, *UNSEEN_BY_THE_TABLES])
def test_the_proof_of_a_law_fails_for_a_planted_change(plant: Plant) -> None:
    assert refuted(plant, plant.breaks)


@named(ASKING)
def test_who_asks_too_many_ships_the_same(plant: Plant) -> None:
    """So that only what is claimed of asking, and the tables' column of who is asked, can see it."""
    assert not [law for law in ABOUT_SHIPPING if refuted_of_the_rule(plant, law)]


@named(UNSEEN_BY_THE_TABLES)
def test_the_tables_cannot_see_a_rule_that_looks_into_replies(plant: Plant) -> None:
    assert not breaks_the_tables(planted(plant))


@named(EQUIVALENT)
def test_what_changes_nothing_is_proved_to_change_nothing(plant: Plant) -> None:
    assert not breaks_the_tables(planted(plant))
    assert not [law for law in (*ABOUT_SHIPPING, *ABOUT_ASKING) if refuted_of_the_rule(plant, law)]


def test_a_failed_proof_shows_the_case_in_words() -> None:
    """Here: what each role says and which certificate it has, what shipped, and what Eq. 3 demands."""
    message = refuted(SHIPPING[0], "certified_preference_outranks_repair") or ""
    letter = r"answer [A-D]"
    assert re.fullmatch(
        "\n".join(
            [
                r"eldgr breaks certified_preference_outranks_repair\. Where consensus is uncertified .*",
                r"  task: retrieval",
                rf"  consensus: {letter}, uncertified, a candidate's",
                rf"  preference: {letter}, certified, of another class, a candidate's",
                rf"  repair: {letter}, certified, of another class(, a candidate's)?",
                r"  shipped by repair: (answer [A-D]); asked: repairer",
                r"  Eq\. 3 demands judge: (answer [A-D])",
            ]
        ),
        message,
    ), message


def test_a_rule_that_raises_is_told_from_one_that_decides() -> None:
    message = refuted(UNSEEN_BY_THE_TABLES[0], "is_eq3") or ""
    assert message == "eldgr breaks is_eq3: it raises TypeError: the rule looks into the judge's reply"
