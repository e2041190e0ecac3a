"""A counterfactual differs from its step in one thing: a number, an entity, a negation or an antonym, in this order."""

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.channels.claims import claims_of
from eldgr_dspy.channels.counterfactuals import Counterfactual, counterfactual, rule_counterfactuals
from eldgr_dspy.channels.steps import StepInContext, split_steps
from eldgr_dspy.text.folding import fold
from tests.channels.hard_texts import PIECES

PASSAGES = ("Doha is the capital of Qatar, said John Lennon of the BBC.",)
WORDS = (
    "Dubai ", "Barack Obama ", "is ", "isn't ", "cannot ", "first ", "born ", "1,000.50 ", "٣ ", "two ", "1st ",
    "NASA ",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES + WORDS) | st.text(max_size=5), max_size=20).map("".join)


@pytest.mark.parametrize(
    ("step", "changed", "kind"),
    [
        ("It was in 1976.", "It was in 1986.", "number"),
        ("It was in 1996.", "It was in 1986.", "number"),
        ("It costs $1,000.50 there.", "It costs $2,000.50 there.", "number"),
        ("It is 0.05 of it.", "It is 0.06 of it.", "number"),
        ("It grew by 5%, to 90%.", "It grew by 5%, to 80%.", "number"),
        ("There are 0 left.", "There are 1 left.", "number"),
        ("16 - 7 = <<16-7=9>>9 eggs", "16 - 7 = <<16-7=9>>8 eggs", "number"),
        ("She eats Three eggs.", "She eats Four eggs.", "number"),
        ("版本 ٣ 在", "版本 ٤ 在", "number"),
        ("The capital of Qatar is Dubai.", "The capital of Qatar is Doha.", "entity"),
        ("It was Barack Obama.", "It was John Lennon.", "entity"),
        ("It was shown by NASA.", "It was shown by BBC.", "entity"),
        ("The city is old.", "The city is not old.", "negation"),
        ("The city is not old.", "The city is old.", "negation"),
        ("The city isn't old.", "The city is old.", "negation"),
        ("She cannot go.", "She can go.", "negation"),
        ("She can’t go.", "She can go.", "negation"),
        ("She won't go.", "She will go.", "negation"),
        ("More people came.", "Less people came.", "antonym"),
        ("the 1st one came before", "the 1st one came after", "antonym"),
    ],
)
def test_what_is_changed_is_the_first_kind_that_applies(step: str, changed: str, kind: str) -> None:
    result = counterfactual(step, PASSAGES)
    assert result is not None and (result.text, result.kind) == (changed, kind)


@pytest.mark.parametrize(
    "step",
    ["", "Nothing here", "Dubai sleeps", "```\nx is 1\n```", "\\[ 3 + 4 = 7 \\]", "\u200b", "谁写了它", "v2beta"],
)
def test_where_nothing_applies_there_are_no_counterfactuals(step: str) -> None:
    assert counterfactual(step) is None


def test_an_entity_is_swapped_for_one_of_its_shape_that_the_step_does_not_name() -> None:
    assert counterfactual("He met Doha", ["The Doha and Qatar"]) == Counterfactual("He met Qatar", "entity")
    assert counterfactual("He met Doha", ["In DOHA", "Barack Obama"]) is None
    assert counterfactual("He met Doha", []) is None
    assert counterfactual("He met Doha", ["Qatar\nQatar Airways"]) == Counterfactual("He met Qatar", "entity")


def test_code_and_latex_are_left_alone() -> None:
    assert counterfactual("It is `x`.\n```\ny = 3\n```") == Counterfactual(
        "It is not `x`.\n```\ny = 3\n```", "negation"
    )


@given(texts, st.lists(texts, max_size=2))
def test_the_changed_step_always_differs_and_the_same_step_changes_the_same_way(step: str, passages: list[str]) -> None:
    result = counterfactual(step, passages)
    assert result == counterfactual(step, passages)
    if result is not None:
        assert fold(result.text).text != fold(step).text


@given(texts)
def test_a_changed_number_keeps_its_format(step: str) -> None:
    result = counterfactual(step)
    if result is not None and result.kind == "number" and len(result.text) == len(step):
        shape = re.compile(r"\d")
        assert shape.sub("0", result.text) == shape.sub("0", step) or re.sub(r"[a-zA-Z]", "", result.text) == re.sub(
            r"[a-zA-Z]", "", step
        )


def test_the_rule_takes_entities_from_passages_then_question() -> None:
    steps = [
        StepInContext("It was Dubai there.", "Was it Paris?", passages=("Doha is old.", "It is Doha.")),
        StepInContext("It was Dubai there.", "Was it Paris?"),
        StepInContext("Nothing here"),
    ]
    assert rule_counterfactuals(steps) == [
        Counterfactual("It was Doha there.", "entity"),
        Counterfactual("It was Paris there.", "entity"),
        None,
    ]


HOSTILE = ("\n", " ", ". ", ".", "e.g. ", "1. ", "\n1. a", "Step 1: a\n", "\\[ ", "\\(a\\) ", "$$ ", "```\n", "~~~~",
           "A: 1\n", "\\begin{a}", "\\end{a}", "\\boxed{", "#", "*", "a\n\n", "\r\n", "; ", ", and a ",
           "。", "\u200b")  # fmt: skip


@pytest.mark.parametrize("read", [split_steps, claims_of, lambda text: counterfactual(text, [text])])
@pytest.mark.parametrize("piece", [*HOSTILE, "Aa ", "Aa Bb, ", "is", "1", "1.", "'"])
def test_a_hundred_kilobytes_of_anything_take_no_time_to_speak_of(piece: str, read: Callable[[str], object]) -> None:
    text, started = "x is " + piece * (100_000 // len(piece)) + " y is", time.monotonic()
    read(text)
    assert time.monotonic() - started < 20  # quadratic time would take minutes
