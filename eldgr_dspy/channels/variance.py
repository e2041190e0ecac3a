"""Decompose the variance of the weighted mean exactly (Eq. 5), and find the pairs of channels that lower it.

It describes the score before the gate, not the step reward, which is nonlinear; and it describes a sample of steps, not
a policy. The paper says that a pair with negative covariance lowers the variance: it does, by its own term. Whether the
variance is less than for uncorrelated channels depends on the sum over all pairs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from eldgr_dspy.channels.rewards import PAPER, Columns, Weighting, columns_of
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.words import CHANNELS, Channel

# Below this a covariance of numbers in [0, 1] is rounding.
_ROUNDING = 1e-15

Pair = tuple[Channel, Channel]


@dataclass(frozen=True, slots=True)
class VarianceDecomposition:
    """Var(R-bar) = sum_i w_i^2 Var(R_i) + 2 sum_{i<j} w_i w_j Cov(R_i, R_j), over n steps; population variance.

    Attributes:
        n: Steps.
        total: Var(R-bar), computed from R-bar itself.
        own: Channel -> w_i^2 Var(R_i).
        shared: Pair -> 2 w_i w_j Cov(R_i, R_j); 21 pairs in the order of the channels.
        negative: The pairs that lower the variance.
    """

    n: int
    total: float
    own: Mapping[Channel, float]
    shared: Mapping[Pair, float]
    negative: tuple[Pair, ...]

    @property
    def uncorrelated(self) -> float:
        """sum_i w_i^2 Var(R_i): the variance that uncorrelated channels would have."""
        return float(sum(self.own.values()))


def variance_decomposition(columns: Columns, weighting: Weighting = PAPER) -> VarianceDecomposition:
    """Decompose the variance of the weighted mean over steps.

    Args:
        columns: The scores of every channel that has a weight, one a step; all defined. Drop a channel that cannot be
            measured by `Weighting.without`.
        weighting: The weights; its gate is not used.

    Raises:
        ArgumentError: A score is undefined or out of range, columns differ in length, or there are no steps.
    """
    names: list[Channel] = [name for name in CHANNELS if weighting.weights.get(name)]
    scores = {name: column for name, column in columns_of(columns).items() if name in names}
    for name, column in scores.items():
        if column.reasons:
            at, reason = min(column.reasons.items())
            raise ArgumentError(
                f"{name}[{at}] is undefined ({reason}), but the variance needs every score; leave the step out, or "
                f"drop the channel with Weighting.without({name!r})."
            )
    weights = np.array([weighting.weights[name] for name in names])
    matrix = np.stack([column.numbers for column in scores.values()])
    if not matrix.shape[1]:
        raise ArgumentError("A variance needs at least one step; got none.")
    terms = np.outer(weights, weights) * np.cov(matrix, bias=True).reshape(len(names), len(names))
    own: dict[Channel, float] = dict.fromkeys(CHANNELS, 0.0)
    own |= {name: float(terms[at, at]) for at, name in enumerate(names)}
    shared: dict[Pair, float] = dict.fromkeys(combinations(CHANNELS, 2), 0.0)
    for (i, first), (j, second) in combinations(enumerate(names), 2):
        shared[first, second] = float(2 * terms[i, j])
    negative = tuple(pair for pair, term in shared.items() if term < -_ROUNDING)
    return VarianceDecomposition(matrix.shape[1], float(np.var(weights @ matrix)), own, shared, negative)
