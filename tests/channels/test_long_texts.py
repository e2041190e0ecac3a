"""A hundred kilobytes of anything take no time to speak of."""

import time
from collections.abc import Callable

import pytest

from eldgr_dspy.channels.claims import claims_of
from eldgr_dspy.channels.counterfactuals import counterfactual
from eldgr_dspy.channels.steps import split_steps
from tests.channels.hard_texts import HOSTILE


@pytest.mark.parametrize("read", [split_steps, claims_of, lambda text: counterfactual(text, [text])])
@pytest.mark.parametrize("piece", [*HOSTILE, "Aa ", "Aa Bb, ", "is", "1", "1.", "'"])
def test_a_hundred_kilobytes_of_anything_take_no_time_to_speak_of(piece: str, read: Callable[[str], object]) -> None:
    text, started = "x is " + piece * (100_000 // len(piece)) + " y is", time.monotonic()
    read(text)
    assert time.monotonic() - started < 20  # quadratic time would take minutes
