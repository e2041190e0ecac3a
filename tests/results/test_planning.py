"""What is planned is in percent of the questions, before a run and of a finished one."""

from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.planning import plan_ahead, what_it_saw
from eldgr_dspy.statistics import mcnemar_power, questions_needed
from tests.results.planned import LEVEL, lead


def summary(n: int, *contrasts: dict[str, Any]) -> Any:
    """What is needed of the summary of a run on one pool."""
    return {"pools": {"hotpot": {"n": n, "n_scored": n, "contrasts": list(contrasts)}}}


def test_a_plan_is_in_percent() -> None:
    found = plan_ahead(2.0, 6.0, **LEVEL)
    assert found["questions"] == questions_needed(0.02, 0.06) == 1_244
    assert found["power_there"] == mcnemar_power(1_244, 0.02, 0.06) >= 0.8
    assert (found["wins"] - found["losses"], found["wins"] + found["losses"]) == pytest.approx((24.88, 74.64))


def test_a_gain_of_more_than_is_discordant_is_refused() -> None:
    with pytest.raises(ArgumentError) as caught:
        plan_ahead(8.0, 6.5, **LEVEL)
    assert str(caught.value) == (
        "gain=8 is more than discordant=6.5: wins minus losses can't be more than wins and losses together. Give both "
        "in percent of all questions."
    )


@pytest.mark.parametrize("gain", [0.0, -1.0, 101.0, float("nan")])
def test_a_gain_that_is_not_a_percentage_is_refused(gain: float) -> None:
    message = f"gain={gain!r} must be above 0 and at most 100, in percent of the questions."
    with pytest.raises(ArgumentError) as caught:
        plan_ahead(gain, 100.0, **LEVEL)
    assert str(caught.value) == message
    with pytest.raises(ArgumentError) as caught:
        what_it_saw(summary(500, lead(20, 8, 500)), **LEVEL, gain=gain)
    assert str(caught.value) == message


def test_a_gain_that_needs_over_ten_million_questions_is_a_dash_of_its_row_and_no_error() -> None:
    found = what_it_saw(summary(500, lead(20, 8, 500), lead(1, 0, 500)), **LEVEL, gain=0.01)
    asked = [one["questions"] for one in found["pools"]["hotpot"]["contrasts"]]
    assert asked == [None, questions_needed(0.0001, 0.002)]
    with pytest.raises(ArgumentError, match=r"power must be strictly between 0 and 1; got 1\.5"):
        what_it_saw(summary(500, lead(20, 8, 500)), power=1.5, alpha=0.05, gain=0.01)


def test_a_finished_run_says_what_it_could_have_seen() -> None:
    found: Any = what_it_saw(summary(500, lead(20, 8, 500), lead(17, 3, 500)), **LEVEL)
    assert found["pools"]["hotpot"]["n"] == 500
    majority, first = found["pools"]["hotpot"]["contrasts"]
    assert (majority["discordant"], majority["least_significant"]) == (pytest.approx(5.6), [20, 8])
    assert majority["questions"] is None
    assert mcnemar_power(500, majority["detectable_gain"] / 100, 0.056) == pytest.approx(0.8)
    assert first["least_significant"] == [15, 5]


def test_for_a_gain_it_says_how_many_questions_another_run_needs() -> None:
    finished = summary(500, lead(20, 8, 500), lead(4, 1, 500), lead(0, 0, 500))
    found = what_it_saw(finished, **LEVEL, gain=2.0)["pools"]["hotpot"]["contrasts"]
    assert [one["questions"] for one in found] == [questions_needed(0.02, 0.056), None, None]


def test_too_few_discordant_questions_could_show_nothing() -> None:  # hazard 103
    (found,) = what_it_saw(summary(300, lead(0, 0, 300)), **LEVEL)["pools"]["hotpot"]["contrasts"]
    assert (found["discordant"], found["least_significant"], found["detectable_gain"]) == (0.0, None, None)
