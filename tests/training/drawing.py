"""A scorer that draws random numbers, as a model of a user's may."""

import random
from collections.abc import Sequence

import numpy as np
import torch

from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.step_table import StepTable
from tests.training.calling import Steady


def draw() -> list[float]:
    """A number from each stream that a sampler may use."""
    numbers = [random.random(), float(np.random.rand()), float(torch.rand(()))]
    return numbers + [float(torch.rand((), device=f"cuda:{at}")) for at in range(torch.cuda.device_count())]


class Drawing(Steady):  # a scorer that draws from every stream, and may fail after it
    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.fails = fails

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        draw()
        torch.manual_seed(7)
        if self.fails:
            raise RuntimeError("after drawing")
        return super().score(reasonings)
