"""Mathematics: what votes together, what is right, and what is not compared because it could take long."""

from collections.abc import Sequence
from itertools import combinations
from operator import mul
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.answers import score
from eldgr_dspy.answer_types.comparing import Comparison, Comparisons, compare
from eldgr_dspy.answer_types.extraction import Extraction, extract_answer
from eldgr_dspy.answer_types.math import DISTINCT, Math
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Derivation, Step
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.text.latex import LENGTH
from tests.case_tables import each_case
from tests.refusing import refuses
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


def test_verify_is_not_symmetric_and_the_score_has_the_gold_answer_first() -> None:
    chain, interval = "1<x<2", "(1,2)"
    assert compare(chain, interval, both=False).equal is True
    assert compare(interval, chain, both=False).equal is False
    assert not MATH.alike(chain, interval) and not MATH.alike(interval, chain)
    assert MATH.is_right(interval, [chain]) and not MATH.is_right(chain, [interval])
    assert score(r"\boxed{50\%}", ["1/2"], "math").em and score("5 cm", ["5"], "math").em
    assert not score(None, ["1/2"], "math").em and not score("", ["1/2"], "math").em
    refuses(ArgumentError, "gold must be a list", score, "1", [], "math")


POOL = [*dict.fromkeys(answer for pair in (*ALIKE[:8], *APART[:6]) for answer in pair), "9^{9^9}", "no idea", ""]


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_the_pool_changes_no_class(random: Random) -> None:
    assert parts(random.sample(POOL, len(POOL))) == parts(POOL)


def test_classes_are_a_partition_of_which_the_shortest_answers_are_compared() -> None:
    result = parts(POOL)
    assert sorted(answer for part in result for answer in part) == sorted(filter(None, POOL))
    assert all(one.isdisjoint(other) for one, other in combinations(result, 2))
    longer = [f"{n}/{n + 1} + {n}" for n in range(1_000, 2_000)]
    pool = [*longer, "0.5", "1/2"]
    assert len(parts(pool)) == len(pool) - 1  # the shortest are compared, and there are more than DISTINCT
    assert len(pool) > DISTINCT


def test_a_class_has_the_key_of_its_earliest_answer_and_a_derivation_certifies_numbers_alone() -> None:
    grouping = MATH.grouping([r"\frac{1}{2}", "x", "0.5", None])
    assert [class_ and class_.key for class_ in grouping.classes] == [r"\frac{1}{2}", "x", r"\frac{1}{2}", None]
    assert grouping.class_of("2/4") == grouping.classes[0]
    assert (grouping.class_of("3"), grouping.class_of(None)) == (MATH.class_of("3"), None)
    question = "A cake is cut in 8 pieces and Jo eats 4 of them. Which part of the cake is that?"
    case = Case(Question(question, "math", (r"$\frac{1}{2}$", "2", "0.5")), Settings(derivation="chained"))
    number = case.derived(Derivation((Step("4 / 8", "1/2"),), "1/2", "1/2 * 8 = 4"))
    assert (case.task, case.roles(), number) == ("arithmetic", ("deriver",), "1/2")
    assert case.same(number, case.consensus) and not case.same(number, "2")
    assert case.certified(r"$\frac{1}{2}$") is False  # by itself, without a derivation
    for text in [r"\{1, 2\}", "(1, 2)", "[0, 1]", "x + 1", r"\sqrt{2}"]:
        case = Case(Question("What are 1 and 2?", "math", (text, "3")), Settings(derivation="stated"))
        assert case.derived(Derivation((Step("1 + 1", "2"),), text, "2 - 1 = 1")) is None
    for bridge in [("50%", "0.5", "50"), ("1,2", "(1,2)", "(2,1)")]:
        assert all(compare(bridge[0], other, both=False).equal for other in bridge[1:2])
        assert parts(bridge) == {frozenset({answer}) for answer in bridge}


@pytest.mark.parametrize(
    ("text", "answer", "form"),
    [*cases("final answers in mathematics"), ("A: " + r"\(" * 200_000, r"\(" * 200_000, "a_line")],
)
def test_the_final_answer_of_a_text_stays_whole(text: str, answer: str, form: str) -> None:
    reading = extract_answer(text, "math")
    assert (reading and reading.answer, reading and reading.form) == (answer, form)
    assert isinstance(reading, Extraction)


def nest(n: int, outer: str) -> str:
    """Return x within n layers."""
    text = "x"
    for _ in range(n):
        text = outer.replace("X", text)
    return text


@each_case("rule", "what could take long", times=mul, nested=nest, join=lambda *parts: "".join(parts))
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


def test_words_signs_and_invisible_texts_are_read_as_what_they_are() -> None:
    assert MATH.class_of("Because 2 of the apples are rotten, 5 remain.") == MATH.class_of(
        "because 2 of the apples are rotten, 5 remain"
    )
    assert MATH.class_of("x" * (LENGTH + 1)) != MATH.class_of("x" * LENGTH)
    assert MATH.class_of("πrh") == MATH.class_of(r"\pi rh")
    assert MATH.alike("A∩B", r"A\cap B") and MATH.alike("√π", r"\sqrt{\pi}")
    assert MATH.class_of("\u200b" * 10) is MATH.class_of("\u200b" * (20 * LENGTH + 1)) is None  # hazard 35
    assert answer_type("math").name == "math" and not answer_type("math").enumerates_spans


def test_what_takes_too_long_votes_by_its_text_and_says_so() -> None:
    # a power of 90 takes over a minute, so that no processor is fast enough to answer in time
    long, other = (f"{s}(x)^{{90}}+{c}(y)^{{90}}\\tan(x+y)" for s, c in ((r"\sin", r"\cos"), (r"\cos", r"\sin")))
    assert compare(long, other, both=True, seconds=0.5) == Comparison(None, 0.5)
    classes = MATH.grouping([long, other, "no", "No."]).classes
    assert len({one.key for one in classes if one}) == 3
    assert ["longer than 3 seconds" in (one.note or "") for one in classes if one] == [True, True, False, False]
    late = Math(Comparisons(ends=0.0))
    grouping = late.grouping(["1/2", "0.5 + 0/7", "1/2", "no"])
    assert [class_ and class_.key for class_ in grouping.classes] == ["1/2", "0.5 + 0/7", "1/2", "text:no"]
    notes = ["the question longer than" in (class_.note or "") for class_ in grouping.classes if class_]
    assert notes == [True, True, True, False]
    assert grouping.class_of("2/4 + 0/7") == MATH.class_of("2/4 + 0/7")
