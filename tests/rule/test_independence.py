"""When an equation checks an answer, and when it only looks as if it did."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eldgr_dspy.derivation.arithmetic import parse_sides
from eldgr_dspy.derivation.independence import fault_of_check
from eldgr_dspy.rule.consultations import Derivation, Step
from eldgr_dspy.rule.derivations import check_derivation
from tests.naive.naive_derivations import levels
from tests.rule.keys import cases

DUCKS = ("16 - 3 - 4", "9 * 2")  # 18 dollars, from 16 eggs, of which 3 and 4 are used, at 2 dollars
FACTS = (16, 3, 4, 2, 1, 0, 20)

GOOD = cases("checks that check")
SUSPECT = cases("checks that check nothing")


def fault(check: str, steps: tuple[str, ...] = DUCKS, answer: int = 18, facts: tuple[int, ...] = FACTS) -> str | None:
    return fault_of_check(check, [parse_sides(step) for step in steps], facts, Fraction(answer))


OF_SUM = (("18 + 6",), 24, (18, 6, 2, 1, 0))
OF_SIX = (-6, (6, 12, 20, 8, 9, 18, 2, 0))
WORKS_BACK = ("24 - 6 = 18", "6 = 24 - 18", "24/2 - 6/2 = 18/2")


@pytest.mark.parametrize(
    ("check", "how"),
    [
        *((check, ()) for check in GOOD), *((check, OF_SUM) for check in WORKS_BACK),
        *((check, (tuple(steps.split("; ")), *OF_SIX)) for steps, check in cases("checks that lead back")),
    ],
)  # fmt: skip
def test_a_check_works_back_to_the_answer_or_its_negative_or_uses_another_operator(check: str, how: Any) -> None:
    assert fault(check, *how) is None


@pytest.mark.parametrize(("check", "what"), [(one, what) for what, several in SUSPECT.items() for one in several])
def test_an_equation_that_checks_nothing_is_named(check: str, what: str) -> None:
    assert fault(check) == f"The check {check!r} {what}."


@pytest.mark.parametrize("check", cases("checks that restate the steps"))
def test_what_draws_on_all_the_numbers_of_the_steps_restates_them(check: str) -> None:
    assert "restates the steps" in str(fault(check, *OF_SUM))


@pytest.mark.parametrize(("steps", "check"), cases("checks that do not lead back"))
def test_no_restatement_or_identity_passes_by_the_answer_with_its_sign_changed(steps: str, check: str) -> None:
    assert fault(check, tuple(steps.split("; ")), *OF_SIX) is not None


@pytest.mark.parametrize("answer", ["1/2 - 1 := -1/2 := -1/2 + 1 = 1/2", "6 - 12 := -6 := -6 + 12 = 6"])
def test_a_whole_derivation_passes_with_such_a_check_and_so_it_does_for_the_naive_one(answer: str) -> None:
    expression, value, check = answer.split(" := ")
    derivation = Derivation((Step(expression, value),), value, check)
    question = "It was 6 or 1/2, and fell by 12 or 1."
    assert check_derivation(derivation, question, "executed").passed
    assert "executed" in levels(derivation, question)


@given(st.integers(-30, 30), st.integers(-30, 30), st.sampled_from("+-"))
def test_every_sum_and_difference_has_its_inverse_as_a_check(left: int, right: int, sign: str) -> None:
    assume(0 not in (left, right))
    answer = left + right if sign == "+" else left - right
    assume(answer)
    check = f"{answer} {'-' if sign == '+' else '+'} ({right}) = {left}"
    assert fault(check, (f"({left}) {sign} ({right})",), answer, (left, right)) is None


def test_a_check_executes_works_back_to_the_answer_and_restates_nothing() -> None:
    assert fault("6 + 6 + 6 + 6 = 24", ("4 * 6",), 24, (4, 6)) is None
    assert fault("4 * 6 = 24", ("6 + 6 + 6 + 6",), 24, (4, 6)) is None
    assert fault("5*(3 + 4) = 35", ("5 * 3", "5 * 4", "15 + 20"), 35, (5, 3, 4)) is None
    assert fault("5*3 + 5*4 = 35", ("5*(3 + 4)",), 35, (5, 3, 4)) is not None
    assert fault("2 + 2 = 4", ("2 * 2",), 4, (2,)) is not None  # refused although it is one; the module says so
    assert "restates" in str(fault("(16 - 3)*2 - 4*2 = 18"))
    assert "restates" in str(fault("18*4 = (16 - 3 - 4)*2*4"))
    assert "restates" in str(fault("20/100*50 + 2 = 10 + 2", ("20% * 50",), 10, (20, 100, 50, 2)))
    assert fault("5 + 2 = 7", ("12 - 5", "7 - 2"), 5, (12, 5, 2)) is None
    assert fault("90 * 3 = 270", ("80 + 90 + 100", "270 / 3"), 90, (80, 90, 100, 3)) is None
    assert "restates" in str(fault("(80 + 90 + 100)/3 = 90", ("80 + 90 + 100", "270 / 3"), 90, (80, 90, 100, 3)))
    assert "restates" in str(fault("5 + 1 = 12 - 5 - 2 + 1", ("12 - 5", "7 - 2"), 5, (12, 5, 2, 1)))
    assert fault("6 - 12 = -6", ("-6 + 12",), 6, (-6, 12)) is None
    assert fault("-12 + 6 = -6", ("-6 + 12",), 6, (-6, 12)) is None
    assert "restates" in str(fault("12 - 6 = 6", ("-6 + 12",), 6, (-6, 12)))
    longer = (*DUCKS, "18 + 20", "38 - 20")
    assert fault("38 - 18 = 20", longer) == (
        "The check '38 - 18 = 20' uses 38, which neither the question nor a step apart from the answer supplies."
    )
    assert fault("18 = (20 - 1 - 1) % 20", ("20 - 2",)) == fault("18 = (20 - 1 - 1) % 20", ("20 - 1 - 1",))
    assert "restates the steps" in str(fault("18 = (20 - 1 - 1) % 20", ("20 - 2",)))
    assert fault("1 / (17 - 16) = 1", ("16 + 1",), 17) is None
    never = "1 / ((64 - 647) * (64 - 65) * (64 - 63)) = 1 / 583"
    facts = (1, 4, 16, 63, 65, 583, 647)
    assert fault(never, ("16 * 4",), 64, facts) == (f"The check '{never}' could not be tested with any other answer.")
    assert fault("18 / 2 = 9", (*DUCKS, "18 / 2", "9 * 2")) is not None
    for check in ["eighteen / 2 = 9", "18 / 0 = 9", "= 18", "18 / 2 == 9", "1" * 10_000]:
        reason = fault(check)
        assert reason is not None
        assert reason.startswith("The check does not execute: the expression ")


@pytest.mark.parametrize(("steps", "answer", "check", "good"), cases("checks of zero and one"))
def test_what_is_true_of_every_number_checks_zero_and_one_only_by_undoing_a_step(
    steps: tuple[str, ...], answer: int, check: str, good: bool
) -> None:
    assert (fault(check, steps, answer) is None) is good


TYPICAL = cases("typical derivations")
"""Derivations as they are commonly right: a question; its steps; checks of them."""


@pytest.mark.parametrize(("question", "steps", "checks"), TYPICAL)
def test_a_typical_derivation_passes_with_each_of_its_checks(question: str, steps: str, checks: str) -> None:
    lines = tuple(Step(*step.split(" := ")) for step in steps.split("; "))
    for check in checks.split("; "):
        result = check_derivation(Derivation(lines, lines[-1].value, check), question)
        assert result.passed, result.reason


numbers = st.integers(2, 50)


@given(numbers, numbers, st.sampled_from("+-*"), st.integers(-10_000, 10_000))
def test_a_check_that_passes_fails_for_every_other_answer(left: int, right: int, sign: str, other: int) -> None:
    step = f"{left} {sign} {right}"
    answer = int(parse_sides(step)[0].value())
    check = f"{answer} {'-' if sign == '+' else '+' if sign == '-' else '/'} {right} = {left}"
    assume(fault_of_check(check, [parse_sides(step)], (left, right), Fraction(answer)) is None)
    assume(other != answer)
    values = [side.substitute({answer: other}).value() for side in parse_sides(check)]
    assert values[0] != values[1]
