"""Paired statistics and power: the published table, SciPy, a naive bootstrap and all outcomes are the witnesses."""

import math
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, multinomial, norm

from eldgr_dspy import statistics
from eldgr_dspy.statistics import (
    Contrast,
    Interval,
    contrast,
    contrast_of_units,
    mcnemar,
    mcnemar_power,
    questions_needed,
)
from eldgr_dspy.statistics.power import _most_losses
from eldgr_dspy.statistics.resampling import Sample, resampled_means
from tests.case_tables import each_case
from tests.listed_contrasts import from_counts
from tests.memory import memory_of
from tests.refusing import refusal, says

scores = st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=1, max_size=30)
outcomes = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


@each_case("statistics", "published")
def test_published_contrasts_follow_from_counts(
    n: int, wins: int, losses: int, delta: float, interval: list[float], p: float
) -> None:
    rounding, grid = 0.05 if n == 30 else 0.005, 100 / n
    result = from_counts(n, wins, losses, unit=100)
    assert (result.n, result.wins, result.losses) == (n, wins, losses)
    assert result.delta == pytest.approx(delta, abs=rounding)
    assert result.p == pytest.approx(p, abs=0.00005 + 1e-12)
    assert result.interval == pytest.approx(interval, abs=grid + rounding)


@given(st.integers(0, 3_000), st.integers(0, 3_000))
@example(0, 0)
@example(2_000, 0)
@example(1_050, 950)
def test_mcnemar_is_the_binomial_test_at_one_half(wins: int, losses: int) -> None:
    expected = binomtest(wins, wins + losses, 0.5).pvalue if wins + losses else 1.0
    assert mcnemar(wins, losses) == pytest.approx(expected, rel=1e-9, abs=1e-300)
    assert mcnemar(wins, losses) == mcnemar(losses, wins)


@pytest.mark.parametrize(("wins", "losses"), [(17, 3), (20, 8), (6, 0), (1, 1), (300, 250)])
def test_mcnemar_is_that_of_statsmodels(wins: int, losses: int) -> None:
    tables: Any = import_module("statsmodels.stats.contingency_tables")
    result = tables.mcnemar([[90, wins], [losses, 10]], exact=True)
    assert mcnemar(wins, losses) == pytest.approx(result.pvalue, rel=1e-9)


def test_a_million_discordant_questions_and_a_thousand_times_as_many_neither_overflow_nor_vanish() -> None:
    # hazard 104
    assert mcnemar(500_000, 499_000) == pytest.approx(binomtest(499_000, 999_000, 0.5).pvalue, rel=1e-9)
    assert mcnemar(10**6, 10**6) == 1.0
    assert mcnemar(600, 500) == pytest.approx(binomtest(500, 1_100, 0.5).pvalue, rel=1e-9)
    wins, losses = 500_050_000, 499_950_000
    z = (wins - losses - 1) / (wins + losses) ** 0.5  # the normal approximation
    assert mcnemar(wins, losses) == pytest.approx(2 * norm.sf(z), rel=1e-6)
    assert from_counts(10**9, wins, losses).p == mcnemar(wins, losses)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30))
def test_identical_arms_differ_by_nothing(values: list[float]) -> None:  # hazard 109
    result = contrast(values, values)
    assert (result.delta, result.interval, result.wins, result.losses) == (0.0, Interval(0.0, 0.0), 0, 0)
    assert result.p == mcnemar(0, 0) == 1.0


@pytest.mark.parametrize(
    ("rule", "against", "n"), [(1, 1, 7), (0, 0, 7), (1, 0, 7), (0, 1, 7), (0.4, 0.1, 1), (0.1, 0.0, 11)]
)
def test_a_constant_difference_is_a_point_to_the_last_bit(rule: float, against: float, n: int) -> None:
    delta = rule - against  # hazards 103, and 110: one question, all right and all wrong
    result = contrast([rule] * n, [against] * n)
    assert (result.delta, result.interval) == (delta, Interval(delta, delta))


