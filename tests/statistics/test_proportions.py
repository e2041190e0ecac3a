"""The exact upper bound on a share: it is SciPy's and statsmodels', and holds as often as it says."""

import math
from importlib import import_module
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics import proportion_upper_bound

proportion: Any = import_module("statsmodels.stats.proportion")

counts = st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@given(counts, st.sampled_from((0.5, 0.9, 0.95, 0.999)))
@example((1, 0), 0.95)
@example((1, 1), 0.95)
def test_it_is_the_bound_of_scipy_and_of_statsmodels(of: tuple[int, int], level: float) -> None:
    n, count = of
    result = proportion_upper_bound(n, count, level=level)
    exact = stats.binomtest(count, n, alternative="less").proportion_ci(level, "exact").high
    _, other = proportion.proportion_confint(count, n, alpha=2 * (1 - level), method="beta")
    assert result == pytest.approx(exact, abs=1e-9)
    assert result == pytest.approx(1.0 if count == n else other, abs=1e-9)


@pytest.mark.parametrize("n", [1, 5, 20, 60])
@pytest.mark.parametrize("p", [0.001, 0.05, 0.3, 0.5, 0.9, 0.999])
def test_it_is_below_the_probability_in_at_most_one_sample_of_twenty(n: int, p: float) -> None:
    below = [count for count in range(n + 1) if proportion_upper_bound(n, count) < p]
    assert stats.binom.pmf(below, n, p).sum() <= 0.05 + 1e-12


@given(counts)
def test_more_events_raise_it_and_more_questions_without_one_lower_it(of: tuple[int, int]) -> None:
    n, count = of
    bound = proportion_upper_bound(n, count)
    assert count / n < bound <= 1 or count == n
    assert proportion_upper_bound(n + 1, count + 1) >= bound >= proportion_upper_bound(n + 1, count)


def test_without_an_event_it_is_about_three_in_n() -> None:
    assert proportion_upper_bound(100, 0) == pytest.approx(1 - 0.05 ** (1 / 100))
    assert proportion_upper_bound(10**12, 0) == pytest.approx(3e-12, rel=0.01)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ((0, 0), "n must be a whole number from 1 to 1,000,000,000,000; got 0"),
        ((10**13, 0), "n must be a whole number from 1 to 1,000,000,000,000; got"),
        ((5, -1), "count must be a whole number from 0 to 5; got -1"),
        ((5, 2.5), "count must be a whole number from 0 to 5; got 2.5"),
        ((5, 6), "count must be a whole number from 0 to 5; got 6"),
    ],
)
def test_impossible_counts_are_refused(given_: tuple[Any, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{message}"):
        proportion_upper_bound(*given_)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, math.nan, None])
def test_a_level_out_of_range_is_refused(level: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^level must be strictly between 0 and 1"):
        proportion_upper_bound(5, 1, level=level)
