"""A reward leaves every random stream as it found it, so that a run does not change with what its rewards draw."""

import random
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

from eldgr_dspy.errors import ScoringError
from eldgr_dspy.training import StepReward, kept_random_state
from tests.training.calling import rows
from tests.training.drawing import Drawing, draw


def seed_all() -> None:
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)


def test_a_reward_that_draws_or_fails_leaves_the_streams_as_they_were() -> None:
    for fails in (False, True):
        seed_all()
        draw()
        expected = draw()
        seed_all()
        draw()
        with pytest.raises(ScoringError) if fails else nullcontext():
            StepReward(Drawing(fails), confidence=False)(["?"], ["The host was Qatar."], **rows(1))
        assert draw() == expected
    seed_all()
    with kept_random_state():
        first: Any = draw()
    assert draw() == first, "what is drawn inside is drawn from where the streams stood"
