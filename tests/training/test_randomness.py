"""A reward leaves every random stream as it found it, so that a run does not change with what its rewards draw."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.table import StepTable
from eldgr_dspy.errors import ScoringError
from eldgr_dspy.training import StepReward, kept_random_state
from tests.training.calling import Fixed, rows


def draw() -> list[float]:
    """A number from each stream that a sampler may use."""
    numbers = [random.random(), float(np.random.rand()), float(torch.rand(()))]
    return numbers + [float(torch.rand((), device=f"cuda:{at}")) for at in range(torch.cuda.device_count())]


class Drawing(Fixed):
    """A scorer that draws from every stream, and may fail after it."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.fails = fails

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        draw()
        torch.manual_seed(7)
        if self.fails:
            raise RuntimeError("after drawing")
        return super().score(reasonings)


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