@each_case("statistics", "notes", listed=contrast, counted=from_counts)
def test_what_keeps_a_contrast_from_saying_much_is_said(result: Contrast, notes: list[str]) -> None:
    assert [*result.notes] == notes  # hazards 103, and 109


def test_equal_scores_whose_last_digit_differs_are_a_tie() -> None:
    for result in (contrast([0.1 + 0.2] * 12, [0.3] * 12), contrast_of_units({((0.1 + 0.2, 0.3),): 12})):
        assert (result.wins, result.losses, result.delta, result.p) == (0, 0, 0.0, 1.0)


@given(outcomes)
@example([(True, False)])
@example([(True, False)] * 7 + [(True, True)] * 93)  # interpolated, the lower end would be 2.98 questions
def test_counts_give_the_same_contrast_as_scores_and_its_ends_are_whole_questions(
    pairs: list[tuple[bool, bool]],
) -> None:
    rule, against = zip(*pairs, strict=True)
    wins, losses = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
    assert contrast(rule, against) == from_counts(len(pairs), wins, losses)
    percent = contrast([100 * a for a in rule], [100 * b for b in against])
    assert percent == from_counts(len(pairs), wins, losses, unit=100)
    ends = [end * len(pairs) for end in contrast(rule, against).interval]
    assert ends == pytest.approx([round(end) for end in ends], abs=1e-9)


@given(scores)
def test_the_order_of_questions_does_not_matter_and_the_interval_lies_within_the_differences(
    pairs: list[tuple[float, float]],
) -> None:
    orders = (pairs, pairs[::-1], sorted(pairs))
    assert len({contrast(*zip(*rows, strict=True)) for rows in orders}) == 1
    rule, against = (np.array(arm) for arm in zip(*pairs, strict=True))
    low, high = contrast(rule, against).interval
    assert (rule - against).min() - 1e-9 <= low <= high <= (rule - against).max() + 1e-9


GRADES = np.random.Generator(np.random.PCG64(7)).choice([0.0, 0.0, 2 / 7, 0.5, 0.8, 1.0], size=(2, 150))
"""F1 values with many zeros, ties and fractions."""


