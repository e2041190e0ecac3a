"""Scores are the official ones."""

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import (
    Score,
    answer_class,
    exact_match,
    normalise,
    numeric_equal,
    score,
    token_f1,
)
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.rule.cases import Case
from tests.dates import LISTED
from tests.refusing import refused

any_text = st.text(st.characters())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Beatles", "beatles"), ("A  an THE\tx", "x"), ("U.S.", "us"), ("rock-n-roll", "rocknroll"),
        ("theatre", "theatre"), ("1,000", "1000"), ("-5", "5"), ("A", ""),
        ("Beyonc\u00e9\u2019s", "beyonc\u00e9\u2019s"), ("the\u2013x", "\u2013x"), ("a_b", "ab"),
    ],
)  # fmt: skip
def test_normalise_is_the_official_one(text: str, expected: str) -> None:
    assert normalise(text) == expected


def test_exact_match_is_after_normalisation_with_any_gold() -> None:
    assert exact_match("the Beatles!", ["Stones", "Beatles"])
    assert not exact_match("Beatle", ["Beatles"])


@pytest.mark.parametrize("answer", [None, "", " \n"])
def test_no_answer_scores_nothing(answer: str | None) -> None:
    assert not exact_match(answer, ["the"])
    assert token_f1(answer, ["the"]) == 0.0
    assert not numeric_equal(answer, ["18"])


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("Paris", ["Paris"], 1.0), ("Paris France", ["Paris"], 2 / 3), ("x x y", ["x y y"], 2 / 3),
        ("London", ["Paris"], 0.0), ("the", ["the"], 0.0), ("Paris, France", ["Lyon", "Paris"], 2 / 3),
        ("yes", ["Yes."], 1.0), ("yes it is", ["yes"], 0.0), ("no", ["no one"], 0.0),
        ("noanswer given", ["noanswer"], 0.0),
    ],
)  # fmt: skip
def test_token_f1_is_the_official_one_and_the_best_over_gold(answer: str, gold: list[str], expected: float) -> None:
    assert token_f1(answer, gold) == pytest.approx(expected)


@given(any_text, st.lists(any_text, min_size=1, max_size=3))
def test_token_f1_stays_between_nothing_and_one(answer: str, gold: list[str]) -> None:
    assert 0.0 <= token_f1(answer, gold) <= 1.0


EQUAL = ("18", "18.0", "$18", " 18. ", "36/2", "+18", "1.8e1")
APART = ("-18", "18%", "1.8", "18 dollars", "nan", "1,8", "18.0000001")


@pytest.mark.parametrize(("answer", "equal"), [*((one, True) for one in EQUAL), *((one, False) for one in APART)])
def test_numeric_equality_ignores_the_spelling_of_a_number_and_is_exact(answer: str, equal: bool) -> None:
    assert numeric_equal(answer, ["17", "18"]) is equal
    assert not numeric_equal("nan", ["nan"])  # hazard 24


@pytest.mark.parametrize("scorer", [exact_match, token_f1, numeric_equal])
@pytest.mark.parametrize("gold", [[], (), "18", ""])
def test_gold_must_be_a_sequence_of_at_least_one(scorer: Callable[..., Any], gold: Sequence[str]) -> None:
    with pytest.raises(ArgumentError) as raised:
        scorer("18", gold)
    expected = f"gold must be a list of one or more gold answers; got {gold!r}. Pass one such as ['18']."
    assert str(raised.value) == expected


def test_the_task_says_how_an_answer_is_scored() -> None:
    assert score("18.0", ["18"], "arithmetic") == Score(em=True, f1=None)
    assert score("18.0", ["18"], "retrieval") == Score(em=False, f1=0.0)
    assert score("the Paris", ["Paris"], "retrieval") == Score(em=True, f1=1.0)


@pytest.mark.parametrize("call", [lambda task: score("1", ["1"], task), lambda task: answer_class("1", task)])
def test_an_unknown_task_is_named(call: Callable[[Any], object]) -> None:
    assert refused(lambda: call("maths")) == f"answer must be one of {LISTED}; got 'maths'."


@pytest.mark.parametrize(("name", "first", "most"), [("gsm8k-openai4", 458, 607), ("hotpotqa-reflexion12", 32, 58)])
def test_first_and_majority_are_right_as_often_as_known(pools_dir: Path, name: str, first: int, most: int) -> None:
    with gzip.open(pools_dir / f"{name}.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
        rows = [Row.model_validate_json(line) for line in lines]
    cases = [(Case(row.to_question()), row) for row in rows]
    assert sum(score(case.first, row.gold, row.task).em for case, row in cases) == first
    assert sum(score(case.consensus, row.gold, row.task).em for case, row in cases) == most
