"""One rule against another on the same questions: wins and losses, the exact McNemar test, the paired bootstrap."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from eldgr_dspy.statistics.bca import bca
from eldgr_dspy.statistics.inputs import differences, positive, questions, split
from eldgr_dspy.statistics.resampling import (
    LEVEL,
    RESAMPLES,
    SEED,
    Interval,
    Options,
    Sample,
    percentile,
    resampled_means,
)

_CUSTOMARY = 0.05


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
        bca: the BCa interval of `delta` from the same resamples; None where it is undefined.
    """

    wins: int
    losses: int
    n: int
    delta: float
    interval: Interval
    p: float
    bca: Interval | None

    @property
    def notes(self) -> tuple[str, ...]:
        """Why these results say little, each reason a sentence; empty without reasons."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        discordant = self.wins + self.losses
        if self.n == 1:
            yield "There is only one question: the interval is a point and says nothing about other questions."
        if discordant == 0:
            yield "The arms score the same on every question, so there is nothing to test."
        elif mcnemar(discordant, 0) > _CUSTOMARY:
            yield (
                f"No split of {discordant} discordant question{'' if discordant == 1 else 's'} is significant: "
                f"{discordant}–0 has p = {mcnemar(discordant, 0):.4f}."
            )


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
    wins, losses = questions("wins", wins, 0), questions("losses", losses, 0)
    fewer, discordant = min(wins, losses), wins + losses
    if discordant == 0:
        return 1.0
    # The lower binomial tail at one half is an incomplete beta: nothing is summed, so a million overflows nothing.
    return min(1.0, 2.0 * float(betainc(discordant - fewer, fewer + 1, 0.5)))


def paired_bootstrap(
    rule: ArrayLike, against: ArrayLike, *, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = SEED
) -> Interval:
    """Return the paired percentile bootstrap interval of the mean difference, rule minus against.

    Questions are the unit of resampling. The same inputs, in any order of questions, and the same seed give the same
    bytes. `resampling.resampled_means` says how resamples are drawn.

    Args:
        rule: one finite number a question, shape (n,): 0/1, booleans, 0-100 or F1.
        against: the same questions in the same order under the other rule, shape (n,).
        resamples: how many resamples, at least 1.
        level: coverage, strictly between 0 and 1.
        seed: a non-negative integer.

    Raises:
        ArgumentError: no questions, unequal lengths, a value that is not a finite number (the message names its
            position), or an option out of range.
    """
    options = Options.checked(resamples, level, seed)
    sample = Sample.of(differences(rule, against))
    return percentile(sample, resampled_means(sample, options), options.level)


def paired_bca(
    rule: ArrayLike, against: ArrayLike, *, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = SEED
) -> Interval | None:
    """Return the BCa interval of the mean difference, from the same resamples as `paired_bootstrap`.

    Arguments, units and errors are those of `paired_bootstrap`. None if it is undefined: every resample is on one side
    of the mean difference.
    """
    options = Options.checked(resamples, level, seed)
    sample = Sample.of(differences(rule, against))
    return bca(sample, resampled_means(sample, options), options.level)


def contrast(
    rule: ArrayLike, against: ArrayLike, *, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = SEED
) -> Contrast:
    """Return wins, losses, mean difference, its intervals and the exact p of one rule against another.

    Arguments, units and errors are those of `paired_bootstrap`; without questions it raises.
    """
    options = Options.checked(resamples, level, seed)
    return contrast_of(Sample.of(differences(rule, against)), options)


def contrast_from_counts(
    n: int,
    wins: int,
    losses: int,
    *,
    unit: float = 1.0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = SEED,
) -> Contrast:
    """Return the contrast of two right/wrong rules from its counts, as a published table gives them.

    It is exactly equal to `contrast` on any scores with these counts.

    Args:
        n: all questions, at least 1.
        wins: questions that only the rule has right.
        losses: questions that only the other has right; wins + losses is at most n.
        unit: the value of one question: 1 for shares, 100 for percentage points.
        resamples: how many resamples, at least 1.
        level: coverage, strictly between 0 and 1.
        seed: a non-negative integer.

    Raises:
        ArgumentError: a count is negative, not an integer, or above 10^12; or wins + losses exceed n; or an option out
            of range.
    """
    options = Options.checked(resamples, level, seed)
    n, wins, losses = split(n, wins, losses)
    unit = positive("unit", unit, "Give 1 for shares or 100 for percentage points")
    counts = np.array([losses, n - wins - losses, wins], dtype=np.int64)
    return contrast_of(Sample(np.array([-unit, 0.0, unit])[counts > 0], counts[counts > 0]), options)


def contrast_of(sample: Sample, options: Options) -> Contrast:
    """Return the contrast of a sample of differences."""
    wins, losses = int(sample.counts[sample.values > 0].sum()), int(sample.counts[sample.values < 0].sum())
    means = resampled_means(sample, options)
    intervals = percentile(sample, means, options.level), bca(sample, means, options.level)
    return Contrast(wins, losses, sample.n, sample.mean, intervals[0], mcnemar(wins, losses), intervals[1])
