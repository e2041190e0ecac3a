"""Which numbers a question supplies, what is a derivation at each level, and how many equations of a text are true."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.derivation.arithmetic import Exact, Operand, parse, parse_sides
from eldgr_dspy.derivation.tracing import TABLE, fold, question_numbers, traceable, traces
from eldgr_dspy.rule.consultations import Derivation, Step
from eldgr_dspy.rule.derivations import check_derivation, true_equations
from eldgr_dspy.words import STRICTNESS, Strictness
from tests.case_tables import each_case
from tests.refusing import refusal
from tests.rule.keys import cases

DUCKS = "A duck lays 16 eggs a day. She eats three, bakes with four and sells the rest at $2 each. What does she earn?"
STEPS = (("16 - 3 - 4", "9"), ("9 * 2", "18"))


def derivation(*steps: tuple[str, str], answer: str = "18", check: str = "18 / 2 = 9") -> Derivation:
    return Derivation(tuple(Step(*step) for step in steps), answer, check)


def derivation_of(*, steps: Any = (), others: Any = (), **how: str) -> Derivation:
    return replace(derivation(*map(tuple, steps), **how), others=tuple(others))


def passes(one: Derivation, question: str = DUCKS, level: Strictness = "executed") -> bool:
    return check_derivation(one, question, level).passed


def reason(one: Derivation, question: str = DUCKS, level: Strictness = "executed") -> str:
    result = check_derivation(one, question, level)
    assert not result.passed
    return result.reason


@each_case("rule", "the ladder of levels", derivation=derivation_of)
def test_levels_are_cumulative(derived: Derivation, highest: Strictness | None) -> None:
    count = STRICTNESS.index(highest) + 1 if highest else 0
    assert [level for level in STRICTNESS if passes(derived, level=level)] == [*STRICTNESS[:count]]


def test_a_checked_derivation_says_what_holds_and_gives_its_answer() -> None:
    result = check_derivation(derivation(("1/0", "7"), answer="$18", check="trust me"), "", "stated")
    assert result.reason == "The answer 18 is a number and a consistency check is given; nothing was executed."
    result = check_derivation(derivation(*STEPS), DUCKS)
    assert (result.passed, result.level, result.answer) == (True, "bounded", Fraction(18))
    assert result.reason == (
        "Every step executes, every number traces, the last step gives the answer 18, "
        "and the check '18 / 2 = 9' holds and would fail for another."
    )
    assert check_derivation(derivation(answer="20%"), "", "stated").answer == Fraction(1, 5)
    assert check_derivation(derivation(answer="a fifth"), "", "stated").answer is None
    alien: Any = "strict"
    assert refusal(lambda: check_derivation(derivation(), "", alien)) == (
        "level must be one of stated, chained, traced, executed, bounded, agreed; got 'strict'."
    )


@each_case("rule", "faults of derivations", derivation=derivation_of)
def test_a_fault_is_one_sentence_that_names_the_step_and_what_failed(derived: Derivation, sentence: str) -> None:
    assert reason(derived) == sentence


def test_a_step_is_exact_with_numbers_of_the_question_and_its_fault_is_told_shortly() -> None:
    assert reason(derivation(answer="x" * 100_000)) == f"The answer '{'x' * 57}...' is not a number."
    assert "at most 256 are read" in reason(derivation(("(" * 300 + "18" + ")" * 300, "18")))  # hazard 48
    big = derivation(("10000000000000000 + 1 - 10000000000000000", "1"), ("0.1 + 0.2", "0.3"), answer="0.3")
    assert passes(big, level="chained")  # hazard 50
    assert not passes(derivation(("0.1 + 0.2", "0.30000000000000004"), answer="0.3"), level="chained")
    once = derivation(("6 * 7", "42"), ("42 / 2", "21"), ("21 * 2", "42"), answer="42", check="42 / 7 = 6")
    assert passes(once, "There are 6 rows of 7, not 42, in 2 halls.")
    other = derivation(*STEPS, answer="19", check="19 - 3 = 16")
    assert reason(other) == "Step 2, the last, gives 18, but the stated answer is 19."  # hazard 56
    for expression in ["18/0", "18 % 0", "18//(3 - 3)", "0**0", "0**-1"]:
        assert "has no value" in reason(derivation((expression, "18")))  # hazard 49
    question = "Six friends split $20, and 9 do so."
    steps = [("20/6", "10/3"), ("10/3 * 9", "30")]
    assert passes(derivation(*steps, answer="30", check="30/9*6 = 20"), question)
    assert passes(derivation(steps[0], ("9 * 10/3", "30"), answer="30", check="30/9 = 20/6"), question)
    assert reason(derivation(("10/3 * 9", "30"), answer="30"), question) == (
        "Step 1 uses 10, which neither the question nor an earlier step supplies."
    )
    invention = derivation(("6 * 7", "42"), answer="42", check="42 / 7 = 6")
    assert reason(invention, "How many apples are there?") == (
        "Step 1 uses 6, which neither the question nor an earlier step supplies."  # hazard 51
    )
    assert passes(derivation(("16-3-4 = 9", "9"), ("9*2 = 36/2 = 18", "18")), f"{DUCKS} Not 36.")
    slip = derivation(("16 - 3 = 12 - 4 = 8", "8"), ("8 * 2", "16"), answer="16", check="16 / 2 = 8")
    assert reason(slip) == "Step 1 is false: '16 - 3' is 13, but '12 - 4' is 8."  # hazard 53
    assert "the expression '' cannot be executed: it is empty" in reason(derivation(("16 - 3 =", "13")))
    question = "What is 20% of 50?"
    assert passes(derivation(("20% * 50", "10"), answer="10", check="10 / 50 = 20%"), question)
    assert passes(derivation(("20 / 100 * 50", "10"), answer="10", check="10 / 50 = 0.2"), question)
    assert passes(derivation(("10 / 50", "20%"), answer="20%", check="20% * 50 = 10"), "What percentage of 50 is 10?")
    assert not passes(derivation(("10 / 50", "20%"), answer="20"), level="chained")  # hazard 54
    eggs = "She buys two dozen eggs and eats three. How many are left?"
    words = derivation(("two dozen - 3", "21"), answer="21", check="21 + 3 = 24")
    # hazard 55
    assert reason(words, eggs).startswith("Step 1 does not execute: the expression 'two dozen - 3' cannot be ")
    assert passes(derivation(("2 * 12", "24"), ("24 - 3", "21"), answer="21", check="21 + 3 = 24"), eggs)


@pytest.mark.parametrize(
    "expression",
    [
        *('__import__("os")', "(1).__class__", "lambda: 1", "answer", "max(1, 2)"),  # hazard 46
        *("9**9**9", "10**10**8", "factorial(10000000)", "(9**9999)**9999"),  # hazard 47
    ],
)
def test_what_is_not_an_expression_or_too_big_to_compute_is_not_a_step(expression: str) -> None:
    assert reason(derivation((expression, "18"))).startswith("Step 1 does not execute: the expression ")


@pytest.mark.parametrize("expression", cases("numbers carried through"))
def test_a_number_carried_through_is_not_a_derivation(expression: str) -> None:
    question = "What is 42, given 0, 1, 2 and 7?"
    carry = derivation((expression, "42"), answer="42", check="42 - 2 = 40")
    assert reason(carry, question, "chained").startswith("The steps compute nothing: they carry 42 ")  # hazard 51


@pytest.mark.parametrize(("question", "steps", "check"), cases("numbers carried through steps"))
def test_a_number_carried_through_some_steps_is_not_a_derivation(question: str, steps: list[str], check: str) -> None:
    value = steps[-1].split(" = ")[1]
    lines = [(step, str(parse_sides(step)[0].value())) for step in steps]
    carry = derivation(*lines, answer=value, check=check)
    assert reason(carry, question).startswith(f"The steps compute nothing: they carry {value} ")  # hazard 51


@pytest.mark.parametrize(("question", "step", "answer", "check"), cases("answers without a stated number"))
def test_an_answer_needs_a_number_that_the_question_states(question: str, step: str, answer: str, check: str) -> None:
    assert not passes(derivation((step, answer), answer=answer, check=check), question, "traced")  # hazard 51
    assert passes(derivation(("24 * 3", "72"), answer="72", check="72 / 24 = 3"), "It took three days.")


@pytest.mark.parametrize("check", ["18 = 18", "18*1 = 18", "18 - 18 = 0", "x = x", "18 = 9*2", "18 / 18 = 1"])
def test_an_identity_or_a_step_restated_is_not_a_check(check: str) -> None:
    question = f"{DUCKS} Mind 0, 1 and 18."
    assert passes(derivation(*STEPS, check="18 / 2 = 9"), question)
    assert not passes(derivation(*STEPS, check=check), question)  # hazard 52


@pytest.mark.parametrize(("expression", "value"), cases("slips of unit or percent"))
def test_a_slip_of_unit_or_percent_is_false(expression: str, value: str) -> None:
    assert reason(derivation((expression, value), answer=value), "", "chained").startswith("Step 1 ")  # hazard 54


UNDO = {"+": "-", "-": "+", "*": "/"}
links = st.lists(st.tuples(st.sampled_from(sorted(UNDO)), st.integers(2, 60)), min_size=1, max_size=6)


def chain(start: int, steps: list[tuple[str, int]]) -> tuple[str, Derivation]:
    """Return a question that states every number, and a derivation that its last step's inverse checks."""
    value, lines, check = start, [], ""
    for sign, number in steps:
        before, expression = value, f"{value} {sign} {number}"
        value = {"+": value + number, "-": value - number, "*": value * number}[sign]
        lines.append((expression, str(value)))
        check = f"{value} {UNDO[sign]} {number} = {before}"
    return f"{start} and {steps}", derivation(*lines, answer=str(value), check=check)


