"""The BCa interval: the percentile interval, corrected for bias and skewness.

Source: Efron (1987), "Better bootstrap confidence intervals", with the share of resamples below the estimate taken as
the mean of "below" and "not above", since the means of right and wrong have ties; so does `scipy.stats.bootstrap`.
"""

import numpy as np
from scipy.special import ndtr, ndtri

from eldgr_dspy.statistics.inputs import Floats
from eldgr_dspy.statistics.resampling import Interval, Sample, quantiles

_ROUNDING = 1e-12  # means that differ by less, measured by the largest difference, are tied


def bca(sample: Sample, means: Floats, level: float) -> Interval | None:
    """Return the BCa interval of a sample's mean from the means of its resamples.

    Returns:
        None if one side of the estimate has no resample, as may be with a handful: the bias is then unbounded.
        If all questions have the same difference, the interval is a point.
    """
    if sample.values.size == 1:
        return Interval(sample.mean, sample.mean)
    below = _share_below(means, sample.mean, _ROUNDING * float(np.abs(sample.values).max()))
    if not 0.0 < below < 1.0:
        return None
    bias, acceleration, tail = float(ndtri(below)), _acceleration(sample), (1.0 - level) / 2.0
    low, high = (_adjusted(bias, acceleration, float(ndtri(share))) for share in (tail, 1.0 - tail))
    return quantiles(means, (low, high))


def _share_below(means: Floats, estimate: float, rounding: float) -> float:
    gaps = means - estimate
    return float(np.count_nonzero(gaps < -rounding) + np.count_nonzero(gaps <= rounding)) / (2.0 * means.size)


def _acceleration(sample: Sample) -> float:
    """A sixth of the skewness of the jackknife: leaving a question out moves the mean away from its difference."""
    scaled = (sample.values - sample.mean) / np.abs(sample.values - sample.mean).max()
    second, third = (float((scaled**power * sample.counts).sum()) for power in (2, 3))
    return float(third / (6.0 * second**1.5))


def _adjusted(bias: float, acceleration: float, z: float) -> float:
    """The probability whose quantile replaces that of `z`."""
    shifted = bias + z
    room = 1.0 - acceleration * shifted
    if room <= 0.0:  # too much skewness for the correction: use the outermost resample
        return 1.0 if shifted > 0.0 else 0.0
    return float(ndtr(bias + shifted / room))
