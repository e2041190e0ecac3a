"""What is planned is in percent of the questions."""

from typing import Any

import pytest

from eldgr_dspy.figures.planning import plan_ahead
from eldgr_dspy.statistics import mcnemar_power, questions_needed
from tests.refusing import refused

LEVEL: Any = {"power": 0.8, "alpha": 0.05}


def test_a_plan_is_in_percent() -> None:
    found = plan_ahead(2.0, 6.0, **LEVEL)
    assert found["questions"] == questions_needed(0.02, 0.06) == 1_244
    assert found["power_there"] == mcnemar_power(1_244, 0.02, 0.06) >= 0.8
    assert (found["wins"] - found["losses"], found["wins"] + found["losses"]) == pytest.approx((24.88, 74.64))


MORE = (
    "gain=8 is more than discordant=6.5: wins minus losses can't be more than wins and losses together. Give both in "
    "percent of all questions."
)


@pytest.mark.parametrize(
    ("gain", "discordant", "message"),
    [(8.0, 6.5, MORE)]
    + [
        (gain, 100.0, f"gain={gain!r} must be above 0 and at most 100, in percent of the questions.")
        for gain in (0.0, -1.0, 101.0, float("nan"))
    ],
)
def test_a_gain_that_no_test_can_show_is_refused(gain: float, discordant: float, message: str) -> None:
    assert refused(lambda: plan_ahead(gain, discordant, **LEVEL)) == message
