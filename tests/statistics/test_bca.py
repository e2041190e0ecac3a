"""The BCa interval: its definition carried out naively and `scipy.stats.bootstrap` are the witnesses."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap, norm

from eldgr_dspy.statistics import Interval, contrast
from eldgr_dspy.statistics.resampling import Sample, intervals, resampled_means
from tests.contrasts import from_counts

Array = np.ndarray[Any, Any]


def sample_of(differences: Array) -> Sample:
    return Sample.counted(differences, np.ones(differences.size, dtype=np.int64))


def skewed() -> Array:
    """Sixty differences with a long upper tail and many zeros, as a gain in F1 may have them."""
    generator = np.random.Generator(np.random.PCG64(3))
    return np.where(generator.random(60) < 0.6, 0.0, generator.choice([0.1, 0.2, 2 / 7, 1.0, 1.0], size=60))


def by_definition(differences: Array, means: Array) -> Interval:
    """Efron's interval: bias from the share of resamples below the estimate, acceleration from the jackknife."""
    n, estimate = differences.size, differences.mean()
    below = (np.mean(means < estimate - 1e-12) + np.mean(means <= estimate + 1e-12)) / 2
    left_out = np.array([np.delete(differences, index).mean() for index in range(n)])
    gaps = left_out.mean() - left_out
    acceleration = (gaps**3).sum() / (6 * (gaps**2).sum() ** 1.5)
    ends = []
    for tail in (0.025, 0.975):
        shifted = norm.ppf(below) + norm.ppf(tail)
        adjusted = norm.cdf(norm.ppf(below) + shifted / (1 - acceleration * shifted))
        ends.append(float(np.quantile(means, adjusted, method="nearest")))
    return Interval(*ends)


def test_it_is_the_interval_of_its_definition() -> None:
    differences = skewed()
    means = resampled_means(sample_of(differences))
    assert contrast(differences, np.zeros(60)).bca == pytest.approx(by_definition(differences, means))


def test_scipy_finds_the_same_interval_and_another_than_the_percentiles() -> None:
    differences = skewed()
    expected = bootstrap(
        (differences,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    found, plain = contrast(differences, np.zeros(60)).bca, contrast(differences, np.zeros(60)).interval
    assert found is not None
    assert found == pytest.approx(tuple(expected), abs=0.01)
    assert found.low - plain.low > 0.005
    assert found.high - plain.high > 0.01


def test_right_and_wrong_have_ties_that_are_split_in_halves() -> None:
    """Of so few discordant questions a fifth of all resamples have the mean of the sample itself."""
    differences = np.repeat([1.0, 0.0, -1.0], [3, 26, 1])
    means = resampled_means(sample_of(differences))
    assert from_counts(30, 3, 1).bca == pytest.approx(by_definition(differences, means))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_percentage_points_have_a_hundred_times_the_interval_of_shares(pairs: list[tuple[bool, bool]]) -> None:
    arms = [np.array(arm) for arm in zip(*pairs, strict=True)]
    found, percent = (contrast(*(unit * arm for arm in arms)).bca for unit in (1, 100))
    assert percent == (found and pytest.approx((100 * found.low, 100 * found.high)))


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=12))
def test_its_ends_are_means_that_were_drawn_in_order(pairs: list[tuple[float, float]]) -> None:
    rule, against = zip(*pairs, strict=True)
    found = contrast(rule, against).bca
    means = resampled_means(sample_of(np.array(rule) - np.array(against)))
    assert found is None or (found.low <= found.high and set(found) <= set(means.tolist()))


def test_a_point_where_all_questions_differ_by_the_same() -> None:  # hazards 103, 109, and 110
    for rule, against in (([0.5], [0.25]), ([1, 1], [0, 0]), ([1, 0], [1, 0])):
        assert contrast(rule, against).bca == contrast(rule, against).interval


def test_undefined_where_every_resample_lies_on_one_side() -> None:
    sample = sample_of(np.array([1.0, 0.0]))
    low, high = np.zeros(3), np.ones(3)
    assert intervals(sample, low) == (Interval(0.0, 0.0), None)
    assert intervals(sample, high) == (Interval(1.0, 1.0), None)


def test_a_skewness_past_all_correction_gives_the_outermost_resample() -> None:
    sample = sample_of(np.array([0.0] * 999 + [1.0]))
    found = intervals(sample, np.array([0.0] * 39_999 + [0.002]))[1]  # as many below the mean as 20,000 may have
    assert found is not None
    assert found.high == 0.002
    mirrored = intervals(sample_of(np.array([0.0] * 999 + [-1.0])), np.array([0.0] * 39_999 + [-0.002]))[1]
    assert mirrored is not None
    assert mirrored.low == -0.002
