"""A number, a time or a date is found in the evidence in another spelling, if it is of another class."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.rule.spellings import other_spelling
from tests.rule.keys import cases

ALIKE = cases("other spellings")
APART = cases("no other spellings")
ONE_CLASS = [("12%", "12 percent"), ("10 pm", "22:00"), ("$5 million", "$5,000,000"), ("2 hours", "two hours")]


@pytest.mark.parametrize(("one", "other"), [*ALIKE, *((other, one) for one, other in ALIKE)])
def test_an_answer_is_found_in_another_spelling(one: str, other: str) -> None:
    assert other_spelling(one.removeprefix("a "), [Passage("", f"It took {other}, he said.")]) is not None
    assert other_spelling(f"**{one.removeprefix('a ')}**", [Passage(other, "")]) is not None


@pytest.mark.parametrize(("one", "other"), APART + ONE_CLASS)
def test_another_number_and_another_spelling_of_its_class_are_not_found(one: str, other: str) -> None:
    assert other_spelling(one, [Passage("", f"It took {other}, he said.")]) is None


def test_the_first_spelling_of_another_class_is_shown() -> None:
    passages = [Passage("", "2 hours; a TWO-hour film, the 2-hour film"), Passage("", "2-hours")]
    assert other_spelling("two hours", passages) == "two-hour"


@given(st.text(), st.text())
def test_any_answer_may_be_looked_for_in_any_text(answer: str, text: str) -> None:
    result = other_spelling(answer, [Passage("", text)])
    assert result is None or any(map(str.isalnum, result))
