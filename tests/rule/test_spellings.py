"""A quantity is found in the evidence in another spelling, and never as another quantity."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.spellings import other_spelling

ALIKE = [
    ("12%", "12 percent"), ("12%", "twelve per cent"), ("12 %", "12%"), ("10 pm", "22:00"), ("10:30 a.m.", "10:30"),
    ("12 am", "0:00"), ("12 pm", "12:00"), ("$5 million", "$5,000,000"), ("$5 million", "5 million dollars"),
    ("2 hours", "two hours"), ("Twenty-four hours", "24 hours"), ("two hundred and five days", "205 days"),
    ("one mile", "1 mile"), ("€3", "three euros"),
]  # fmt: skip
APART = [
    ("2", "two hours"), ("two", "2 hours"), ("2 hours", "two days"), ("2 hours", "12 hours"), ("10", "10 pm"),
    ("10 am", "22:00"), ("$5", "$5 million"), ("$5", "$5 trillion"), ("$5", "€5"), ("5%", "0.5%"), ("5%", "-5%"),
    ("5%", "$5"), ("one of", "1 of"), ("two", "2"), ("Paris", "Paris"), ("$5", "$5.50"), ("3 hours", "1.3 hours"),
    ("5 lakh", "₹ 5 lakh"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), [*ALIKE, *((other, one) for one, other in ALIKE)])
def test_a_quantity_is_found_in_another_spelling(one: str, other: str) -> None:
    assert other_spelling(one, [Passage("", f"It took {other}, he said.")]) is not None
    assert other_spelling(f"**{one}**", [Passage(other, "")]) is not None


@pytest.mark.parametrize(("one", "other"), APART)
def test_another_quantity_or_a_bare_number_is_not_found(one: str, other: str) -> None:
    assert other_spelling(one, [Passage("", f"It took {other}, he said.")]) is None


@given(st.text(), st.text())
def test_any_answer_may_be_looked_for_in_any_text(answer: str, text: str) -> None:
    found = other_spelling(answer, [Passage("", text)])
    assert found is None or any(map(str.isalnum, found))