def means_of(differences: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return resampled_means(Sample.of_counts(differences, np.ones(differences.size, dtype=np.int64)))


@pytest.mark.parametrize("tail", [0.005, 0.025, 0.1, 0.25, 0.4])
def test_counting_differences_is_the_same_distribution_as_resampling_questions(tail: float) -> None:
    rule, against = GRADES
    generator = np.random.Generator(np.random.PCG64(11))
    naive = (rule - against)[generator.integers(0, rule.size, size=(20_000, rule.size))].mean(axis=1)
    ends = [np.quantile(means, [tail, 1 - tail]) for means in (means_of(rule - against), naive)]
    # Four standard errors of the difference of two such quantiles, each over 20,000 nearly normal means.
    spread = (rule - against).std() / np.sqrt(rule.size)
    tolerance = 4 * spread * np.sqrt(2 * tail * (1 - tail) / 20_000) / norm.pdf(norm.ppf(tail))
    assert np.abs(ends[0] - ends[1]).max() < tolerance


@pytest.mark.parametrize("tail", [0.025, 0.25])
def test_many_distinct_differences_are_resampled_as_their_questions_are(tail: float) -> None:
    """More than 500 are drawn in groups; the skewed ones of this sample show whether that keeps their distribution."""
    generator = np.random.Generator(np.random.PCG64(5))
    values = generator.exponential(size=1_200) ** 2
    picks = generator.integers(0, values.size, size=(10_000, values.size))
    means = values[picks].mean(axis=1)
    tolerance = 4 * means.std() * np.sqrt(tail * (1 - tail) * (1 / 10_000 + 1 / 20_000)) / norm.pdf(norm.ppf(tail))
    ends = [np.quantile(result, [tail, 1 - tail]) for result in (means_of(values), means)]
    assert np.abs(ends[0] - ends[1]).max() < tolerance


@pytest.mark.parametrize("shift", [0.0, 5_000.0])
def test_one_question_far_from_all_others_is_drawn_as_it_is(shift: float) -> None:
    """It is drawn from 0 to 3 times in all but a few resamples, and a mean is never outside of the differences."""
    values = np.append(np.random.Generator(np.random.PCG64(4)).random(2_999) / 1_000, 1_000.0) + shift
    low, high = np.array(contrast(values, np.zeros(values.size)).interval) - shift
    assert (low, high) == (pytest.approx(0.0005, abs=1e-4), pytest.approx(1.0005, abs=1e-4))


def test_groups_of_neighbours_keep_the_mean_and_the_spread_of_a_sample() -> None:
    values = np.random.Generator(np.random.PCG64(6)).normal(size=200_000)
    low, high = contrast(values, np.zeros(values.size)).interval
    assert (low + high) / 2 == pytest.approx(values.mean(), abs=2e-4)
    assert (high - low) / (2 * norm.ppf(0.975)) == pytest.approx(values.std() / np.sqrt(values.size), rel=0.06)


def resample_many_distinct_differences() -> None:
    rule = np.random.Generator(np.random.PCG64(3)).integers(0, 5_000, size=100_000) / 5_000
    low, high = contrast(rule, np.zeros(100_000)).interval
    assert low < rule.mean() < high


def test_many_distinct_differences_are_resampled_in_bounded_memory() -> None:
    peak = memory_of(resample_many_distinct_differences).peak
    assert peak < 40 * 2**20  # all counts at once are 20 MB, beside them as many products


def test_chunks_do_not_change_the_draws_and_the_same_scores_give_the_same_bytes() -> None:  # hazard 108
    """300 distinct differences need six chunks; a fresh generator that draws all at once gives the same means."""
    first, again = (np.array(contrast(*GRADES).interval).tobytes() for _ in range(2))
    assert first == again
    values = np.arange(300.0)
    counts = np.random.Generator(np.random.PCG64(2029)).multinomial(300, np.full(300, 1 / 300), size=20_000)
    expected = np.quantile((counts * values).sum(axis=1) / 300, [0.025, 0.975], method="nearest")
    assert contrast(values, np.zeros(300)).interval == pytest.approx(expected, abs=1e-9)


ADVICE = "Give unscored questions a score, or leave them out of both rules."


def test_any_ordinary_container_of_numbers_is_read_alike_but_what_lies_under_a_mask_is_not() -> None:  # hazard 106
    expected = contrast([True, False, True], [False, False, True])
    assert contrast(np.array([1, 0, 1], dtype=np.int8), (0.0, 0.0, 1.0)) == expected
    assert contrast(np.array([True, 0, 1.0], dtype=object), np.array([np.bool_(False), 0, Fraction(1)])) == expected
    column = np.ma.masked_array([1.0, 1.0, 0.0], mask=[False, True, False])
    assert refusal(lambda: contrast(column, [0, 0, 1])) == f"rule[1] must be a finite number; got None. {ADVICE}"
    assert contrast(np.ma.masked_array([1, 0], mask=False), [0, 0]) == contrast([1, 0], [0, 0])


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), "1", 1j, 10**400, 1e200], ids=repr)
def test_a_value_that_is_not_a_finite_number_is_named_by_its_position(value: Any) -> None:  # hazard 106
    # Beside text NumPy makes text of all, so the position is found in what was given.
    expected = f"against[1] must be a finite number; got {value!r:.80}. {ADVICE}"
    assert refusal(lambda: contrast([1, 0, 1], [0, value, 1])) == expected


def units(*counts: list[float]) -> Any:
    return {(tuple(outcome),) if outcome else (): count for count, *outcome in counts}


@each_case("statistics", "paired", nan=lambda: math.nan, power=pow, counts=units)
def test_what_cannot_be_compared_or_planned_is_refused(call: str, options: dict[str, Any], message: str) -> None:
    assert says(message, refusal(lambda: getattr(statistics, call)(**options)))  # hazards 103, 104, and 105


