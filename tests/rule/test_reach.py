"""Which numbers a question reaches, and what the level `bounded` lets through."""

from fractions import Fraction
from itertools import islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.forging import forge, ways
from eldgr_dspy.derivation.quantities import conversions_of, quantities_of
from eldgr_dspy.derivation.reach import MOST_QUANTITIES, reach
from eldgr_dspy.rule.consultations import Derivation, Step
from eldgr_dspy.rule.derivations import check_derivation
from tests.naive import naive_reach as naive
from tests.rule.keys import cases

pytestmark = pytest.mark.slow  # a search over all derivations

PENS = "A box holds 5 pens. How many?"

HONEST = cases("honest chains")


def chain(steps: str, check: str) -> Derivation:
    lines = tuple(Step(*(part.strip() for part in line.split("="))) for line in steps.split(";"))
    return Derivation(lines, lines[-1].value, check)


@pytest.mark.parametrize(("question", "steps", "check"), HONEST)
def test_an_honest_chain_passes(question: str, steps: str, check: str) -> None:
    result = check_derivation(chain(steps, check), question)
    assert result.passed, result.reason


def test_from_one_number_an_attacker_certifies_every_wrong_integer_unless_answers_are_bounded() -> None:
    wrong = [answer for answer in range(-50, 1_001) if answer != 5]
    assert sum(forge(PENS, answer, "executed") is not None for answer in wrong) == 1_050
    assert reach(PENS) == {5, 10, 15}
    assert [answer for answer in (-10, -5, -2, 0, 1, 2, 10, 15, 20, 957) if forge(PENS, answer)] == [0, 10, 15]


@pytest.mark.parametrize(("what", "steps", "check"), cases("what a number gives by itself"))
def test_what_a_number_gives_by_itself_is_refused(what: str, steps: str, check: str) -> None:
    derivation = chain(steps, check)
    assert check_derivation(derivation, PENS, "executed").passed, what
    result = check_derivation(derivation, PENS)
    assert not result.passed
    assert "is not within reach" in result.reason


@settings(max_examples=30)
@given(st.sampled_from(HONEST), st.integers(-60, 200))
def test_whatever_passes_is_within_reach_and_passes_the_level_before(honest: tuple[str, str, str], answer: int) -> None:
    question = honest[0]
    for derivation in islice(ways(question, answer), 4):
        passes = check_derivation(derivation, question).passed
        executes = check_derivation(derivation, question, "executed").passed
        assert passes is (executes and (answer == 0 or answer in reach(question)))


amounts = st.one_of(
    st.integers(0, 120).map(str),
    st.sampled_from(
        ("1/2", "3/4", "2.5", "$3", "$20", "50 cents", "20%", "two and a half", "three", "a third of", "twice")
    ),
)
words = st.sampled_from(("pens", "hours", "minutes", "weeks", "a year", "dozen", "each", "and", "percent", "dollars"))
questions = st.lists(st.tuples(amounts, words), max_size=3).map(
    lambda pairs: " ".join(f"{amount} {word}" for amount, word in pairs) + "?"
)


@given(questions)
@example("1 pens 1 pens 1 pens 1 pens 2 pens 2 pens 3 pens 3 pens")
@example("a half, a third of the 5 pens and the third")
def test_the_quantities_of_a_question_are_those_of_the_naive_reading(question: str) -> None:
    assert [(one.readings, one.factor, one.money) for one in quantities_of(question)] == naive.quantities(question)
    assert conversions_of(question) == naive.conversions(question)


@given(questions)
@example("3 weeks and $5")
@example("10 pens and 1/3 of them")
@example("5 pens")
def test_few_quantities_reach_what_they_reach_in_the_naive_search(question: str) -> None:
    if 1 <= len(naive.quantities(question)) <= 3:
        assert reach(question) == naive.within(question, naive.farthest(question))


def test_too_many_quantities_steps_or_characters_are_dropped_or_refused() -> None:
    few = "2 pens, 3 cars, 4 cups, 5 hats, 6 bags and 7 toys"
    assert reach(f"{few}, 1 dog, 7 cats and 1 cow") == reach(few)
    many = " and ".join(str(number) for number in range(2, MOST_QUANTITIES + 3))
    for question in ("How many?", many, " ".join(map(str, range(2, 5_000)))):
        assert reach(question) == frozenset()
    assert "so many that no answer is within reach" in check_derivation(chain("2+3 = 5", "5-3 = 2"), many).reason
    question = " and ".join(f"{number} pens" for number in (17, 23, 31, 47, 59, 61, 73, 89))
    assert reach(question, 0)
    assert reach(question, 0) == reach(question, 5)
    assert reach("17 pens and 23", 0, few=0) < reach("17 pens and 23", 3)
    steps = tuple(Step("not read", "at all") for _ in range(10_000))
    assert check_derivation(Derivation(steps, "5", "5 = 5"), PENS, "chained").reason == (
        "The derivation has 10,000 steps, and at most 32 are checked."
    )
    long = Derivation((Step("(" * 60_000, "5"),), "5", "5 = 5")
    assert check_derivation(long, PENS, "chained").reason == (
        "The derivation has 60,007 characters, and at most 1,000 are checked."
    )
    assert Fraction(5, 2) in reach("5 pens for 2 boys")
