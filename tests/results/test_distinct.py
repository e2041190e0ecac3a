"""Questions counted by their marks: against a plain list, whatever the order, and with memory that hardly grows."""

from collections import Counter, defaultdict

from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.figures.distinct import Distinct, by_question
from eldgr_dspy.figures.record import Questions
from tests.memory import memory_of

asked = st.lists(st.tuples(st.integers(0, 12), st.sampled_from("abc")), max_size=40)


def units_of(questions: list[tuple[int, str]]) -> Counter[tuple[str, ...]]:
    kept = Distinct[str]()
    for text, marks in questions:
        kept.add(f"Question {text}?", marks)
    return kept.units()


@given(asked)
@example([])
@example([(1, "a"), (1, "b"), (2, "b"), (2, "a"), (3, "a")])
@example([(1, "a"), (1, "a"), (1, "b"), (2, "a")])
def test_a_unit_is_the_marks_of_all_copies_of_a_question(questions: list[tuple[int, str]]) -> None:
    copies = defaultdict[int, list[str]](list)
    for text, marks in questions:
        copies[text].append(marks)
    found = units_of(questions)
    assert Counter({tuple(sorted(unit)): n for unit, n in found.items()}) == Counter(
        tuple(sorted(marks)) for marks in copies.values()
    )
    assert len({tuple(sorted(unit)) for unit in found}) == len(found)  # each kind once
    assert by_question(found) == Counter(marks for _, marks in questions)


def test_a_copy_is_a_question_with_the_same_folded_text() -> None:
    kept = Distinct[str]()
    for text in ("Who?", "who?  ", "WHO?", "When?"):
        kept.add(text, "a")
    assert kept.units() == {("a", "a", "a"): 1, ("a",): 1}


def test_copies_are_found_among_many_questions() -> None:
    n = 70_000
    kept = Distinct[bool]()
    for number in range(n):
        kept.add(str(number), number % 2 == 0)
    kept.add("0", False)
    assert kept.units() == {(True,): n // 2 - 1, (False,): n // 2, (True, False): 1}


def count(n: int) -> None:
    kept = Distinct[bool]()
    for number in range(n):
        kept.add(str(number), number % 2 == 0)


def test_a_question_that_is_counted_takes_sixteen_bytes() -> None:
    assert memory_of(count, 20_000).peak / 20_000 < 24


def remember(n: int) -> None:
    seen = Questions()
    for number in range(n):
        seen.add("pool", str(number))
    assert seen.has("pool", "1")


def test_a_question_that_is_remembered_takes_few_bytes() -> None:
    assert memory_of(remember, 20_000).peak / 20_000 < 12


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(0, 9))
def test_a_question_is_remembered_whenever_it_is_looked_for(asked_: list[int], wanted: int) -> None:
    seen = Questions()
    for place, number in enumerate(asked_):
        seen.add("pool", str(number))
        assert seen.has("pool", str(wanted)) is (wanted in asked_[: place + 1])
    assert not seen.has("other", str(wanted))
    assert Questions(["pool"]).has("pool", str(wanted))
