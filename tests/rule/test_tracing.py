"""Which numbers a question supplies."""

from fractions import Fraction

import pytest

from eldgr_dspy.derivation.arithmetic import Exact, Operand, parse
from eldgr_dspy.derivation.tracing import TABLE, folded, question_numbers, traceable, traces
from tests.rule.keys import cases

STATED = cases("stated by a question")
LICENSED = cases("licensed by a question")
ABSENT = [*cases("absent from a question"), ("9" * 41, "9" * 41)]


@pytest.mark.parametrize(("question", "numbers"), STATED + LICENSED)
def test_a_question_supplies_its_numbers_and_what_its_words_mean(question: str, numbers: str) -> None:
    assert {Fraction(number) for number in numbers.split()} <= traceable(question)


@pytest.mark.parametrize(("question", "numbers"), ABSENT)
def test_a_question_supplies_nothing_else(question: str, numbers: str) -> None:
    assert not {Fraction(number) for number in numbers.split()} & traceable(question)


@pytest.mark.parametrize(("question", "numbers"), STATED)
def test_a_question_states_its_numerals_and_number_words(question: str, numbers: str) -> None:
    assert {Fraction(number) for number in numbers.split()} <= question_numbers(question)


@pytest.mark.parametrize(("question", "numbers"), LICENSED)
def test_a_question_does_not_state_what_its_words_license(question: str, numbers: str) -> None:
    assert not {Fraction(number) for number in numbers.split()} & question_numbers(question)


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
    cases("folded fractions"),
)
def test_a_division_that_writes_a_known_fraction_folds_into_one_number(expression: str, numbers: str) -> None:
    read = parse(expression)
    one = folded(read, {Fraction(10, 3), 9})
    assert [abs(Fraction(operand.value)) for operand in one.operands] == [Fraction(n) for n in numbers.split()]
    if "0" not in numbers.split():
        assert one.value() == read.value()
