"""Rewards that a command finds by their dotted names: one with a fake NLI model behind it, and of other makes."""

from functools import partial
from typing import Any

from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training import StepReward
from tests.scoring.readers import Reader
from tests.training.calling import by_heart

ra_msd = StepReward(NLIScorer(Reader(by_heart)))


def constant(prompts: list[Any], by: float = 0.0, **columns: Any) -> list[float]:
    """A plain function, as TRL takes it too."""
    return [by] * len(prompts)


class Half:
    """An object without a name of its own."""

    def __call__(self, prompts: list[Any], **columns: Any) -> list[float]:
        return [0.5] * len(prompts)


part = partial(partial(constant), by=1.0)
half = Half()
