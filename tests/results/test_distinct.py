"""Questions counted by their values: copies are a unit, against a plain list, whatever the order."""

from collections import Counter, defaultdict

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.figures.distinct import Column, text_key
from eldgr_dspy.figures.record import Questions
from tests.memory import memory_of

asked = st.lists(st.tuples(st.integers(0, 12), st.sampled_from("abc")), max_size=40)


def units_of(questions: list[tuple[int, str]]) -> Counter[tuple[str, ...]]:
    texts = np.array([text_key(f"Question {text}?") for text, _ in questions], np.int64)
    return Column(marks for _, marks in questions).units(texts)


@given(asked)
@example([])
@example([(1, "a"), (1, "b"), (2, "b"), (2, "a"), (3, "a")])
@example([(1, "a"), (1, "a"), (1, "b"), (2, "a")])
def test_a_unit_is_the_values_of_all_copies_of_a_question(questions: list[tuple[int, str]]) -> None:
    copies = defaultdict[int, list[str]](list)
    for text, marks in questions:
        copies[text].append(marks)
    found = units_of(questions)
    assert Counter({tuple(sorted(unit)): n for unit, n in found.items()}) == Counter(
        tuple(sorted(marks)) for marks in copies.values()
    )
    assert len({tuple(sorted(unit)) for unit in found}) == len(found)  # each kind once


def test_a_copy_is_a_question_with_the_same_folded_text() -> None:
    texts = np.array([text_key(text) for text in ("Who?", "who?  ", "WHO?", "When?")])
    assert Column("aaaa").units(texts) == {("a", "a", "a"): 1, ("a",): 1}


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
