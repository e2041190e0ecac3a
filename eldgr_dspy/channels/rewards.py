"""Combine seven scores into one: weights, gate, step reward (Eq. 2) and completion reward, all configurable.

An undefined channel is dropped and the other weights are renormalised; an undefined `logic` or `fact` is left out of
the gate. The paper finds no effect of this scalar as a training signal; no rule uses it to choose an answer.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from eldgr_dspy.channels.undefined import Flags, Floats, Score, Scores, Undefined, Values, same_length
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.words import CHANNELS, Channel

WEIGHTS: Mapping[Channel, float] = MappingProxyType(
    dict(zip(CHANNELS, (0.20, 0.20, 0.10, 0.15, 0.10, 0.15, 0.10), strict=True))
)
"""w of the paper, in the order of its table."""

TAU = 0.5
"""tau: the threshold for the smaller of `logic` and `fact`."""

OUTCOME_WEIGHT = 3.0
FORMAT_WEIGHT = 0.5

Columns = Mapping[Channel, Values]
"""A channel's scores, one a step; a missing channel is undefined for every step."""

ABSENT = "the channel was not scored"


def _require_channels(names: Iterable[str]) -> None:
    for name in names:
        if name not in CHANNELS:
            raise ArgumentError(f"{name!r} is not a channel; the channels are {', '.join(CHANNELS)}.")


@dataclass(frozen=True, slots=True)
class Weighting:
    """How channels are combined. `Weighting()` is the paper's.

    Attributes:
        weights: One a channel, 0 or more, summing to 1.
        gated: The channels whose smallest value must reach `tau`.
        tau: In [0, 1].
    """

    weights: Mapping[Channel, float] = field(default_factory=lambda: dict(WEIGHTS))  # a view of it can't be pickled
    gated: frozenset[Channel] = frozenset({"logic", "fact"})
    tau: float = TAU

    def __post_init__(self) -> None:
        _require_channels((*self.weights, *self.gated))
        values = list(self.weights.values())
        if any(not 0 <= value <= 1 for value in values) or not math.isclose(math.fsum(values), 1, abs_tol=1e-9):
            raise ArgumentError(
                f"weights={dict(self.weights)} must each be from 0 to 1 and sum to 1. Divide them by their sum."
            )
        if not 0 <= self.tau <= 1:
            raise ArgumentError(f"tau must be a number from 0 to 1; got {self.tau}.")

    def without(self, *names: Channel) -> "Weighting":
        """Return the weighting with channels dropped: weight zero, the rest renormalised, `logic` and `fact` ungated.

        Raises:
            ArgumentError: A name is not a channel, or all weights would be zero.
        """
        _require_channels(names)
        rest = {name: value for name, value in self.weights.items() if name not in names}
        if not (total := math.fsum(rest.values())):
            raise ArgumentError(
                f"Without {', '.join(names)} no channel has a weight; keep one of {', '.join(CHANNELS)}."
            )
        weights = {name: rest.get(name, 0.0) / total for name in CHANNELS}
        return replace(self, weights=weights, gated=self.gated - set(names))


PAPER = Weighting()
"""The paper's weights, gate and threshold."""


def weighted_mean(columns: Columns, weighting: Weighting = PAPER) -> Scores:
    """R-bar = sum_i w_i R_i over the channels that are defined, their weights renormalised: the score before the gate.

    Returns:
        One score a step, in [0, 1]; undefined if every channel with a weight is.

    Raises:
        ArgumentError: A name is not a channel, a score is not in [0, 1], or the columns differ in length.
    """
    matrix, defined = _matrix(columns)
    weights = np.array([weighting.weights.get(name, 0.0) for name in CHANNELS]) * defined
    total = weights.sum(axis=1)
    sums = (weights * matrix).sum(axis=1)
    means = np.divide(sums, total, out=np.zeros(len(sums)), where=total > 0)
    return _scores(np.minimum(means, 1.0), total > 0, "no channel that has a weight was measured")


def gate(columns: Columns, weighting: Weighting = PAPER) -> Scores:
    """min{R_logic, R_fact} over those that are defined; undefined if neither is: then there is no gate.

    Arguments and errors are those of `weighted_mean`.
    """
    matrix, defined = _matrix(columns)
    mask = defined & np.array([name in weighting.gated for name in CHANNELS])
    least = np.where(mask, matrix, np.inf).min(axis=1)
    return _scores(np.where(np.isinf(least), 0.0, least), ~np.isinf(least), "no channel of the gate was measured")


def step_reward(columns: Columns, weighting: Weighting = PAPER) -> Scores:
    """R_step (Eq. 2): the weighted mean if the gate reaches tau, otherwise the gate itself.

    It is not monotone at the gate: a step that now passes it may earn less if its other channels are low.

    Arguments and errors are those of `weighted_mean`.
    """
    mean, least = weighted_mean(columns, weighting), gate(columns, weighting)
    fails = least.defined & (least.numbers < weighting.tau)
    numbers = np.where(fails, least.numbers, mean.numbers)
    return _scores(numbers, fails | mean.defined, "no channel that has a weight was measured")


@dataclass(frozen=True, slots=True)
class CompletionReward:
    """R_total = 3.0 R_ORM + 0.5 R_format + mean_t R_step, with its terms.

    `steps` is the mean over the steps whose reward is defined; if it is undefined, `total` counts 0 for it. Only here
    does an undefined value count as 0, so that a completion cannot gain by not being measurable.
    """

    total: float
    outcome: float
    format: float
    steps: Score


def completion_reward(outcome: float, format_: float, rewards: Values) -> CompletionReward:
    """Return the reward of one completion.

    Args:
        outcome: R_ORM in [0, 1].
        format_: R_format in [0, 1].
        rewards: R_step of each step, in [0, 1]; may be empty.

    Raises:
        ArgumentError: A value is out of range.
    """
    terms: dict[str, object] = {"outcome": outcome, "format_": format_}
    for name, value in terms.items():
        if isinstance(value, Undefined):
            raise ArgumentError(f"{name} must be a number from 0 to 1; got {value!r}. Leave the completion out.")
    orm, form = (float(Scores.of([value], name, 0, 1).numbers[0]) for name, value in terms.items())
    steps = Scores.of(rewards, "rewards", 0, 1).mean()
    reward = 0.0 if isinstance(steps, Undefined) else steps
    return CompletionReward(OUTCOME_WEIGHT * orm + FORMAT_WEIGHT * form + reward, orm, form, steps)


def columns_of(columns: Columns) -> dict[Channel, Scores]:
    """Return all seven columns, each checked to be in [0, 1]; a missing one is undefined for every step."""
    _require_channels(columns)
    if not columns:
        raise ArgumentError(
            "No column was given, so there is nothing to combine; give the scores of one channel or more."
        )
    scores = {name: Scores.of(values, name, 0, 1) for name, values in columns.items()}
    n = same_length(*scores.values())
    return {name: scores[name] if name in scores else Scores.of([Undefined(ABSENT)] * n) for name in CHANNELS}


def _matrix(columns: Columns) -> tuple[Floats, Flags]:
    """Shape (n, 7): the scores, 0 where undefined, and which of them are defined."""
    complete = columns_of(columns).values()
    return np.stack([column.numbers for column in complete], 1), np.stack([column.defined for column in complete], 1)


def _scores(numbers: Floats, defined: Flags, reason: str) -> Scores:
    return Scores(np.where(defined, numbers, 0.0), defined, {int(at): reason for at in np.flatnonzero(~defined)})
