"""The seven channels as formulas over numbers, and their rewards: table 1 and equations 1, 2 and 5 of the paper.

Every function takes one value a step and returns one score a step (`Scores`); a value that could not be measured is
`Undefined` and stays so. The formulas do not read text: `overlap`, `steps`, `claims` and `counterfactuals` do. Nothing
here calls a model or retrieves. A channel describes a step; it does not certify or decide anything.

    >>> from eldgr_dspy import channels
    >>> rows = channels.Grounding.of([[1.0, 0.0], [], channels.Undefined("there is no corpus")])
    >>> list(channels.fact(rows.best()))
    [1.0, 0.5, Undefined(reason='there is no corpus')]
"""

from eldgr_dspy.channels.conflation import conflated, unsupported_rate
from eldgr_dspy.channels.formulas import adv, epist, fact, info, logic, minimality, triang
from eldgr_dspy.channels.grounding import Grounding, f_nli
from eldgr_dspy.channels.rewards import (
    PAPER,
    TAU,
    WEIGHTS,
    CompletionReward,
    Weighting,
    completion_reward,
    gate,
    step_reward,
    weighted_mean,
)
from eldgr_dspy.channels.step_table import StepScores, StepTable, score_steps
from eldgr_dspy.channels.undefined import Score, Scores, Undefined, Values
from eldgr_dspy.channels.variance import VarianceDecomposition, variance_decomposition
from eldgr_dspy.words import CHANNELS, Channel

__all__ = [
    # the channels
    "CHANNELS",
    "Channel",
    "logic",
    "fact",
    "epist",
    "info",
    "triang",
    "adv",
    "minimality",
    # their inputs
    "Score",
    "Scores",
    "Values",
    "Undefined",
    "Grounding",
    "f_nli",
    # rewards, records and analyses
    "WEIGHTS",
    "TAU",
    "PAPER",
    "Weighting",
    "weighted_mean",
    "gate",
    "step_reward",
    "CompletionReward",
    "completion_reward",
    "conflated",
    "unsupported_rate",
    "VarianceDecomposition",
    "variance_decomposition",
    "StepScores",
    "StepTable",
    "score_steps",
]
