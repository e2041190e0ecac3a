"""Several outcomes of one question are one unit: averages and a bootstrap of whole clusters are the witnesses."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import norm

from eldgr_dspy.statistics import contrast, contrast_of_units
from tests.listed_contrasts import by_cluster
from tests.refusing import refused

outcomes = st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), min_size=1, max_size=30)


@given(outcomes)
def test_each_cluster_counts_once_with_the_mean_of_its_outcomes(rows: list[tuple[int, bool, bool]]) -> None:
    clusters, rule, against = zip(*rows, strict=True)
    of = {one: [row for row in rows if row[0] == one] for one in clusters}
    means = [sum(a - b for _, a, b in result) / len(result) for result in of.values()]
    assert by_cluster(rule, against, clusters) == contrast(means, [0] * len(means))


@given(outcomes)
def test_one_outcome_a_question_is_the_plain_contrast(rows: list[tuple[int, bool, bool]]) -> None:
    _, rule, against = zip(*rows, strict=True)
    assert by_cluster(rule, against, range(len(rows))) == contrast(rule, against)


@given(outcomes)
@example([(0, True, False), (1, False, False), (0, False, False)])
def test_neither_the_order_of_outcomes_nor_the_names_of_clusters_matter(rows: list[tuple[int, bool, bool]]) -> None:
    texts: list[tuple[Any, bool, bool]] = [(f"q{9 - one}", a, b) for one, a, b in rows]
    orders: list[list[tuple[Any, bool, bool]]] = [texts, [*rows], [*rows[::-1]], [*sorted(rows)]]
    results = {by_cluster(a, b, c) for c, a, b in (zip(*one, strict=True) for one in orders)}
    assert len(results) == 1


def test_the_same_outcomes_five_times_say_no_more_than_once() -> None:  # hazard 107
    generator = np.random.Generator(np.random.PCG64(1))
    rule, against = generator.random((2, 80)) < 0.5
    once, blind = contrast(rule, against), contrast(np.tile(rule, 5), np.tile(against, 5))
    assert by_cluster(np.tile(rule, 5), np.tile(against, 5), list(range(80)) * 5) == once
    assert (blind.interval.high - blind.interval.low) * 2 < once.interval.high - once.interval.low


def test_it_is_the_bootstrap_of_whole_clusters() -> None:
    generator = np.random.Generator(np.random.PCG64(2))
    differences = generator.normal(size=(60, 1)) + generator.normal(size=(60, 4))
    drawn = differences[generator.integers(0, 60, size=(20_000, 60))].mean(axis=(1, 2))
    clusters = [f"q{number}" for number in np.repeat(np.arange(60), 4)]
    result = by_cluster(differences.ravel(), np.zeros(240), clusters)
    tolerance = 4 * drawn.std() * np.sqrt(2 * 0.025 * 0.975 / 20_000) / norm.pdf(norm.ppf(0.025))
    assert np.abs(np.array(result.interval) - np.quantile(drawn, [0.025, 0.975])).max() < tolerance
    assert result.delta == pytest.approx(differences.mean(), abs=1e-12)


def test_sums_that_differ_by_rounding_alone_are_a_tie() -> None:
    result = by_cluster([0.1, 0.2, 0.3, 1], [0.3, 0.3, 0.0, 0], ["a", "a", "a", "b"])
    assert (result.wins, result.losses, result.n) == (1, 0, 2)


graded = st.sampled_from((0.0, 100 / 3, 40.0, 200 / 3, 100.0))


@given(st.lists(st.tuples(st.integers(0, 9), graded, graded), min_size=1, max_size=30))
@example([(0, 100.0, 0.0), (1, 100.0, 0.0), (2, 0.0, 100.0)])
def test_counted_units_have_the_contrast_of_the_listed_outcomes(rows: list[tuple[int, float, float]]) -> None:
    clusters, rule, against = zip(*rows, strict=True)
    outcomes_of = defaultdict[int, list[tuple[float, float]]](list)
    for cluster, *outcome in rows:
        outcomes_of[cluster].append((outcome[0], outcome[1]))
    units = Counter(map(tuple, outcomes_of.values()))
    listed = contrast(rule, against) if len(outcomes_of) == len(rows) else by_cluster(rule, against, clusters)
    assert contrast_of_units(units) == listed
    assert contrast_of_units(dict(reversed(units.items()))) == listed
    by_one: Mapping[tuple[tuple[float, float], ...], int] = Counter(((a, b),) for _, a, b in rows)
    assert contrast_of_units(by_one) == contrast(rule, against)


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ({}, "rule and against are empty; a paired statistic needs at least one question."),
        ({(): 1}, "units must have an outcome each; got an empty one. Leave it out."),
        ({((1.0, 0.0),): -1}, "the count of a unit must be a whole number from 0 to 1,000,000,000,000; got -1."),
    ],
)
def test_units_that_say_nothing_are_refused(units: Any, message: str) -> None:
    assert refused(lambda: contrast_of_units(units)) == message
