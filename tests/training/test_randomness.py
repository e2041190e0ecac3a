"""A reward leaves every random stream as it found it, so that a run does not change with what its rewards draw."""

import random
from typing import Any

import numpy as np
import pytest
import torch

from eldgr_dspy.errors import ScoringError
from eldgr_dspy.training import StepReward, kept_random_state
from tests.training.calling import rows
from tests.training.drawing import Drawing, draw


def seeded() -> None:
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)


def test_what_is_drawn_after_a_reward_is_what_would_have_been_drawn_without() -> None:
    seeded()
    draw()
    expected = draw()
    seeded()
    draw()
    StepReward(Drawing(), confidence=False)(["?"], ["The host was Qatar."], **rows(1))
    assert draw() == expected


def test_a_reward_that_fails_restores_them_too() -> None:
    seeded()
    expected = draw()
    seeded()
    with pytest.raises(ScoringError):
        StepReward(Drawing(fails=True), confidence=False)(["?"], ["The host was Qatar."], **rows(1))
    assert draw() == expected


def test_what_is_drawn_inside_is_drawn_from_where_the_streams_stood() -> None:
    seeded()
    with kept_random_state():
        first: Any = draw()
    assert draw() == first
