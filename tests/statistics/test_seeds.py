"""Seeds and questions taken apart: sums by hand, and tables drawn with known variances, are the witnesses."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import t

from eldgr_dspy.statistics import Interval, SeedVariance, seed_variance
from tests.refusing import refused

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


def simulated(seeds: float, questions: float, rest: float, n: int) -> list[SeedVariance]:
    """What is found in tables of 4 seeds and 30 questions whose components have these standard deviations."""
    generator = np.random.Generator(np.random.PCG64(8))
    tables = (
        seeds * generator.normal(size=(n, 4, 1))
        + questions * generator.normal(size=(n, 1, 30))
        + rest * generator.normal(size=(n, 4, 30))
    )
    return [seed_variance(table) for table in tables]


def test_the_components_are_unbiased() -> None:
    result = simulated(0.3, 0.5, 1.0, n=1_500)
    for name, true in (("seeds", 0.09), ("questions", 0.25), ("rest", 1.0)):
        values = np.array([getattr(one, name) for one in result])
        assert abs(values.mean() - true) < 4 * values.std() / np.sqrt(values.size)


@pytest.mark.parametrize("components", [(0.3, 0.5, 1.0), (0.0, 0.5, 1.0), (0.5, 0.0, 1.0)], ids=str)
def test_the_interval_covers_the_mean_of_all_seeds_and_questions(components: tuple[float, float, float]) -> None:
    result = simulated(*components, n=1_000)
    assert np.mean([one.interval.low <= 0.0 <= one.interval.high for one in result]) > 0.93


def test_seeds_that_agree_add_nothing() -> None:  # hazards 107, and 109
    row = [1.0, 0.0, 0.0, 1.0, 1.0]
    result = seed_variance([row, row, row])
    assert result.rest == pytest.approx(0, abs=1e-30)
    assert result.seeds == pytest.approx(0, abs=1e-30)
    assert result.questions == pytest.approx(np.var(row, ddof=1))
    assert result.standard_error == pytest.approx(np.std(row, ddof=1) / np.sqrt(5))


def test_identical_arms_have_a_point() -> None:  # hazard 109
    result = seed_variance(np.zeros((3, 4)))
    assert (result.mean, result.standard_error, result.interval) == (0.0, 0.0, Interval(0.0, 0.0))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1, 0]], "scores must be one row a seed, of two or more seeds"),
        ([[1], [0]], "scores has rows of 1 to 1 questions; give every seed the same two or more"),
        ([], "scores must be one row a seed, of two or more seeds"),
        ([[1, 0], [1, 0, 1]], "scores has rows of 2 to 3 questions; give every seed the same two or more"),
        ([1, 0], "scores[0] must be one number a question, shape (n,); got 1."),
        (0.5, "scores must be one row a seed, of two or more seeds"),
        ([[1, 0], [1, None]], "scores[1][1] must be a finite number; got None. Give unscored questions a score"),
        ([[1, 0], ["1", 0]], "scores[1][0] must be a finite number; got '1'. Give unscored questions a score"),
    ],
    ids=["one seed", "one question", "nothing", "ragged", "no table", "a number", "none", "text"],
)
def test_what_is_not_a_table_is_refused(table: Any, message: str) -> None:  # hazards 103, 105, and 106
    assert refused(lambda: seed_variance(table)).startswith(message)
