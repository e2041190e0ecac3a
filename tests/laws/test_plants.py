"""A changed rule fails: each change of `tests/laws/plants.py` is planted; the tables and the proof see it."""

import re
from collections.abc import Sequence
from functools import cache
from types import ModuleType

import pytest

from tests.laws import plants as all_plants
from tests.laws.patterns import Checked
from tests.laws.plants import ASKING, AUTHORITY, SHIPPING, UNSEEN_BY_THE_TABLES, Plant, planted
from tests.laws.proving import Rules, refute

pytestmark = pytest.mark.slow  # a proof or a table for each planted change

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


@named([*SHIPPING, *ASKING, *AUTHORITY])
def test_the_tables_see_a_planted_change(plant: Plant) -> None:
    assert breaks_the_tables(planted(plant))


@named(all_plants.SEEN_BY_THE_TABLES)
def test_the_table_of_a_near_class_sees_its_reason_and_each_question(plant: Plant) -> None:
    with pytest.raises(AssertionError):
        Checked(planted(plant)).rule("near(1)")


@named([*SHIPPING, *ASKING, *AUTHORITY, *UNSEEN_BY_THE_TABLES])
def test_the_proof_of_a_law_fails_for_a_planted_change(plant: Plant) -> None:
    assert refuted(plant, plant.breaks)


@named(ASKING)
def test_who_asks_too_many_ships_the_same(plant: Plant) -> None:
    """So that only what is claimed of asking, and the tables' column of who is asked, can see it."""
    assert not [law for law in ABOUT_SHIPPING if refuted_of_the_rule(plant, law)]


@named(UNSEEN_BY_THE_TABLES)
def test_the_tables_cannot_see_a_rule_that_looks_into_replies(plant: Plant) -> None:
    assert not breaks_the_tables(planted(plant))


@named(all_plants.EQUIVALENT)
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