@given(st.integers(2, 60), links, st.data())
def test_a_derivation_with_a_changed_value_fails(start: int, steps: list[tuple[str, int]], data: st.DataObject) -> None:
    question, result = chain(start, steps)
    place = data.draw(st.integers(0, len(steps) - 1))
    value = int(result.steps[place].value) + data.draw(st.integers(-99, 99).filter(bool))
    lines = [(step.expression, step.value) for step in result.steps]
    lines[place] = (lines[place][0], str(value))
    wrong = derivation(*lines, answer=result.answer, check=result.check)
    assert reason(wrong, question, "chained").startswith(f"Step {place + 1} is false: ")


@given(st.integers(2, 60), links, st.integers(-99, 99).filter(bool))
def test_a_derivation_with_another_answer_fails(start: int, steps: list[tuple[str, int]], off: int) -> None:
    question, first = chain(start, steps)
    other = Derivation(first.steps, str(int(first.answer) + off), first.check)
    assert not any(passes(other, question, level) for level in STRICTNESS[1:])


@pytest.mark.parametrize(("text", "true", "count"), [*cases("equations in free text"), (f"1+1 = {'2' * 5_000}", 0, 0)])
def test_equations_of_free_text_are_counted_and_verified(text: str, true: int, count: int) -> None:
    assert true_equations(text) == (true, count)


