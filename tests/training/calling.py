"""Rewards called as TRL calls them, and what they logged."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.step_table import StepTable, score_steps
from eldgr_dspy.channels.steps import split_steps
from eldgr_dspy.channels.undefined import Score, Undefined
from tests.scoring.readers import Says

CUP = Passage("Cup", "The host was Qatar.")


def said(text: object) -> list[dict[str, object]]:
    """A completion of one assistant message, as TRL passes it for a conversational data set."""
    return [{"role": "assistant", "content": text}]


def rows(n: int, **columns: Any) -> dict[str, list[Any]]:
    """Columns of n rows that are alike, in retrieval with one passage, but for those given."""
    alike = {"task": "retrieval", "gold": "Qatar", "question": "Who was the host?", "evidence": [CUP.text]}
    return {**{name: [value] * n for name, value in alike.items()}, **columns}


class Log:
    """What a trainer is told, as the arguments that it passes for it."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self.columns: dict[str, list[Any]] = defaultdict(list)

    @property
    def arguments(self) -> dict[str, Any]:
        return {"log_metric": self.metrics.__setitem__, "log_extra": self.columns.__setitem__}


class Fixed:
    """A scorer that gives each step the same `logic` and `fact`, and keeps what it was given."""

    def __init__(self, logic: Score = 1.0, fact: Score = 1.0) -> None:
        self.logic, self.fact = logic, fact
        self.given: list[Reasoning] = []
        self.calls = 0

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        self.calls += 1
        self.given += reasonings
        return [self._table(reasoning.text) for reasoning in reasonings]

    def _table(self, text: str) -> StepTable:
        spans = split_steps(text).spans
        columns: dict[Any, list[Score]] = {"logic": [self.logic] * len(spans), "fact": [self.fact] * len(spans)}
        return StepTable(text, spans, score_steps(columns))


class ByLength(Fixed):
    """A scorer that likes long texts."""

    def _table(self, text: str) -> StepTable:
        self.logic = self.fact = min(1.0, len(text) / 100)
        return super()._table(text)


class Model(NamedTuple):
    training: bool


class Trainer(NamedTuple):
    """As much of a trainer as is asked."""

    model: Model | None = None
    processing_class: Any = None
    chat_template_kwargs: Any = None
    num_generations: int = 2
    num_generations_eval: int = 4

    def log(self, name: str, value: float) -> None:
        """What a reward finds the trainer by."""


class Broken:
    """A scorer that fails as a model does that has run out of memory."""

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        raise RuntimeError("out of memory\nat layer 3")


UNMEASURED = Undefined("not measured")


def by_heart(premise: str, hypothesis: str) -> Says:
    """What a fake model reads: what stands in the premise is entailed, Dubai and bricks are wrong everywhere."""
    if "Dubai" in hypothesis or "bricks" in hypothesis:
        return "contradiction"
    return "entailment" if hypothesis in premise else "neutral"
