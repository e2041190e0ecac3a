"""Mathematics: what votes together, what is right, and what is not compared because it could take long."""

from collections.abc import Sequence
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.answers import score
from eldgr_dspy.answer_types.comparing import Compared, Comparisons, compare
from eldgr_dspy.answer_types.extraction import Extraction, extract_answer
from eldgr_dspy.answer_types.math import DISTINCT, LENGTH, Math
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Derivation, Step
from eldgr_dspy.rule.questions import Question, Settings
from tests.rule.keys import cases

pytest.importorskip("math_verify", reason="math_verify is not installed; the extra `test` has it")

MATH = Math()

ALIKE = cases("equal mathematics")
APART = cases("other mathematics")


def parts(answers: Sequence[str | None]) -> set[frozenset[str]]:
    """Return the classes of a pool as sets of its answers."""
    together: dict[str, set[str]] = {}
    for answer, class_ in zip(answers, MATH.grouping(answers).classes, strict=True):
        if class_ is not None and answer is not None:
            together.setdefault(class_.key, set()).add(answer)
    return {frozenset(members) for members in together.values()}


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_equal_expressions_vote_together_and_each_is_right_by_the_other(one: str, other: str) -> None:
    assert parts([one, other]) == {frozenset({one, other})}
    assert MATH.is_right(one, [other]) and MATH.is_right(other, ["17", one])


@pytest.mark.parametrize(("one", "other"), APART)
def test_other_answers_vote_apart(one: str, other: str) -> None:
    assert len(parts([one, other])) == 2
    assert not MATH.alike(one, other) and not MATH.alike(other, one)


def test_verify_is_not_symmetric_and_a_class_takes_both_ways() -> None:
    chain, interval = "1<x<2", "(1,2)"
    assert compare(chain, interval, both=False).equal is True
    assert compare(interval, chain, both=False).equal is False
    assert not MATH.alike(chain, interval) and not MATH.alike(interval, chain)
    assert MATH.is_right(interval, [chain]) and not MATH.is_right(chain, [interval])


@pytest.mark.parametrize("bridge", [("50%", "0.5", "50"), ("1,2", "(1,2)", "(2,1)")])
def test_answers_that_differ_do_not_meet_in_one_that_could_be_either(bridge: tuple[str, str, str]) -> None:
    assert all(compare(bridge[0], other, both=False).equal for other in bridge[1:2])
    assert parts(bridge) == {frozenset({answer}) for answer in bridge}


POOL = [*dict.fromkeys(answer for pair in (*ALIKE[:8], *APART[:6]) for answer in pair), "9^{9^9}", "no idea", ""]


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_the_pool_changes_no_class(random: Random) -> None:
    shuffled = random.sample(POOL, len(POOL))
    assert parts(shuffled) == parts(POOL)


def test_classes_are_a_partition() -> None:
    result = parts(POOL)
    assert sorted(answer for part in result for answer in part) == sorted(filter(None, POOL))
    assert all(one.isdisjoint(other) for one, other in combinations(result, 2))


def test_of_many_different_answers_only_some_are_compared() -> None:
    longer = [f"{n}/{n + 1} + {n}" for n in range(1_000, 2_000)]
    pool = [*longer, "0.5", "1/2"]
    assert len(parts(pool)) == len(pool) - 1  # the shortest are compared, and there are more than DISTINCT
    assert len(pool) > DISTINCT


def test_a_class_has_the_key_of_its_earliest_answer_and_a_derived_number_joins_it() -> None:
    grouping = MATH.grouping([r"\frac{1}{2}", "x", "0.5", None])
    assert [class_ and class_.key for class_ in grouping.classes] == [r"\frac{1}{2}", "x", r"\frac{1}{2}", None]
    assert grouping.class_of("2/4") == grouping.classes[0]
    assert (grouping.class_of("3"), grouping.class_of(None)) == (MATH.class_of("3"), None)


def test_a_derivation_certifies_the_class_of_its_number() -> None:
    question = "A cake is cut in 8 pieces and Jo eats 4 of them. Which part of the cake is that?"
    case = Case(Question(question, "math", (r"$\frac{1}{2}$", "2", "0.5")), Settings(derivation="chained"))
    derived = case.derived(Derivation((Step("4 / 8", "1/2"),), "1/2", "1/2 * 8 = 4"))
    assert (case.task, case.roles(), derived) == ("arithmetic", ("deriver",), "1/2")
    assert case.same(derived, case.consensus) and not case.same(derived, "2")
    assert case.certified(r"$\frac{1}{2}$") is False  # by itself, without a derivation


@pytest.mark.parametrize("text", [r"\{1, 2\}", "(1, 2)", "[0, 1]", "x + 1", r"\sqrt{2}"])
def test_no_derivation_certifies_what_is_not_a_number(text: str) -> None:
    case = Case(Question("What are 1 and 2?", "math", (text, "3")), Settings(derivation="stated"))
    assert case.derived(Derivation((Step("1 + 1", "2"),), text, "2 - 1 = 1")) is None


def test_the_score_is_that_of_math_verify_with_the_gold_answer_first() -> None:
    assert score(r"\boxed{50\%}", ["1/2"], "math").em and score("5 cm", ["5"], "math").em
    assert not score(None, ["1/2"], "math").em and not score("", ["1/2"], "math").em
    with pytest.raises(ArgumentError, match="gold must be a list"):
        score("1", [], "math")


