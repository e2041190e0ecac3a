"""When an equation checks an answer, and when it only looks as if it did."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eldgr_dspy.derivation.arithmetic import parse_sides
from eldgr_dspy.derivation.independence import fault_of_check
from eldgr_dspy.rule.consultations import Derivation, Step
from eldgr_dspy.rule.derivations import check_derivation
from tests.naive.naive_derivations import levels

DUCKS = ("16 - 3 - 4", "9 * 2")  # 18 dollars, from 16 eggs, of which 3 and 4 are used, at 2 dollars
KNOWN = (16, 3, 4, 2, 1, 0, 20)

GOOD = [
    "18/2 = 9", "9 = 18 / 2", "18/2 + 3 + 4 = 16", "18 / 9 = 2", "$18 / $2 = 9", "9 + 9 = 18", "20 - 18 = 2",
]  # fmt: skip
SUSPECT = {
    "would hold for 187 as well as for the answer": (
        "18 = 18", "18 * 1 = 18", "18 - 18 = 0", "18 / 18 = 1", "18 * 0 = 0", "18 + 3 - 3 = 18",
        "4 - 18 = -18 + 4", "16 // 18 = 0",
    ),
    "would hold for 19 as well as for the answer": ("18 // 16 = 1",),
    "takes % of the answer, which is the same for many answers": ("18 % 16 = 2",),
    "restates the steps; it must work back from the answer, or reach it by another operator": (
        "9 * 2 = 18", "18 = 2 * 9", "9 * 2 * 1 = 18 + 0", "(16 - 3 - 4) * 2 = 18", "9 * 2 - 18 = 0",
        "18 + 3 = 9 * 2 + 3", "9 * 2 + 3 - 3 = 18",
    ),
    "does not contain the answer 18": ("16 + 2 = 20 - 2",),
    "uses 36, which neither the question nor a step apart from the answer supplies": ("18 * 2 = 36",),
    "is false: its sides are 9 and 8": ("18 / 2 = 8",),
    "is not one equation of two sides": ("18 / 2 = 9 = 9", "18 / 2",),
}  # fmt: skip
RESTATED = [  # of 18 + 6 = 24
    "24 = 6 + 18", "18 - (-6) = 24", "-24 = -18 - 6", "24 + 2 = 18 + 2 + 6", "24 + 2 = 18 + 6 + 2",
    "24 * 2 = 18*2 + 6*2", "(18*2 + 6*2)/2 = 24", "24 + 18 = 6 + 18*2", "24 / 2 = (18 + 6)/2", "24 / 6 = 18/6 + 1",
    "24 + 24 = 24 + 18 + 6", "18*2 + 6*2 - 24*2 = 0",
]  # fmt: skip


def fault(check: str, steps: tuple[str, ...] = DUCKS, answer: int = 18, known: tuple[int, ...] = KNOWN) -> str | None:
    return fault_of_check(check, [parse_sides(step) for step in steps], known, Fraction(answer))


@pytest.mark.parametrize("check", GOOD)
def test_a_check_works_back_or_uses_another_operator(check: str) -> None:
    assert fault(check) is None


@pytest.mark.parametrize(("check", "what"), [(one, what) for what, several in SUSPECT.items() for one in several])
def test_an_equation_that_checks_nothing_is_named(check: str, what: str) -> None:
    assert fault(check) == f"The check {check!r} {what}."


@pytest.mark.parametrize("check", RESTATED)
def test_what_draws_on_all_the_numbers_of_the_steps_restates_them(check: str) -> None:
    assert "restates the steps" in str(fault(check, ("18 + 6",), 24, (18, 6, 2, 1, 0)))


@pytest.mark.parametrize("check", ["24 - 6 = 18", "6 = 24 - 18", "24/2 - 6/2 = 18/2"])
def test_what_works_back_from_the_answer_does_not_restate_the_steps(check: str) -> None:
    assert fault(check, ("18 + 6",), 24, (18, 6, 2, 1, 0)) is None


LED_BACK = [  # from an answer that is a number of the steps with its sign changed
    ("6 - 12", "-6 + 12 = 6"), ("6 - 12", "12 + (-6) = 6"), ("6 - 12", "6 = -6 + 12"),
    ("6 - 12", "-6*2 + 12*2 = 6*2"), ("6 - 12", "6 - -6 = 12"), ("6 - 12 = -6", "-6 + 12 = 6"),
    ("6 - 20 + 8", "-6 + 20 - 8 = 6"), ("6 - 20; -14 + 8", "-6 + 20 - 8 = 6"), ("6 * 2; 12 - 18", "(-6 + 18)/2 = 6"),
    ("6/2 - 9", "(-6 + 9)*2 = 6"),
]  # fmt: skip
NOT_LED_BACK = [
    ("6 - 12", "12 - 6 = 6"), ("6 - 12", "6 = 12 - 6"), ("6 - 12", "-6 = 6 - 12"), ("6 - 12", "-(12 - 6) = -6"),
    ("6 - 12", "-6 + 2 = 6 - 12 + 2"), ("6 - 12", "-6 + 6 = 0"), ("6 - 12", "-6 + 6 = 6 + 6 - 12"),
    ("6 - 12", "12 - 6 = -6 + 12"),
    ("6/2 - 9", "-6/2 + 9 = 6"),  # the steps with all signs changed, and no way back
    ("6/2; 3 - 9", "-6/2 + 9 = 6"), ("6*2; 12 - 18", "-6*2 + 18 = 6"),
]  # fmt: skip
OF_SIX = (6, 12, 20, 8, 9, 18, 2, 0)


@pytest.mark.parametrize(("steps", "check"), LED_BACK)
def test_a_check_that_leads_back_to_a_number_which_is_the_answer_with_its_sign_changed_is_one(
    steps: str, check: str
) -> None:
    assert fault(check, tuple(steps.split("; ")), -6, OF_SIX) is None


@pytest.mark.parametrize(("steps", "check"), NOT_LED_BACK)
def test_no_restatement_or_identity_passes_by_a_number_which_is_the_answer_with_its_sign_changed(
    steps: str, check: str
) -> None:
    assert fault(check, tuple(steps.split("; ")), -6, OF_SIX) is not None


def test_an_answer_that_is_a_negative_number_of_the_question_with_its_sign_changed_has_a_check_too() -> None:
    assert fault("6 - 12 = -6", ("-6 + 12",), 6, (-6, 12)) is None
    assert fault("-12 + 6 = -6", ("-6 + 12",), 6, (-6, 12)) is None
    assert "restates" in str(fault("12 - 6 = 6", ("-6 + 12",), 6, (-6, 12)))


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


def test_a_repeated_sum_checks_a_product_but_not_one_that_it_restates() -> None:
    assert fault("6 + 6 + 6 + 6 = 24", ("4 * 6",), 24, (4, 6)) is None
    assert fault("4 * 6 = 24", ("6 + 6 + 6 + 6",), 24, (4, 6)) is None
    assert fault("5*(3 + 4) = 35", ("5 * 3", "5 * 4", "15 + 20"), 35, (5, 3, 4)) is None
    assert fault("5*3 + 5*4 = 35", ("5*(3 + 4)",), 35, (5, 3, 4)) is not None
    assert fault("2 + 2 = 4", ("2 * 2",), 4, (2,)) is not None  # refused although it is one; the module says so


def test_a_step_that_an_earlier_one_feeds_is_restated_with_its_numbers_written_out() -> None:
    assert "restates" in str(fault("(16 - 3)*2 - 4*2 = 18"))
    assert "restates" in str(fault("18*4 = (16 - 3 - 4)*2*4"))
    assert "restates" in str(fault("20/100*50 + 2 = 10 + 2", ("20% * 50",), 10, (20, 100, 50, 2)))


def test_a_number_of_the_question_that_equals_the_answer_stays_known() -> None:
    assert fault("5 + 2 = 7", ("12 - 5", "7 - 2"), 5, (12, 5, 2)) is None
    assert fault("90 * 3 = 270", ("80 + 90 + 100", "270 / 3"), 90, (80, 90, 100, 3)) is None
    assert "restates" in str(fault("(80 + 90 + 100)/3 = 90", ("80 + 90 + 100", "270 / 3"), 90, (80, 90, 100, 3)))
    assert "restates" in str(fault("5 + 1 = 12 - 5 - 2 + 1", ("12 - 5", "7 - 2"), 5, (12, 5, 2, 1)))


@pytest.mark.parametrize("check", ["eighteen / 2 = 9", "18 / 0 = 9", "= 18", "18 / 2 == 9", "1" * 10_000])
def test_a_check_that_does_not_execute_says_so(check: str) -> None:
    reason = fault(check)
    assert reason is not None
    assert reason.startswith("The check does not execute: the expression ")


def test_a_number_that_the_answer_led_to_cannot_check_it() -> None:
    padded = (*DUCKS, "18 + 20", "38 - 20")
    assert fault("38 - 18 = 20", padded) == (
        "The check '38 - 18 = 20' uses 38, which neither the question nor a step apart from the answer supplies."
    )


def test_an_operation_that_changes_nothing_is_not_another_operator() -> None:
    assert fault("18 = (20 - 1 - 1) % 20", ("20 - 2",)) == fault("18 = (20 - 1 - 1) % 20", ("20 - 1 - 1",))
    assert "restates the steps" in str(fault("18 = (20 - 1 - 1) % 20", ("20 - 2",)))


def test_a_check_without_a_value_for_another_answer_fails_for_it() -> None:
    assert fault("1 / (17 - 16) = 1", ("16 + 1",), 17) is None
    never = "1 / ((64 - 647) * (64 - 65) * (64 - 63)) = 1 / 583"
    known = (1, 4, 16, 63, 65, 583, 647)
    assert fault(never, ("16 * 4",), 64, known) == (f"The check '{never}' could not be tested with any other answer.")


def test_a_step_in_the_derivation_is_not_a_check_of_it() -> None:
    assert fault("18 / 2 = 9", (*DUCKS, "18 / 2", "9 * 2")) is not None


@pytest.mark.parametrize(
    ("steps", "answer", "check", "good"),
    [
        (("4 - 4",), 0, "0 + 4 = 4", True),
        (("4 - 4",), 0, "0 + 16 = 16", False),
        (("4 - 4",), 0, "16 * 0 = 0", False),
        (("4 / 4",), 1, "1 * 4 = 4", True),
        (("4 / 4",), 1, "1 * 16 = 16", False),
        (("4 - 3",), 1, "1 + 3 = 4", True),
        (("4 - 3",), 1, "16 ** 1 = 16", False),
        (("4 - 3",), 1, "1 ** 16 = 1", False),
        (("3 - 4",), -1, "-1 + 4 = 3", True),
    ],
)
def test_what_is_true_of_every_number_checks_zero_and_one_only_by_undoing_a_step(
    steps: tuple[str, ...], answer: int, check: str, good: bool
) -> None:
    assert (fault(check, steps, answer) is None) is good


# --- derivations as they are commonly right: a question; its steps; checks of them ------------------------------------

TYPICAL = [
    ("Three friends split $10. How much does each get?", "10/3 := 10/3",
     "10/3*3=10; (10/3)*3=10; 3*10/3=10; 10/(10/3)=3"),
    ("Six friends split $20 and 9 do so.", "20/6 := 10/3; 10/3*9 := 30", "30/9 = 20/6; 30/9*6 = 20"),
    ("Six friends split $20 and 9 do so.", "20/6 := 10/3; 9*10/3 := 30", "30/9*6 = 20"),
    ("Mix 1/4 cup for each of 3 cakes.", "1/4*3 := 3/4", "3/4/3 = 1/4; (3/4)/(1/4) = 3"),
    ("Mix 1/4 cup for each of 3 cakes.", "1/4*3 := 0.75", "3/4/3 = 1/4"),
    ("There are 4 bags of 6", "4*6 := 24", "6+6+6+6=24; 24/4=6"),
    ("Tests of 80, 90 and 100. What is the mean of the three?", "80+90+100 := 270; 270/3 := 90",
     "90*3=270; 90*3=80+90+100"),
    ("12 apples, 5 go bad, 2 are eaten.", "12-5 := 7; 7-2 := 5", "5+2=7; 5+2+5=12"),
    ("A book costs $12. What do 5 cost?", "5*12 := 60", "60/5 = 12; 12+12+12+12+12 = 60"),
    ("Tom has 15 marbles and loses 6.", "15-6 := 9", "9+6 = 15"),
    ("Ann has 8 pens and buys 7 more.", "8+7 := 15", "15-7 = 8"),
    ("48 sweets are shared by 6 children.", "48/6 := 8", "8*6 = 48"),
    ("Ben has 7 cars. Sue has twice as many. How many have they?", "7*2 := 14; 14+7 := 21", "21-7 = 14"),
    ("Eggs come by the dozen. How many are in 3 cartons, if 4 break?", "3*12 := 36; 36-4 := 32", "(32+4)/12 = 3"),
    ("What is 20% of 50?", "20/100*50 := 10", "10/50*100 = 20"),
    ("What is 20% of 50?", "20% * 50 := 10", "10/50 = 20%"),
    ("What is 20% of 50?", "50*0.2 := 10", "10/50*100 = 20; 10/0.2 = 50"),
    ("A coat costs $80 and is 25% off.", "25/100*80 := 20; 80-20 := 60", "60+20 = 80; 80*0.75 = 60"),
    ("A coat costs $80 and is 25% off.", "80*0.75 := 60", "60/0.75 = 80; 80-80*0.25 = 60"),
    ("A coat costs $80 and is 25% off.", "80*(1-0.25) := 60", "60/0.75 = 80"),
    ("A meal is $50 plus a 20% tip.", "50*1.2 := 60", "60/1.2 = 50"),
    ("A meal is $50 plus a 20% tip.", "50*20/100 := 10; 50+10 := 60", "60-10 = 50; 1.2*50 = 60"),
    ("Of 40 pupils, 3/4 walk. How many do not?", "40*1/4 := 10", "10*4 = 40"),
    ("Of 40 pupils, 3/4 walk. How many do not?", "3/4*40 := 30; 40-30 := 10", "10+30 = 40"),
    ("Of 40 pupils, three quarters walk. How many do?", "3/4*40 := 30", "30/40 = 3/4"),
    ("Of 40 pupils, three quarters walk. How many do?", "0.75*40 := 30", "30/0.75 = 40"),
    ("A film runs 2 hours; 45 minutes have passed. How long is left?", "2*60 := 120; 120-45 := 75", "75+45 = 2*60"),
    ("A car goes 180 miles in 3 hours. How far in 5 hours?", "180/3 := 60; 60*5 := 300", "300/5 = 60; 300/5*3 = 180"),
    ("She saves $5 a week. How much in a year?", "5*52 := 260", "260/52 = 5"),
    ("She walks 2 miles a day. How far in 3 weeks?", "3*7 := 21; 21*2 := 42", "42/2 = 21"),
    ("He buys 3 pens at $1.50 and pays with $10.", "3*1.50 := 4.50; 10-4.50 := 5.50",
     "5.50 + 4.50 = 10; (10 - 5.50)/3 = 1.50"),
    ("Five stamps cost 50 cents each. How many dollars?", "5*0.50 := 2.50", "2.50/5 = 0.50"),
    ("Five stamps cost 50 cents each. How many dollars?", "5*50 := 250; 250/100 := 2.5", "2.5*100/5 = 50"),
    ("A rope of 3 feet is cut into 4 pieces. How many inches is one?", "3*12 := 36; 36/4 := 9", "9*4 = 36"),
    ("Tom ate all 4 of his 4 apples.", "4-4 := 0", "0+4 = 4"),
    ("Tom shares 4 apples among 4.", "4/4 := 1", "1*4 = 4"),
    ("Sam is 3 years older than Jo, who is half of 30.", "30/2 := 15; 15+3 := 18", "18-3 = 15; (18-3)*2 = 30"),
    ("Half of 10 cups.", "10/2 := 5", "5+5 = 10"),
    ("Half of 10 cups.", "1/2*10 := 5", "10-5 = 5"),
    ("A duck lays 16 eggs; three are eaten, 4 baked, the rest sold at $2.", "16-3-4 := 9; 9*2 := 18", "18/2+3+4 = 16"),
    ("A duck lays 16 eggs; three are eaten, 4 baked, the rest sold at $2.", "(16-3-4)*2 := 18", "18/2 = 16-3-4"),
    ("5 packs at $3 and 5 at $4.", "5*3 := 15; 5*4 := 20; 15+20 := 35", "35-20 = 15"),
    ("5 packs at $3 and 5 at $4.", "5*3+5*4 := 35", "5*(3+4) = 35; 35-5*4 = 5*3"),
    ("One has 5 more than three times 5.", "3*5+5 := 20", "20-5 = 3*5"),
    ("A square of 6 by 6.", "6*6 := 36", "36/6 = 6"),
    ("Workers: 100 in all, 30 sick, 20 away.", "100-30-20 := 50", "50+30+20 = 100"),
    ("What percentage of 50 is 10?", "10/50*100 := 20", "20/100*50 = 10"),
    ("What percentage of 50 is 10?", "10/50 := 20%", "20%*50 = 10"),
    ("A house of $80,000 takes $50,000 of repairs and gains 150%.",
     "80000+50000 := 130000; 80000*1.5 := 120000; 80000+120000 := 200000; 200000-130000 := 70000",
     "70000+130000 = 200000"),
    ("John spends 3 hours a day for 5 days, then 2.", "3*5 := 15; 15+2 := 17", "(17 - 2)/5 = 3"),
    ("A recipe for 4 takes 2 1/2 cups. How many for 12?", "12/4 := 3; 3*2.5 := 7.5", "7.5/3 = 5/2"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "steps", "checks"), TYPICAL)
def test_a_typical_derivation_passes_with_each_of_its_checks(question: str, steps: str, checks: str) -> None:
    lines = tuple(Step(*step.split(" := ")) for step in steps.split("; "))
    for check in checks.split("; "):
        checked = check_derivation(Derivation(lines, lines[-1].value, check), question)
        assert checked.passed, checked.reason


# --- laws -------------------------------------------------------------------------------------------------------------

numbers = st.integers(2, 50)


@given(numbers, numbers, st.sampled_from("+-*"), st.integers(-10_000, 10_000))
def test_a_check_that_passes_fails_for_every_other_answer(left: int, right: int, sign: str, other: int) -> None:
    step = f"{left} {sign} {right}"
    answer = int(parse_sides(step)[0].value())
    check = f"{answer} {'-' if sign == '+' else '+' if sign == '-' else '/'} {right} = {left}"
    assume(fault_of_check(check, [parse_sides(step)], (left, right), Fraction(answer)) is None)
    assume(other != answer)
    varied = [side.replaced({answer: other}).value() for side in parse_sides(check)]
    assert varied[0] != varied[1]


@given(st.text("0123456789+-*/%^(). =18", max_size=40))
def test_any_text_as_a_check_gets_a_verdict(check: str) -> None:
    reason = fault(check)
    assert reason is None or reason.startswith("The check ")
