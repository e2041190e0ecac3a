"""Scorers that say what a test states, and the tables that they say it with."""

import functools
import tempfile
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import dspy

from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.step_table import StepScores, StepTable
from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.words import CHANNELS

_MODELS = tempfile.TemporaryDirectory(prefix="eldgr-models-")
NO_SCORE = Undefined("it was not measured")


def table_of(text: str, *rewards: Any) -> StepTable:
    """A table with a step a reward, each of the whole text; a reward that is None is undefined."""
    values = [NO_SCORE if reward is None else reward for reward in rewards]
    channels = dict.fromkeys(CHANNELS, NO_SCORE)
    steps = [StepScores(channels, NO_SCORE, reward, False, False, NO_SCORE, None, None) for reward in values]
    return StepTable(text, ((0, len(text)),) * len(steps), tuple(steps))


class Rewards:
    """A scorer that gives the texts these rewards, a table each: too many if they are; the last texts have none.

    None is undefined. An outcome that is not a list is raised if it is an error, else returned.
    """

    def __init__(self, outcome: Any, name: str = "Rewards") -> None:
        self.outcome, self.name = outcome, name
        self.inputs: list[list[Reasoning]] = []

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        self.inputs.append(list(reasonings))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        if not isinstance(self.outcome, list):
            return self.outcome  # type: ignore[no-any-return]  # what no scorer should return
        texts = [reasoning.text for reasoning in reasonings]
        return [table_of(text or "", reward) for text, reward in zip_longest(texts, self.outcome)]


class AsyncRewards(Rewards):
    """The same, awaited; it is not to be called in any other way."""

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        raise AssertionError("it can be awaited, and was not")

    async def ascore(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        return super().score(reasonings)


class ScoringModule(dspy.Module):
    """A scorer that is a module, and has a prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict("text -> reward: float")

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        return [table_of(reasoning.text, float(self.predict(text=reasoning.text).reward)) for reasoning in reasonings]


@functools.cache
def trained_nli() -> Path:
    """The folder of a small cross-encoder, saved on the first call; it knows capitals, professions and apples."""
    from transformers.utils import logging

    from tests.tiny_nli import tiny_nli

    bars: Any = logging
    bars.disable_progress_bar()  # it would stand in what a command prints
    return tiny_nli(Path(_MODELS.name) / "nli")
