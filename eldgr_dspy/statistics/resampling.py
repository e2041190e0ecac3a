"""Resample questions through the counts of each distinct difference, for the percentile interval of the mean."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eldgr_dspy.statistics.number_checks import Counts, Floats

RESAMPLES = 20_000
LEVEL = 0.95
SEED = 2029

_CELLS = 2**20  # counts of eight bytes that are held at a time, whatever the number of questions
_GROUPS = 500  # of neighbours in which more distinct differences than this are drawn


class Interval(NamedTuple):
    """The two ends of an interval, `low <= high`, in the units of its quantity."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Sample:
    """The differences of a sample of questions: the distinct ones, rising, and how often each occurs."""

    values: Floats
    counts: Counts

    @classmethod
    def of_counts(cls, differences: Floats, times: Counts) -> "Sample":
        """Count the distinct differences, shape (kinds,), each of which occurs so many times."""
        values, kinds = np.unique(differences, return_inverse=True)
        return cls(values, np.bincount(kinds, times, values.size).astype(np.int64))

    @property
    def n(self) -> int:
        """How many questions there are."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """The mean difference. A single distinct one is returned as it is, since n times it over n could be rounded."""
        return float(self.values[0]) if self.values.size == 1 else math.fsum(self.values * self.counts) / self.n


def interval_of(sample: Sample) -> Interval:
    """Return the percentile interval of a sample's mean; a point if all questions have the same difference."""
    tails = (1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0
    # Its ends are two means that were drawn; interpolating would give ends that are impossible for n questions.
    low, high = np.quantile(resampled_means(sample), tails, method="nearest")
    return Interval(float(low), float(high))


def resampled_means(sample: Sample) -> Floats:
    """Return one mean a resample, shape (20,000,), in bounded memory."""
    if sample.values.size == 1:
        return np.full(RESAMPLES, sample.mean)
    generator = np.random.Generator(np.random.PCG64(SEED))
    centres, spreads, counts = _groups(sample)
    n, rows = sample.n, max(1, _CELLS // centres.size)
    means = np.empty(RESAMPLES)
    for start in range(0, RESAMPLES, rows):
        chunk = means[start : start + rows]
        # The counts of the distinct differences in a resample of n questions are multinomial.
        draws = generator.multinomial(n, counts / n, size=chunk.size)
        # A plain sum, not a BLAS product: its order, and so its last bit, does not depend on the number of threads.
        chunk[:] = (draws * centres).sum(axis=1) / n
        # The spread within groups, a tiny part of the whole, is drawn as normal, with the right mean and variance.
        if spreads.any():
            chunk += np.sqrt((draws * spreads).sum(axis=1)) / n * generator.standard_normal(chunk.size)
    return means


def _groups(sample: Sample) -> tuple[Floats, Floats, Counts]:
    """The mean, the variance and the number of questions of each group of neighbours; few values are a group each."""
    values, counts = sample.values, sample.counts
    if values.size <= _GROUPS:
        return values, np.zeros(values.size), counts
    squares = ((values - sample.mean) / np.ptp(values)) ** 2 * counts
    shares = counts / sample.n + squares / squares.sum()  # of the spread too, so that one far out is alone
    places = np.floor((np.cumsum(shares) - shares / 2.0) * (_GROUPS / 2.0))  # the group that each value falls into
    _, starts = np.unique(places, return_index=True)
    sizes = np.add.reduceat(counts, starts)
    centres = np.add.reduceat(values * counts, starts) / sizes
    deviations = values - np.repeat(centres, np.diff(np.append(starts, values.size)))
    return centres, np.add.reduceat(deviations**2 * counts, starts) / sizes, sizes