@pytest.mark.parametrize(
    ("text", "answer", "form"),
    [
        (r"So \boxed{\frac{\sqrt{3}}{2}}.", r"\frac{\sqrt{3}}{2}", "boxed"),
        (r"We add. #### $\frac{1}{2}$ pounds", r"\frac{1}{2}", "hashes"),
        (r"Hence the answer is \(x^2 + 1\). Done.", "x^2 + 1", "phrase"),
        ("A: $5 and $6", "$5 and $6", "a_line"),
        ("A: $x=1$ or $x=2$", "$x=1$ or $x=2$", "a_line"),
        ("Final answer: (1, 2)", "(1, 2)", "phrase"),
        (" x^2 + 1 ", "x^2 + 1", "whole"),
        ("First 3.\nThen 4 of them.", "4", "last_number"),
        ("A: " + r"\(" * 200_000, r"\(" * 200_000, "a_line"),
    ],
)
def test_the_final_answer_of_a_text_stays_whole(text: str, answer: str, form: str) -> None:
    reading = extract_answer(text, "math")
    assert (reading and reading.answer, reading and reading.form) == (answer, form)
    assert isinstance(reading, Extraction)


def nested(n: int, outer: str) -> str:
    """Return x within n layers."""
    text = "x"
    for _ in range(n):
        text = outer.replace("X", text)
    return text


BOMBS = {
    "a tower": "9**9**9",
    "a tower in LaTeX": "9^{9^{9}}",
    "a tower without braces": "9^9^9",
    "a tower of e": "e^{e^{e^{e^{e}}}}",
    "a tower of brackets": "9^{(9)^{(9)^{9}}}",
    "a large exponent": "10^{-99999999}",
    "a float": "1e999999999",
    "a factorial": "1000000000!",
    "factorials": "(((9!)!)!)",
    "a binomial": r"\binom{1000000}{500000}",
    "a sum": r"\sum_{i=1}^{n} \frac{1}{i}",
    "an integral": r"\int_0^1 \sin(x^3) dx",
    "a power of a bracket": "(x+1)^{999}",
    "a power of a matrix": r"\begin{pmatrix}1&x\\y&2\end{pmatrix}^{200}",
    "deep brackets": nested(60, "(X)"),
    "deep fractions": nested(30, r"\frac{1}{1+X}"),
    "deep logarithms": nested(20, r"\log_{2}(X)"),
    "bars": "|x|" * 60,
    "unions": "(1,2)" + r"\cup(3,x)" * 20,
    "braces that open": "{" * 400,
    "braces that close": "}" * 400,
    "a missing brace": r"\frac{1}{2",
    "braces the wrong way round": "}2{",
    "deep brackets behind others": ")" * 8 + "(" * 9 + "1",
    "10 MB": r"\frac{1}{2}+" * 900_000,
    "a control character": "5\x00",
    "a surrogate": "5\ud800",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_what_could_take_long_votes_by_its_text(bomb: str) -> None:
    class_ = MATH.class_of(bomb)
    assert class_ is not None and class_.note is not None and class_.note.startswith("not compared as mathematics: ")
    assert parts([bomb, "x", "1", bomb, "1.0"]) == {frozenset({bomb}), frozenset({"x"}), frozenset({"1", "1.0"})}
    assert MATH.is_right(bomb, [bomb]) and not MATH.is_right(bomb, ["x"]) and not MATH.is_right("x", [bomb])


@pytest.mark.parametrize(
    "fine", ["e^{-x^2/2}", "2^{2024}", "(x+1)^{10}", "10^{100}", "n!", r"\binom{10}{3}", "f(f(f(x)))", r"\{1,2"]
)
def test_ordinary_mathematics_is_compared(fine: str) -> None:
    assert (class_ := MATH.class_of(fine)) is not None and class_.note is None


def test_a_long_text_in_words_is_not_a_product_of_letters() -> None:
    assert MATH.class_of("Because 2 of the apples are rotten, 5 remain.") == MATH.class_of(
        "because 2 of the apples are rotten, 5 remain"
    )
    assert MATH.class_of("x" * (LENGTH + 1)) != MATH.class_of("x" * LENGTH)


def test_signs_of_mathematics_are_letters_of_no_word() -> None:
    assert MATH.class_of("πrh") == MATH.class_of(r"\pi rh")
    assert MATH.alike("A∩B", r"A\cap B") and MATH.alike("√π", r"\sqrt{\pi}")


def test_an_invisible_text_of_any_length_is_no_answer() -> None:
    assert MATH.class_of("\u200b" * 10) is MATH.class_of("\u200b" * (20 * LENGTH + 1)) is None  # hazard 35


def test_a_pair_that_no_guard_stops_ends_at_the_deadline_and_the_answers_say_so() -> None:
    # a power of 90 takes over a minute, so that no processor is fast enough to answer in time
    long, other = (f"{s}(x)^{{90}}+{c}(y)^{{90}}\\tan(x+y)" for s, c in ((r"\sin", r"\cos"), (r"\cos", r"\sin")))
    assert compare(long, other, both=True, seconds=0.5) == Compared(None, 0.5)
    classes = MATH.grouping([long, other, "no", "No."]).classes
    assert len({one.key for one in classes if one}) == 3
    assert ["longer than 3 seconds" in (one.note or "") for one in classes if one] == [True, True, False, False]


def test_when_the_time_of_a_question_is_used_up_answers_vote_by_their_text() -> None:
    late = Math(Comparisons(ends=0.0))
    grouping = late.grouping(["1/2", "0.5 + 0/7", "1/2", "no"])
    assert [class_ and class_.key for class_ in grouping.classes] == ["1/2", "0.5 + 0/7", "1/2", "text:no"]
    noted = ["the question longer than" in (class_.note or "") for class_ in grouping.classes if class_]
    assert noted == [True, True, True, False]
    assert grouping.class_of("2/4 + 0/7") == MATH.class_of("2/4 + 0/7")


def test_the_type_has_one_name() -> None:
    assert answer_type("math").name == "math" and not answer_type("math").enumerates_spans
