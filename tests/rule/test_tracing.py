"""Which numbers a question supplies."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.derivation.arithmetic import Exact, Operand, parse
from eldgr_dspy.derivation.tracing import TABLE, folded, stated, traceable, traces

STATED = [
    ("She eats three and bakes four", "3 4"), ("1,000 people", "1000"), ("$80,000.50", "80000.5"),
    ("It is .5 now.", "0.5"), ("3.5.", "3.5"), ("3/4 of it", "3 4 3/4 1/4"), ("2 1/2 cups", "5/2"),
    ("2½ cups", "5/2"), ("½", "1/2"), ("a dozen", "12"), ("20% off", "20 1/5 0.8 1.2"), ("plus 150%", "1.5 2.5"),
    ("twelve percent", "12 0.12"), ("50 cents", "50 0.5"), ("75¢", "0.75"), ("twenty-four hours", "24"),
    ("two hundred and five", "205"), ("a hundred", "100"), ("two thousand three hundred", "2300"),
    ("$1.5 million", "1.5 1500000"), ("2 dozen eggs", "2 12 24"), ("two dozen eggs", "2 12 24"),
    ("three quarters", "3/4 1/4"), ("two-thirds", "2/3 1/3"), ("one and a half", "3/2"),
    ("two and three quarters", "11/4"), ("٣ apples", "3"), ("１２ apples", "12"),
]  # fmt: skip
LICENSED = [
    ("How many a week?", "7"), ("Each Day", "24"), ("hours", "60"), ("twice as many", "2"), ("half of them", "1/2 2"),
    ("a third", "1/3 3"), ("What percentage", "100 1"), ("in feet", "12"), ("three inches", "12"),
    ("two centuries", "100"), ("$ 3", "100"), ("doubled", "2"),
]  # fmt: skip
ABSENT = [
    ("no numbers here", "1 2 100"), ("1,000", "1 0"), ("two hundred and five", "2 5 200"), ("twenty-four", "20 4"),
    ("one, two", "3 12"), ("a weekly dose", "24"), ("10² of them", "102"), ("150% of 5/4", "-1/2 1/2 -1/4"),
    ("50 cents", "1.5"), ("9" * 41, "9" * 41), ("Davos has two dates", "24"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "numbers"), STATED + LICENSED)
def test_a_question_supplies_its_numbers_and_what_its_words_mean(question: str, numbers: str) -> None:
    assert {Fraction(number) for number in numbers.split()} <= traceable(question)


@pytest.mark.parametrize(("question", "numbers"), ABSENT)
def test_a_question_supplies_nothing_else(question: str, numbers: str) -> None:
    assert not {Fraction(number) for number in numbers.split()} & traceable(question)


@pytest.mark.parametrize(("question", "numbers"), STATED)
def test_a_question_states_its_numerals_and_number_words(question: str, numbers: str) -> None:
    assert {Fraction(number) for number in numbers.split()} <= stated(question)


@pytest.mark.parametrize(("question", "numbers"), LICENSED)
def test_a_question_does_not_state_what_its_words_license(question: str, numbers: str) -> None:
    assert not {Fraction(number) for number in numbers.split()} & stated(question)


def test_the_table_is_in_lower_case_and_cannot_be_changed() -> None:
    assert all(word == word.lower() and values for word, values in TABLE.items())
    with pytest.raises(TypeError):
        TABLE["week"] = ()  # type: ignore[index]


def test_an_operand_traces_under_a_sign_and_as_a_percentage() -> None:
    known: set[Exact] = {5, Fraction(1, 5)}
    assert traces(Operand(-5), known)
    assert traces(Operand(Fraction(5, 100), percent=True), known)
    assert traces(Operand(Fraction(1, 5), percent=True), known)
    assert not traces(Operand(Fraction(5, 100)), known)


@pytest.mark.parametrize(
    ("expression", "numbers"),
    [
        ("10/3", "10/3"), ("(10/3)*3", "10/3 3"), ("10/3*3", "10/3 3"), ("3*10/3", "3 10/3"),
        ("10/(10/3)", "10 10/3"), ("20/6 + 10/3", "10/3 10/3"), ("-10/3", "10 3"), ("30/3/3", "30 3 3"),
        ("2**10/3", "2 10 3"), ("10%/3", "1/10 3"), ("1.0/0.3", "1 3/10"), ("18/2", "18 2"), ("10/0", "10 0"),
    ],
)  # fmt: skip
def test_a_division_that_writes_a_known_fraction_folds_into_one_number(expression: str, numbers: str) -> None:
    read = parse(expression)
    one = folded(read, {Fraction(10, 3), 9})
    assert [abs(Fraction(operand.value)) for operand in one.operands] == [Fraction(n) for n in numbers.split()]
    if "0" not in numbers.split():
        assert one.value() == read.value()


@given(st.one_of(st.text(), st.text("0123456789,./ %½twohundrefiv", max_size=200)))
def test_any_question_can_be_read(question: str) -> None:
    assert all(isinstance(number, Fraction) for number in traceable(question))


@given(st.lists(st.integers(0, 10**6), max_size=6))
def test_every_numeral_traces_with_and_without_commas(numbers: list[int]) -> None:
    plain, grouped = " then ".join(map(str, numbers)), " then ".join(f"{number:,}" for number in numbers)
    assert set(numbers) <= traceable(plain) == traceable(grouped)
