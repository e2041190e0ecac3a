"""Claims by rule are slices of a step in its order; what is asked, planned or computed is not a claim."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.channels.claims import MOST, claims_of, rule_claims
from eldgr_dspy.channels.overlap import units
from eldgr_dspy.channels.steps import StepInContext
from tests.channels.hard_texts import PIECES

CLAUSES = (
    "Paris is old. ", "Is it? ", "; ", ", and she has 3 ", ", but it is ", " while he was ", "Let's see. ", "so ",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES + CLAUSES) | st.text(max_size=5), max_size=20).map("".join)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("The capital of Qatar is Dubai.", ["The capital of Qatar is Dubai."]),
        ("Qatar hosted it. Dubai is its capital!", ["Qatar hosted it.", "Dubai is its capital!"]),
        ("It is old, and it has 3.5 million people.", ["It is old", "it has 3.5 million people."]),
        ("It is old; the other one is new.", ["It is old", "the other one is new."]),
        ("Muse was founded in 1994, while Blur was older.", ["Muse was founded in 1994", "Blur was older."]),
        ("She eats 7 eggs, so she has 9 left.", ["She eats 7 eggs", "she has 9 left."]),
        ("He bought apples, pears, and oranges.", ["He bought apples, pears, and oranges."]),
        ("He bought apples, and oranges were sold.", ["He bought apples, and oranges were sold."]),
        ("So we have 12 eggs.", ["So we have 12 eggs."]),
        ("多哈是首都。迪拜不是。", ["多哈是首都。", "迪拜不是。"]),
        ("We compute:\n```\nx = 1\n```\nThe rest is ours.", ["We compute:", "The rest is ours."]),
    ],
)
def test_a_step_claims_its_sentences_and_clauses(step: str, expected: list[str]) -> None:
    assert claims_of(step) == tuple(expected)


@pytest.mark.parametrize(
    "step",
    ["", "Dubai.", "Who wrote it?", "Let's think step by step.", "First, I need to find the capital.", "18",
     "```\nx is 1\n```", "\\[ x \\text{ is one} \\]", "Action 1: Search[Qatar]", "We will solve this.", " \u200b "],
)  # fmt: skip
def test_what_is_asked_planned_or_computed_is_not_a_claim(step: str) -> None:
    assert claims_of(step) == ()


@given(texts)
@example("0:0\x0c; ")
def test_claims_are_slices_in_order_of_two_words_or_more(step: str) -> None:
    at = 0
    for claim in claims_of(step):
        result = step.find(claim, at)
        assert result >= 0 and claim == claim.strip() and len(units(claim)) > 1
        at = result + len(claim)


def test_no_step_claims_more_than_is_scored() -> None:
    assert len(claims_of("It is so. " * 100)) == MOST


def test_the_rule_finds_the_claims_of_each_step() -> None:
    assert rule_claims([StepInContext("It is so."), StepInContext("Dubai")]) == [("It is so.",), ()]
