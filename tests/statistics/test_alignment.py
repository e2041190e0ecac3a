"""Two arms are matched by id; a question that one of them lacks is named."""

import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics import Aligned, align


def test_arms_are_matched_by_id_and_not_by_position() -> None:
    found = align({"a": 1, "b": 0, "c": 0.5}, {"c": 0, "b": 1, "a": 1})
    assert found == Aligned(("a", "b", "c"), (1, 0, 0.5), (1, 1, 0), ())


def test_a_question_that_an_arm_lacks_is_named() -> None:  # hazard 105
    with pytest.raises(ArgumentError) as caught:
        align({"a": 1, "b": 0}, {"a": 1, "b": 0, "c": 1})
    assert str(caught.value) == (
        "rule has no score for 1 of 3 questions: 'c'; score them, count them as wrong, or give missing='drop' to leave "
        "them out of both arms."
    )
    with pytest.raises(ArgumentError, match=r"against has no score for 4 of 5 questions: 'a', 'b', 'c', \.\.\.;"):
        align(dict.fromkeys("abcde", 1), {"e": 1})


def test_a_question_without_a_gold_answer_is_dropped_from_both_arms_if_that_is_asked_for() -> None:  # hazard 106
    arms = {"a": 1, "b": None, "c": 0}, {"a": 0, "b": 1, "d": 1}
    with pytest.raises(ArgumentError, match="rule has no score for 2 of 4 questions: 'b', 'd';"):
        align(*arms)
    assert align(*arms, missing="drop") == Aligned(("a",), (1,), (0,), ("b", "c", "d"))


def test_arms_without_a_common_question_are_refused() -> None:  # hazards 103, and 105
    message = "No question has a score in both rule and against; a paired statistic needs at least one."
    for arms in (({}, {}), ({"a": 1}, {"A": 1}), ({"a": None}, {"a": None})):
        with pytest.raises(ArgumentError) as caught:
            align(*arms, missing="drop")
        assert str(caught.value) == f"{message} Do their ids have the same spelling?"


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ArgumentError, match="missing must be one of 'raise', 'drop'; got 'zero'"):
        align({"a": 1}, {"a": 1}, missing="zero")  # type: ignore[arg-type] # what is refused