@pytest.mark.parametrize(("text", "count"), [("=" * 10**6, 0), ("1+1=2;" * 20000, 20000), ("(1+" * 300_000 + "=1", 0)])
def test_a_very_long_text_is_read_to_its_end(text: str, count: int) -> None:
    assert true_equations(text) == (count, count)


@given(st.one_of(st.text(), st.text("0123456789+-*/=%$., x\n", max_size=200)))
def test_any_text_has_no_more_true_equations_than_equals_signs(text: str) -> None:
    true, count = true_equations(text)
    assert 0 <= true <= count <= text.count("=")


STATEMENTS = cases("stated by a question")
LICENCES = cases("licensed by a question")


@pytest.mark.parametrize(("question", "numbers"), STATEMENTS)
def test_a_question_states_and_supplies_its_numerals_and_number_words(question: str, numbers: str) -> None:
    assert {Fraction(number) for number in numbers.split()} <= question_numbers(question) & traceable(question)


@pytest.mark.parametrize(("question", "numbers"), LICENCES)
def test_a_question_supplies_what_its_words_license_and_does_not_state_it(question: str, numbers: str) -> None:
    assert {Fraction(number) for number in numbers.split()} <= traceable(question) - question_numbers(question)


@pytest.mark.parametrize(("question", "numbers"), [*cases("absent from a question"), ("9" * 41, "9" * 41)])
def test_a_question_supplies_nothing_else(question: str, numbers: str) -> None:
    assert not {Fraction(number) for number in numbers.split()} & traceable(question)


def test_the_table_is_in_lower_case_and_an_operand_traces_under_a_sign_and_as_a_percentage() -> None:
    assert all(word == word.lower() and values for word, values in TABLE.items())
    with pytest.raises(TypeError):
        TABLE["week"] = ()  # type: ignore[index]
    numbers: set[Exact] = {5, Fraction(1, 5)}
    assert traces(Operand(-5), numbers)
    assert traces(Operand(Fraction(5, 100), percent=True), numbers)
    assert traces(Operand(Fraction(1, 5), percent=True), numbers)
    assert not traces(Operand(Fraction(5, 100)), numbers)


@pytest.mark.parametrize(("expression", "numbers"), cases("folded fractions"))
def test_a_division_that_writes_a_known_fraction_folds_into_one_number(expression: str, numbers: str) -> None:
    read = parse(expression)
    one = fold(read, {Fraction(10, 3), 9})
    assert [abs(Fraction(operand.value)) for operand in one.operands] == [Fraction(n) for n in numbers.split()]
    if "0" not in numbers.split():
        assert one.value() == read.value()
