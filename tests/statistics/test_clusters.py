"""Clusters of outcomes are one unit each, and seeds and questions are taken apart: sums and draws are the witnesses."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import norm, t

from eldgr_dspy.statistics import Interval, SeedVariance, contrast, contrast_of_units, seed_variance
from tests.case_tables import each_case
from tests.listed_contrasts import by_cluster
from tests.refusing import refusal, says

outcomes = st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), min_size=1, max_size=30)


@given(outcomes)
@example([(0, True, False), (1, False, False), (0, False, False)])
def test_each_cluster_counts_once_with_the_mean_of_its_outcomes_in_any_order_and_by_any_name(
    rows: list[tuple[int, bool, bool]],
) -> None:
    clusters, rule, against = zip(*rows, strict=True)
    of = {one: [row for row in rows if row[0] == one] for one in clusters}
    means = [sum(a - b for _, a, b in result) / len(result) for result in of.values()]
    assert by_cluster(rule, against, clusters) == contrast(means, [0] * len(means))
    assert by_cluster(rule, against, range(len(rows))) == contrast(rule, against)
    texts: list[tuple[Any, bool, bool]] = [(f"q{9 - one}", a, b) for one, a, b in rows]
    orders: list[list[tuple[Any, bool, bool]]] = [texts, [*rows], [*rows[::-1]], [*sorted(rows)]]
    assert len({by_cluster(a, b, c) for c, a, b in (zip(*one, strict=True) for one in orders)}) == 1


def test_the_same_outcomes_five_times_say_no_more_than_once_and_rounding_alone_is_a_tie() -> None:  # hazard 107
    tie = by_cluster([0.1, 0.2, 0.3, 1], [0.3, 0.3, 0.0, 0], ["a", "a", "a", "b"])
    assert (tie.wins, tie.losses, tie.n) == (1, 0, 2)
    generator = np.random.Generator(np.random.PCG64(1))
    rule, against = generator.random((2, 80)) < 0.5
    once, blind = contrast(rule, against), contrast(np.tile(rule, 5), np.tile(against, 5))
    assert by_cluster(np.tile(rule, 5), np.tile(against, 5), list(range(80)) * 5) == once
    assert (blind.interval.high - blind.interval.low) * 2 < once.interval.high - once.interval.low


def test_it_is_the_bootstrap_of_whole_clusters() -> None:
    generator = np.random.Generator(np.random.PCG64(2))
    differences = generator.normal(size=(60, 1)) + generator.normal(size=(60, 4))
    draws = differences[generator.integers(0, 60, size=(20_000, 60))].mean(axis=(1, 2))
    clusters = [f"q{number}" for number in np.repeat(np.arange(60), 4)]
    result = by_cluster(differences.ravel(), np.zeros(240), clusters)
    tolerance = 4 * draws.std() * np.sqrt(2 * 0.025 * 0.975 / 20_000) / norm.pdf(norm.ppf(0.025))
    assert np.abs(np.array(result.interval) - np.quantile(draws, [0.025, 0.975])).max() < tolerance
    assert result.delta == pytest.approx(differences.mean(), abs=1e-12)


grades = st.sampled_from((0.0, 100 / 3, 40.0, 200 / 3, 100.0))


@given(st.lists(st.tuples(st.integers(0, 9), grades, grades), min_size=1, max_size=30))
@example([(0, 100.0, 0.0), (1, 100.0, 0.0), (2, 0.0, 100.0)])
def test_counted_units_have_the_contrast_of_the_listed_outcomes(rows: list[tuple[int, float, float]]) -> None:
    clusters, rule, against = zip(*rows, strict=True)
    outcomes_of = defaultdict[int, list[tuple[float, float]]](list)
    for cluster, *outcome in rows:
        outcomes_of[cluster].append((outcome[0], outcome[1]))
    units = Counter(map(tuple, outcomes_of.values()))
    result = contrast(rule, against) if len(outcomes_of) == len(rows) else by_cluster(rule, against, clusters)
    assert contrast_of_units(units) == result
    assert contrast_of_units(dict(reversed(units.items()))) == result
    by_one: Mapping[tuple[tuple[float, float], ...], int] = Counter(((a, b),) for _, a, b in rows)
    assert contrast_of_units(by_one) == contrast(rule, against)


TABLE = [[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]]


def by_hand(table: list[list[float]]) -> tuple[float, float, float]:
    """The mean squares of seeds, questions and the rest, as sums over the cells."""
    seeds, questions = len(table), len(table[0])
    mean = sum(map(sum, table)) / (seeds * questions)
    rows = [sum(row) / questions for row in table]
    columns = [sum(row[q] for row in table) / seeds for q in range(questions)]
    rest = sum((table[s][q] - rows[s] - columns[q] + mean) ** 2 for s in range(seeds) for q in range(questions))
    return (
        questions * sum((row - mean) ** 2 for row in rows) / (seeds - 1),
        seeds * sum((column - mean) ** 2 for column in columns) / (questions - 1),
        rest / ((seeds - 1) * (questions - 1)),
    )


@given(st.integers(2, 4).flatmap(lambda n: st.lists(st.lists(st.floats(-9, 9), min_size=n, max_size=n), min_size=2)))
@example([[0.0, 0.0], [0.0, 2.326905492824265e-91]])  # its variance has a square of 0
def test_the_components_are_those_of_the_mean_squares(table: list[list[float]]) -> None:
    of_seeds, of_questions, rest = by_hand(table)
    result = seed_variance(table)
    assert (result.n_seeds, result.n_questions) == (len(table), len(table[0]))
    assert result.rest == pytest.approx(rest, abs=1e-9)
    assert result.seeds == pytest.approx((of_seeds - rest) / len(table[0]), abs=1e-9)
    assert result.questions == pytest.approx((of_questions - rest) / len(table), abs=1e-9)
    low, high = result.interval
    assert low <= result.mean <= high


def test_the_error_of_the_mean_is_that_of_another_draw_of_both() -> None:
    of_seeds, of_questions, rest = by_hand(TABLE)
    assert of_questions > rest > of_seeds
    result = seed_variance(TABLE)
    assert result.seeds < 0
    assert result.standard_error == pytest.approx(np.sqrt(of_questions / 12))
    half = result.standard_error * t.ppf(0.975, 3)
    assert result.interval == pytest.approx((result.mean - half, result.mean + half))


def simulate(seeds: float, questions: float, rest: float, n: int) -> list[SeedVariance]:
    normal = np.random.Generator(np.random.PCG64(8)).normal
    tables = seeds * normal(size=(n, 4, 1)) + questions * normal(size=(n, 1, 30)) + rest * normal(size=(n, 4, 30))
    return [seed_variance(table) for table in tables]


def test_the_components_are_unbiased() -> None:
    result = simulate(0.3, 0.5, 1.0, n=1_500)
    for name, true in (("seeds", 0.09), ("questions", 0.25), ("rest", 1.0)):
        values = np.array([getattr(one, name) for one in result])
        assert abs(values.mean() - true) < 4 * values.std() / np.sqrt(values.size)


@pytest.mark.parametrize("components", [(0.3, 0.5, 1.0), (0.0, 0.5, 1.0), (0.5, 0.0, 1.0)], ids=str)
def test_the_interval_covers_the_mean_of_all_seeds_and_questions(components: tuple[float, float, float]) -> None:
    assert np.mean([one.interval.low <= 0.0 <= one.interval.high for one in simulate(*components, n=1_000)]) > 0.93


def test_seeds_that_agree_add_nothing_and_identical_arms_have_a_point() -> None:  # hazards 107, and 109
    row = [1.0, 0.0, 0.0, 1.0, 1.0]
    result = seed_variance([row, row, row])
    assert result.rest == pytest.approx(0, abs=1e-30)
    assert result.seeds == pytest.approx(0, abs=1e-30)
    assert result.questions == pytest.approx(np.var(row, ddof=1))
    assert result.standard_error == pytest.approx(np.std(row, ddof=1) / np.sqrt(5))
    point = seed_variance(np.zeros((3, 4)))
    assert (point.mean, point.standard_error, point.interval) == (0.0, 0.0, Interval(0.0, 0.0))


@each_case("statistics", "of seeds")
def test_what_is_not_a_table_is_refused(scores: Any, message: str) -> None:  # hazards 103, 105, and 106
    assert says(message, refusal(lambda: seed_variance(scores)))
