"""Whether two rules are as good as each other, up to a margin: two one-sided tests (TOST).

A large p of McNemar's test says only that no difference was seen. To claim that two rules are equivalent, choose the
margin within which a difference does not matter before you look at the data, and test both of its ends.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics.inputs import differences, inside, positive, split
from eldgr_dspy.statistics.resampling import Interval

_ALPHA = 0.05
_ROUNDING = 1e-12  # a smaller spread, relative to the largest difference, counts as zero


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Two one-sided tests of a mean difference against a margin.

    Attributes:
        n: all questions. delta: the mean difference, rule minus the other, in the units of the inputs.
        margin: the difference that does not matter, in the same units.
        p_below: the probability of a difference at least as far above -margin if the true one is -margin: small if the
            rule is not worse by the margin (non-inferiority). p_above: the same for the other end of the margin.
        p: the larger of the two.
        interval: of coverage 1 - 2 alpha; the arms are equivalent if it is within the margins.
        equivalent: whether `p` is at most alpha.
    """

    n: int
    delta: float
    margin: float
    p_below: float
    p_above: float
    p: float
    interval: Interval
    equivalent: bool


def equivalence(rule: ArrayLike, against: ArrayLike, margin: float, *, alpha: float = _ALPHA) -> Equivalence:
    """Return the paired t tests of the mean difference of graded scores, as F1, against both margins.

    For right and wrong use `equivalence_from_counts`, which also works without discordant questions.

    Args:
        rule: one finite number a question, shape (n,). against: the same questions under the other rule.
        margin: a positive number in the units of the scores.
        alpha: the chance of a false claim, strictly between 0 and .5.

    Raises:
        ArgumentError: as `contrast`; or an option out of range; or all differences are the same (as with one question),
            so that a t test is impossible.
    """
    margin, alpha = _checked(margin, alpha)
    gaps = differences(rule, against)
    n, delta = gaps.size, float(gaps.mean())
    if float(np.ptp(gaps)) <= _ROUNDING * float(np.abs(gaps).max()):
        raise ArgumentError(
            f"The {n} difference{'s' if n > 1 else ''} of rule and against have no spread, so a t test is "
            "impossible; for right and wrong give their counts to equivalence_from_counts."
        )
    error = float(gaps.std(ddof=1)) / math.sqrt(n)
    p_below, p_above = (float(stdtr(n - 1, -(margin + side * delta) / error)) for side in (1.0, -1.0))
    half = error * float(stdtrit(n - 1, 1.0 - alpha))
    interval = Interval(delta - half, delta + half)
    p = max(p_below, p_above)
    return Equivalence(n, delta, margin, p_below, p_above, p, interval, p <= alpha)


def equivalence_from_counts(
    n: int, wins: int, losses: int, margin: float, *, unit: float = 1.0, alpha: float = _ALPHA
) -> Equivalence:
    """Return the score tests of two right/wrong rules against both margins, from their counts.

    The test is asymptotic: with few questions its level is near alpha and not below it. It also works without
    discordant questions; `interval` then shows how much is uncertain.
    Source: Nam (1997) and Tango (1998); the interval is Tango's. At a margin of 0 it would be McNemar's.

    Args:
        n: all questions, at least 1.
        wins: questions that only the rule has right. losses: that only the other has right.
        margin: less than `unit`, and in its units: 0.02 for two points in shares.
        unit: the value of one question: 1 for shares, 100 for percentage points.
        alpha: the chance of a false claim, strictly between 0 and .5.

    Raises:
        ArgumentError: impossible counts, or an option out of range.
    """
    n, wins, losses = split(n, wins, losses)
    unit = positive("unit", unit, "Give 1 for shares or 100 for percentage points")
    margin, alpha = _checked(margin, alpha)
    if margin >= unit:
        raise ArgumentError(f"margin must be less than unit={unit!r}, the value of one question; got {margin!r}.")
    p_below = float(ndtr(-_score(n, wins, losses, -margin / unit)))
    p_above = float(ndtr(_score(n, wins, losses, margin / unit)))
    interval = _inverted(n, wins, losses, float(ndtri(1.0 - alpha)))
    ends = Interval(unit * interval.low, unit * interval.high)
    delta = unit * (wins - losses) / n
    p = max(p_below, p_above)
    return Equivalence(n, delta, margin, p_below, p_above, p, ends, p <= alpha)


def _checked(margin: float, alpha: float) -> tuple[float, float]:
    margin = positive("margin", margin, "Give the largest difference that does not matter, in the units of the scores")
    if inside("alpha", alpha, "Give 0.05 for a 5% chance of a false claim") >= 0.5:
        raise ArgumentError(f"alpha must be below .5; got {alpha!r}. Give 0.05 for a 5% chance of a false claim.")
    return margin, alpha


def _score(n: int, wins: int, losses: int, difference: float) -> float:
    """The score statistic of a true difference: how many standard errors the observed one is above it.

    The variance is that under the true difference, with the most likely share of losses.
    """
    b = (2 * n - wins + losses) * difference - wins - losses
    c = -losses * difference * (1.0 - difference)
    likeliest = (math.sqrt(max(0.0, b * b - 8.0 * n * c)) - b) / (4.0 * n)
    variance = n * (2.0 * likeliest + difference * (1.0 - difference))
    gap = wins - losses - n * difference
    if variance <= 0.0:
        return 0.0 if gap == 0.0 else math.copysign(math.inf, gap)
    return gap / math.sqrt(variance)


def _inverted(n: int, wins: int, losses: int, z: float) -> Interval:
    """The differences that the score test does not reject, at `z` standard errors on either side."""
    observed = (wins - losses) / n
    low = _crossing(lambda difference: _score(n, wins, losses, difference) > z, -1.0, observed)
    return Interval(low, -_crossing(lambda difference: _score(n, wins, losses, -difference) < -z, -1.0, -observed))


def _crossing(rejected: Callable[[float], bool], outside: float, inside: float) -> float:
    """Where rejection ends on the way from outside to inside, to the last bit; `outside` if it is not rejected."""
    if not rejected(outside):
        return outside
    while outside < (middle := (outside + inside) / 2.0) < inside:
        outside, inside = (middle, inside) if rejected(middle) else (outside, middle)
    return inside
