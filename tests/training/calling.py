"""Rewards called as TRL calls them, what they logged, logs that a trainer keeps, and rewards found by dotted names."""

import json
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.step_table import StepTable, score_steps
from eldgr_dspy.channels.steps import split_steps
from eldgr_dspy.channels.undefined import Score, Undefined
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training import GroupReward, StepReward
from eldgr_dspy.training.curves import FILE
from tests.scoring.readers import Reader, Says

CUP = Passage("Cup", "The host was Qatar.")
MISSING = Undefined("not measured")
SAMPLE = {
    "loss": 0.1, "reward": 2.5, "rewards/orm/mean": 0.5, "rewards/orm/std": 0.5, "rewards/ra_msd/mean": 0.75,
    "orm/exact_match": 0.625, "ra_msd/fact": 0.25, "ra_msd/steps": 3.0, "entropy": 0.3,
}  # fmt: skip


def speak(text: object) -> list[dict[str, object]]:
    """A completion of one assistant message, as TRL passes it for a conversational data set."""
    return [{"role": "assistant", "content": text}]


def rows(n: int, **columns: Any) -> dict[str, list[Any]]:
    """Columns of n rows that are alike, in retrieval with one passage, but for those given."""
    alike = {"task": "retrieval", "gold": "Qatar", "question": "Who was the host?", "evidence": [CUP.text]}
    return {**{name: [value] * n for name, value in alike.items()}, **columns}


def places(*answers: str, **settings: Any) -> list[float]:
    """The places of answers to one question, of which the evidence says Qatar."""
    texts = [f"A: {answer}" if answer else "" for answer in answers]
    columns = settings.pop("columns", {})
    return GroupReward(group_size=len(answers), **settings)(["?"] * len(texts), texts, **rows(len(texts), **columns))


class Log:  # what a trainer is told, as the arguments that it passes for it
    def __init__(self) -> None:
        self.values: dict[str, list[float]] = defaultdict(list)
        self.columns: dict[str, list[Any]] = defaultdict(list)

    @property
    def metrics(self) -> dict[str, float]:
        return {name: sum(values) / len(values) for name, values in self.values.items()}

    @property
    def arguments(self) -> dict[str, Any]:
        return {"log_metric": lambda name, one: self.values[name].append(one), "log_extra": self.columns.__setitem__}


class Steady:  # a scorer that gives each step the same `logic` and `fact`, and keeps what it was given
    def __init__(self, logic: Score = 1.0, fact: Score = 1.0) -> None:
        self.logic, self.fact = logic, fact
        self.inputs: list[Reasoning] = []
        self.calls = 0

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        self.calls += 1
        self.inputs += reasonings
        return [self._table(reasoning.text) for reasoning in reasonings]

    def _table(self, text: str) -> StepTable:
        spans = split_steps(text).spans
        columns: dict[Any, list[Score]] = {"logic": [self.logic] * len(spans), "fact": [self.fact] * len(spans)}
        return StepTable(text, spans, score_steps(columns))


class ByLength(Steady):
    def _table(self, text: str) -> StepTable:
        self.logic = self.fact = min(1.0, len(text) / 100)
        return super()._table(text)


class Model(NamedTuple):
    training: bool


class Trainer(NamedTuple):
    model: Model | None = None
    processing_class: Any = None
    chat_template_kwargs: Any = None
    tools: Any = None
    num_generations: int = 2
    num_generations_eval: int = 4

    def log(self, name: str, value: float) -> None:
        """What a reward finds the trainer by."""


class Failing:  # a scorer that fails as a model does that has run out of memory
    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        raise RuntimeError("out of memory\nat layer 3")


def by_heart(premise: str, hypothesis: str) -> Says:
    """What a fake model reads: what stands in the premise is entailed, Dubai and bricks are wrong everywhere."""
    if "Dubai" in hypothesis or "bricks" in hypothesis:
        return "contradiction"
    return "entailment" if hypothesis in premise else "neutral"


def logs_of(*values: float | None) -> list[dict[str, Any]]:
    """The log of a step for each value of exact match; where it is None, nothing was sampled."""
    logs = [{"loss": 0.0} if value is None else {**SAMPLE, "orm/exact_match": value} for value in values]
    return [{**log, "step": step} for step, log in enumerate(logs, start=1)]


def keep(folder: Path, logs: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps({"global_step": len(logs), "log_history": logs}), "utf-8")
    return folder


ra_msd = StepReward(NLIScorer(Reader(by_heart)))


def constant(prompts: list[Any], by: float = 0.0, **columns: Any) -> list[float]:
    return [by] * len(prompts)


class Half:
    def __call__(self, prompts: list[Any], **columns: Any) -> list[float]:
        return [0.5] * len(prompts)


part = partial(partial(constant), by=1.0)
half = Half()
