"""One rule against another on the same questions: wins and losses, the exact McNemar test, the paired bootstrap.

Several outcomes of one question, such as those of seeds or samples, are one unit, since they err together. If they
counted as separate questions, every interval would be too narrow and every p too small.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics.number_checks import Counts, Floats, scores, whole
from eldgr_dspy.statistics.resampling import Interval, Sample, interval_of

_CUSTOMARY = 0.05
_ROUNDING = 1e-12  # scores or sums whose difference is less, measured by their size, are the same


@dataclass(frozen=True, slots=True)
class Contrast:
    """One rule against another on the same questions.

    Attributes:
        wins: questions where the rule scores higher than the other.
        losses: questions where it scores lower.
        n: all questions, ties included.
        delta: the mean difference, rule minus the other, in the units of the inputs.
        interval: the percentile bootstrap interval of `delta`.
        p: the two-sided exact McNemar probability of wins and losses; for graded scores this is the exact sign test.
    """

    wins: int
    losses: int
    n: int
    delta: float
    interval: Interval
    p: float

    @property
    def notes(self) -> tuple[str, ...]:
        """Why these results say little, each reason a sentence; empty without reasons."""
        notes, n = list[str](), self.wins + self.losses
        if self.n == 1:
            notes.append("There is only one question: the interval is a point and says nothing about other questions.")
        if n == 0:
            notes.append("The arms score the same on every question, so there is nothing to test.")
        elif (least := mcnemar(n, 0)) > _CUSTOMARY:
            one = "" if n == 1 else "s"
            notes.append(f"No split of {n} discordant question{one} is significant: {n}–0 has p = {least:.4f}.")
        return tuple(notes)


def mcnemar(wins: int, losses: int) -> float:
    """Return the two-sided exact McNemar probability of a split at least as uneven as this one (method.md section 7).

    Concordant questions do not count. Without a discordant question it is 1.0, not undefined.
    A probability below the smallest float, as for 2,000 wins and no loss, is 0.0.

    Args:
        wins: questions that only the first rule has right.
        losses: questions that only the second rule has right.

    Raises:
        ArgumentError: a count is negative, not an integer, or above 10^12.
    """
    from scipy.special import betainc

    wins, losses = whole("wins", wins, 0), whole("losses", losses, 0)
    fewer, discordant = min(wins, losses), wins + losses
    if discordant == 0:
        return 1.0
    # The lower binomial tail at one half is an incomplete beta: nothing is summed, so a million overflows nothing.
    return min(1.0, 2.0 * float(betainc(discordant - fewer, fewer + 1, 0.5)))


def contrast(rule: ArrayLike, against: ArrayLike) -> Contrast:
    """Return wins, losses, mean difference, its interval and the exact p of one rule against another.

    Scores that differ only by rounding are equal. The interval is of 95 %, over 20,000 resamples of the questions. The
    same inputs, in any order of questions, give the same bytes. `resampling.resampled_means` says how resamples are
    drawn.

    Args:
        rule: one finite number a question, shape (n,): 0/1, booleans, 0-100 or F1.
        against: the same questions in the same order under the other rule, shape (n,).

    Raises:
        ArgumentError: no questions, unequal lengths, or a value that is not a finite number (the message names its
            position).
    """
    left, right = _both(rule, against)
    equal = np.abs(left - right) <= _ROUNDING * (np.abs(left) + np.abs(right))
    return _contrast(np.where(equal, 0.0, left - right), np.ones(left.size, dtype=np.int64))


def contrast_of_units(units: Mapping[tuple[tuple[float, float], ...], int]) -> Contrast:
    """Return the contrast of questions that are counted by their outcomes, as a published table gives them.

    It is that of `contrast` on the same questions. A question with several outcomes counts once, with the mean of its
    differences. Memory and time depend on how many kinds of units there are, not on how many questions.

    Args:
        units: For each kind of unit its outcomes, each as (rule, against), and how many units are of that kind. Twenty
            wins and eight losses of 500 right or wrong are `{((1, 0),): 20, ((0, 1),): 8, ((0, 0),): 472}`.

    Raises:
        ArgumentError: as `contrast`; or a unit without an outcome, or a count below 0.
    """
    kinds = [unit for unit, times in units.items() if whole("the count of a unit", times, 0)]
    if not all(kinds):
        raise ArgumentError("units must have an outcome each; got an empty one. Leave it out.")
    _both([of for unit in kinds for of, _ in unit], [of for unit in kinds for _, of in unit])
    gaps = np.array([_mean_difference(unit) for unit in kinds])
    return _contrast(gaps, np.array([units[unit] for unit in kinds], dtype=np.int64))


def _both(rule: ArrayLike, against: ArrayLike) -> tuple[Floats, Floats]:
    """Return the scores of both arms, one float an outcome each, at least one."""
    left, right = scores("rule", rule), scores("against", against)
    if left.size != right.size:
        raise ArgumentError(
            f"rule has {left.size} values and against has {right.size}; both need one value for each of the same "
            "questions, in the same order. Leave a question out of both or of neither."
        )
    if left.size == 0:
        raise ArgumentError("rule and against are empty; a paired statistic needs at least one question.")
    return left, right


def _mean_difference(unit: tuple[tuple[float, float], ...]) -> float:
    """The mean difference of a unit, the same in any order; sums that differ only by rounding count as equal."""
    left, right = zip(*unit, strict=True)
    gap = math.fsum(left) - math.fsum(right)
    size = math.fsum(map(abs, left)) + math.fsum(map(abs, right))
    return 0.0 if abs(gap) <= _ROUNDING * size else gap / len(unit)


def _contrast(gaps: Floats, times: Counts) -> Contrast:
    sample = Sample.of_counts(gaps, times)
    wins, losses = int(sample.counts[sample.values > 0].sum()), int(sample.counts[sample.values < 0].sum())
    return Contrast(wins, losses, sample.n, sample.mean, interval_of(sample), mcnemar(wins, losses))
