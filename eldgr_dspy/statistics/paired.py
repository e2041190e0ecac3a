"""One rule against another on the same questions: wins and losses, the exact McNemar test, the paired bootstrap.

Several outcomes of one question, such as those of seeds or samples, are one unit, since they err together. If they
counted as separate questions, every interval would be too narrow and every p too small.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics.bca import bca
from eldgr_dspy.statistics.inputs import Floats, inside, questions, scores, whole
from eldgr_dspy.statistics.resampling import LEVEL, RESAMPLES, SEED, Interval, Sample, percentile, resampled_means

_CUSTOMARY = 0.05
_ROUNDING = 1e-12  # sums whose difference is less, measured by their size, are the same sum


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
        bca: the BCa interval of `delta` from the same resamples; None if every resample is on one side of `delta`.
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


def contrast(
    rule: ArrayLike, against: ArrayLike, *, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = SEED
) -> Contrast:
    """Return wins, losses, mean difference, its intervals and the exact p of one rule against another.

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
    left, right = _both(rule, against)
    return _contrast(left - right, np.ones(left.size, dtype=np.int64), resamples, level, seed)


def contrast_of_units(
    units: Mapping[tuple[tuple[float, float], ...], int],
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = SEED,
) -> Contrast:
    """Return the contrast of questions that are counted by their outcomes, as a published table gives them.

    It is that of `contrast` on the same questions. A question with several outcomes counts once, with the mean of its
    differences. Memory and time depend on how many kinds of units there are, not on how many questions.

    Args:
        units: For each kind of unit its outcomes, each as (rule, against), and how many units are of that kind.
        resamples: as in `contrast`. level: as in `contrast`. seed: as in `contrast`.

    Raises:
        ArgumentError: as `contrast`; or a unit without an outcome, or a count below 1.
    """
    for unit, times in units.items():
        if not unit:
            raise ArgumentError("units must have an outcome each; got an empty one. Leave it out.")
        questions("the count of a unit", times, 1)
    outcomes = [outcome for unit in units for outcome in unit]
    left, right = _both([of for of, _ in outcomes], [of for _, of in outcomes])
    sizes = np.array([len(unit) for unit in units])
    gaps = left - right if sizes.max() == 1 else _mean_differences(left, right, sizes)
    return _contrast(gaps, np.array([*units.values()], dtype=np.int64), resamples, level, seed)


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

    Args:
        n: all questions, at least 1.
        wins: questions that only the rule has right. losses: questions that only the other has right.
        unit: the value of one question: 1 for shares, 100 for percentage points.
        resamples: as in `contrast`. level: as in `contrast`. seed: as in `contrast`.

    Raises:
        ArgumentError: as `contrast`; or a count is not a whole number from 0, or wins and losses are more than n.
    """
    n, wins, losses = questions("n", n, 1), questions("wins", wins, 0), questions("losses", losses, 0)
    if wins + losses > n:
        raise ArgumentError(
            f"wins={wins!r} and losses={losses!r} are {wins + losses} questions, more than n={n!r}; "
            "give n as the number of all questions, ties included."
        )
    counts: dict[tuple[tuple[float, float], ...], int] = {
        ((unit, 0.0),): wins,
        ((0.0, unit),): losses,
        ((0.0, 0.0),): n - wins - losses,
    }
    units = {unit_of: count for unit_of, count in counts.items() if count}
    return contrast_of_units(units, resamples=resamples, level=level, seed=seed)


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


def _mean_differences(left: Floats, right: Floats, sizes: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Floats:
    """One mean difference a unit; sums that differ only by rounding count as equal."""
    codes = np.repeat(np.arange(sizes.size), sizes)

    def sums(values: Floats) -> Floats:
        """The sum of each unit, exactly the same in any order of its outcomes."""
        order = np.lexsort((values, codes))
        return np.bincount(codes[order], weights=values[order]).astype(np.float64)

    gaps = sums(left) - sums(right)
    gaps[np.abs(gaps) <= _ROUNDING * (sums(np.abs(left)) + sums(np.abs(right)))] = 0.0
    means: Floats = gaps / sizes
    return means


def _contrast(
    gaps: Floats, times: np.ndarray[tuple[int, ...], np.dtype[np.int64]], resamples: int, level: float, seed: int
) -> Contrast:
    level = inside("level", level, "Give 0.95 for a 95% interval")
    sample = Sample.counted(gaps, times)
    wins, losses = int(sample.counts[sample.values > 0].sum()), int(sample.counts[sample.values < 0].sum())
    means = resampled_means(sample, whole("resamples", resamples, 1), whole("seed", seed, 0))
    intervals = percentile(sample, means, level), bca(sample, means, level)
    return Contrast(wins, losses, sample.n, sample.mean, intervals[0], mcnemar(wins, losses), intervals[1])
