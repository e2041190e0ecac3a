"""What rewards, groups and curves make of their arguments, and what they refuse in which sentence; see `cases.json`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.errors import ArgumentError, ScoringError
from eldgr_dspy.training import Conditioned, GroupReward, StepReward, TokenConfidence, eldgr_rank, format, orm
from eldgr_dspy.training.curves import rolling_mean
from eldgr_dspy.training.generation import Sampling
from eldgr_dspy.training.padding import without_padding
from eldgr_dspy.training.reward_base import require_columns
from tests.case_tables import agrees, each_case
from tests.refusing import refusal, says
from tests.training.calling import Steady, places, rows


@dataclass
class Returning:  # a scorer that returns what a case says
    tables: Any

    def score(self, reasonings: Sequence[Reasoning]) -> Any:
        return self.tables


def steps(n: int = 1, scorer: Any = None, **columns: Any) -> list[float]:
    reward = StepReward(scorer or Steady(), confidence="token_confidence" in columns)
    return reward(["?"] * n, ["The host was Qatar."] * n, **rows(n, **columns))


def split(text: str) -> tuple[str, int]:
    lines, padding = without_padding(text)
    assert all(text.startswith(line, start) for line, start in lines)
    return "".join(line for line, _ in lines), padding


CALLS: dict[str, Callable[..., Any]] = {
    "orm": lambda completions=("#### 7",), **columns: orm(["?"] * len(completions), [*completions], **columns),
    "orm in rows": lambda completions: orm(["?"] * len(completions), completions, **rows(len(completions))),
    "format": lambda completion: format(["?"], [completion], task=["arithmetic"]),
    "StepReward": StepReward,
    "steps": steps,
    "scorer": lambda scorer: steps(scorer=scorer),
    "Conditioned": lambda at_least: Conditioned(format, on=orm, at_least=at_least),
    "GroupReward": lambda size, prompts=(): GroupReward(group_size=size)([*prompts], ["A: Qatar"] * 3, **rows(3)),
    "eldgr_rank": lambda: eldgr_rank(["?"], ["A: Qatar"], **rows(1)),
    "Sampling": lambda **values: Sampling(**{"seed": 1, **values}),
    "require_columns": lambda dataset: require_columns(dataset, ()),
}
RESULTS: dict[str, Callable[..., Any]] = {
    "places": lambda answers, **columns: places(*answers, columns=columns),
    "orm, format": lambda completion, gold, task="arithmetic": [
        orm(["?"], [completion], gold=[gold], task=[task])[0],
        format(["?"], [completion], gold=[gold], task=[task])[0],
    ],
    "orm": orm,
    "of_steps": lambda text, spans: TokenConfidence("Six is", (3, 6), (-1.0, math.nan)).of_steps(text, spans),
    "without_padding": split,
    "rolling_mean": rolling_mean,
}
WORDS: dict[str, Callable[..., Any]] = {"float": float, "object": object, "Returning": Returning, "Fixed": Steady}
WORDS |= {"Undefined": Undefined}


@each_case("training", "refusals", **WORDS)
def test_each_refusal_is_its_sentence(call: str, arguments: dict[str, Any], sentence: str) -> None:
    kind = ScoringError if call == "scorer" else ArgumentError
    assert says(sentence, refusal(lambda: CALLS[call](**arguments), kind))


@each_case("training", "results", **WORDS)
def test_each_result_is_that_of_its_case(call: str, arguments: dict[str, Any], result: Any) -> None:
    assert agrees(RESULTS[call](**arguments), result)
