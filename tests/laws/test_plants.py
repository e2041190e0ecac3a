"""A changed rule fails: each change of `tests/laws/plants.py` is planted; the tables and the proof see it."""

import re
from collections.abc import Sequence
from functools import cache
from types import ModuleType

import pytest

from tests.laws.patterns import Sweep
from tests.laws.plants import Plant, load, plants
from tests.laws.proving import Rules, refute

pytestmark = pytest.mark.slow  # a proof or a table for each planted change

ABOUT_SHIPPING = ("is_eq3", "is_the_scalar_judge", "is_majority", "is_first")
ABOUT_ASKING = ("asks_who_can_matter", "who_is_not_asked_cannot_matter", "who_is_asked_can_matter")


def breaks_the_tables(module: ModuleType) -> bool:
    """Whether a module fails on the patterns; a rule that raises fails too."""
    try:
        Sweep(module).all()
    except (AssertionError, KeyError):
        return True
    return False


@cache
def rules_of(plant: Plant) -> Rules:
    return Rules(load(plant))


def refutation(plant: Plant, law: str) -> str | None:
    return next(filter(None, map(refute, rules_of(plant).claims(law))), None)


def refuted_of_the_rule(plant: Plant, laws: Sequence[str]) -> list[str]:
    """Those of the laws that are refuted of the rule alone, which is claimed first."""
    return [law for law in laws if refute(next(rules_of(plant).claims(law)))]


def each_of(*groups: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("plant", plants(*groups), ids=lambda plant: plant.name.replace(" ", "_"))


@each_of("shipping", "asking", "authority")
def test_the_tables_see_a_planted_change(plant: Plant) -> None:
    assert breaks_the_tables(load(plant))


@each_of("seen_by_the_tables")
def test_the_table_of_a_near_class_sees_its_reason_and_each_question(plant: Plant) -> None:
    with pytest.raises(AssertionError):
        Sweep(load(plant)).rule("near(1)")


@each_of("shipping", "asking", "authority", "unseen_by_the_tables")
def test_the_proof_of_a_law_fails_for_a_planted_change(plant: Plant) -> None:
    assert refutation(plant, plant.breaks)


@each_of("asking")
def test_who_asks_too_many_ships_the_same(plant: Plant) -> None:
    """So that only what is claimed of asking, and the tables' column of who is asked, can see it."""
    assert not refuted_of_the_rule(plant, ABOUT_SHIPPING)


@each_of("equivalent")
def test_what_changes_nothing_is_proved_to_change_nothing(plant: Plant) -> None:
    assert not breaks_the_tables(load(plant))
    assert not refuted_of_the_rule(plant, (*ABOUT_SHIPPING, *ABOUT_ASKING))


def test_a_failed_proof_shows_the_case_in_words() -> None:
    """Here: what each role says and which certificate it has, what shipped, and what Eq. 3 demands."""
    message = refutation(plants("shipping")[0], "certified_preference_outranks_repair") or ""
    lines = [
        r"eldgr breaks certified_preference_outranks_repair\. Where consensus is uncertified .*",
        r"  task: retrieval",
        r"  consensus: answer [A-D], uncertified, a candidate's",
        r"  preference: answer [A-D], certified, of another class, a candidate's",
        r"  repair: answer [A-D], certified, of another class(, a candidate's)?",
        r"  shipped by repair: (answer [A-D]); asked: repairer",
        r"  Eq\. 3 demands judge: (answer [A-D])",
    ]
    assert re.fullmatch("\n".join(lines), message), message


def test_the_tables_cannot_see_a_rule_that_looks_into_replies_and_one_that_raises_is_told() -> None:
    (plant,) = plants("unseen_by_the_tables")
    assert not breaks_the_tables(load(plant))
    message = refutation(plant, "is_eq3") or ""
    assert message == "eldgr breaks is_eq3: it raises TypeError: the rule looks into the judge's reply"
