"""Questions counted by their values: copies are a unit, against a plain list, whatever the order."""

from collections import Counter, defaultdict

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.figures.distinct import Column, text_key

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