@cache
def p_value(wins: int, losses: int) -> float:
    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def exact_power(n: int, gain: float, discordant: float, alpha: float = 0.05) -> float:
    """The probability of all outcomes of n questions on which the rule leads and the test rejects."""
    rates = [(discordant + gain) / 2, (discordant - gain) / 2, 1 - discordant]
    splits = [(wins, losses) for wins in range(n + 1) for losses in range(min(wins, n - wins + 1))]
    rejections = [(wins, losses, n - wins - losses) for wins, losses in splits if p_value(wins, losses) <= alpha]
    return float(multinomial(n, rates).pmf(rejections).sum()) if rejections else 0.0


@pytest.mark.parametrize("n", [1, 5, 6, 20, 60])
@pytest.mark.parametrize(("gain", "discordant"), [(0.0, 0.3), (0.1, 0.3), (0.3, 0.3), (0.5, 0.9), (0.5, 1.0)])
def test_power_is_the_sum_over_all_outcomes(n: int, gain: float, discordant: float) -> None:
    assert mcnemar_power(n, gain, discordant) == pytest.approx(exact_power(n, gain, discordant), abs=1e-12)


def test_a_level_that_a_split_has_to_the_digit_is_reached() -> None:
    for alpha, losses in ((0.0625, 0), (0.03125, -1), (0.25, 0), (0.375, 1)):
        assert _most_losses(np.array([5]), alpha).tolist() == [losses]
        assert mcnemar_power(9, 0.5, 0.9, alpha=alpha) == pytest.approx(exact_power(9, 0.5, 0.9, alpha), abs=1e-12)


@given(st.integers(0, 400), st.sampled_from([1e-9, 0.01, 0.0125, 0.05, 0.3, 0.99]))
def test_the_test_rejects_up_to_the_narrowest_significant_lead(discordant: int, alpha: float) -> None:
    leads = (losses for losses in reversed(range((discordant + 1) // 2)))
    expected = next((losses for losses in leads if p_value(discordant - losses, losses) <= alpha), -1)
    assert _most_losses(np.array([discordant]), alpha).tolist() == [expected]


def test_many_questions_are_summed_over_as_exactly_as_few_and_a_million_as_the_normal_approximation() -> None:
    (losses,) = _most_losses(np.array([10**7]), 0.05).tolist()
    assert mcnemar(10**7 - losses, losses) <= 0.05 < mcnemar(10**7 - losses - 1, losses + 1)
    n, gain, discordant = 20_000, 0.003, 0.04
    counts = range(500, 1_200)
    powers = binom.cdf(_most_losses(np.array(counts), 0.05), counts, 0.4625)
    expected = float((binom.pmf(counts, n, discordant) * powers).sum())
    assert mcnemar_power(n, gain, discordant) == pytest.approx(expected, abs=1e-10)
    n, gain, discordant = 10**6, 0.0007, 0.06
    z = gain * (n / (discordant - gain**2)) ** 0.5
    assert mcnemar_power(n, gain, discordant) == pytest.approx(norm.sf(norm.ppf(0.975) - z), abs=0.002)


def test_with_one_question_less_the_power_is_low_and_where_few_are_discordant_with_any_fewer() -> None:
    plans = [(0.02, 0.06, 0.8, 0.05), (0.1, 0.3, 0.9, 0.0125), (0.05, 0.05, 0.5, 0.05), (0.2, 1.0, 0.8, 0.05)]
    for gain, discordant, power, alpha in plans:
        n = questions_needed(gain, discordant, power=power, alpha=alpha)
        less = mcnemar_power(n - 1, gain, discordant, alpha=alpha)
        assert less < power <= mcnemar_power(n, gain, discordant, alpha=alpha)
    n = questions_needed(0.1, 0.2)
    assert n == 168
    assert [one for one in range(1, n + 1) if mcnemar_power(one, 0.1, 0.2) >= 0.8] == [n]
    assert mcnemar_power(n, 0.1, 0.2) == pytest.approx(0.8, abs=0.01)
