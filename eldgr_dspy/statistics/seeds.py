"""Split the spread of runs of several seeds on the same questions into that of seeds and that of questions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics.number_checks import Floats
from eldgr_dspy.statistics.number_checks import scores as scores_of
from eldgr_dspy.statistics.resampling import LEVEL, Interval


@dataclass(frozen=True, slots=True)
class SeedVariance:
    """The parts of the spread of a table of scores, seeds by questions.

    Attributes:
        n_seeds: how many seeds. n_questions: how many questions.
        mean: the mean of all scores.
        seeds: the variance between seeds, in squared units. questions: between questions. rest: the remaining
            noise of one score. The first two are unbiased and may be negative, which means that none was measured.
        standard_error: of the mean, for another draw of both seeds and questions.
        interval: the mean's 95 % t interval with that error, by Satterthwaite's degrees of freedom.
    """

    n_seeds: int
    n_questions: int
    mean: float
    seeds: float
    questions: float
    rest: float
    standard_error: float
    interval: Interval


def seed_variance(scores: ArrayLike) -> SeedVariance:
    """Split the variance of scores into seeds, questions and the rest: two-way analysis of variance, random effects.

    For a contrast give the table of differences of the two rules. With few seeds the interval is wide, as it
    should be. Source: the moment estimators of Searle, Casella and McCulloch (1992), one score a cell.

    Args:
        scores: one finite number for each seed and question, shape (seeds, questions), at least (2, 2).

    Raises:
        ArgumentError: another shape, fewer than two seeds or questions, or a value that is not a finite number.
    """
    from scipy.special import stdtrit

    table = _table(scores)
    n_seeds, n_questions = table.shape
    mean = float(table.mean())
    by_seed, by_question = table.mean(axis=1) - mean, table.mean(axis=0) - mean
    rest = table - mean - by_seed[:, None] - by_question[None, :]
    degrees = (n_seeds - 1, n_questions - 1, (n_seeds - 1) * (n_questions - 1))
    sums = (n_questions * (by_seed**2).sum(), n_seeds * (by_question**2).sum(), (rest**2).sum())
    squares = [float(total) / freedom for total, freedom in zip(sums, degrees, strict=True)]
    error, freedom = _error(squares, degrees, table.size)
    half = error * float(stdtrit(freedom, (1.0 + LEVEL) / 2.0))
    return SeedVariance(
        n_seeds=n_seeds,
        n_questions=n_questions,
        mean=mean,
        seeds=(squares[0] - squares[2]) / n_questions,
        questions=(squares[1] - squares[2]) / n_seeds,
        rest=squares[2],
        standard_error=error,
        interval=Interval(mean - half, mean + half),
    )


def _error(squares: list[float], degrees: tuple[int, int, int], size: int) -> tuple[float, float]:
    """The standard error of the mean and its degrees of freedom; a component below 0 counts as 0."""
    rest, of_rest = squares[2], degrees[2]
    above = [(square, freedom) for square, freedom in zip(squares, degrees, strict=True) if square > rest]
    terms = [*above, ((1 - len(above)) * rest, of_rest)]  # each square that counts has the rest in it once
    if (total := sum(square for square, _ in terms)) == 0.0:
        return 0.0, 1.0
    # Shares of the total, because the square of a tiny variance is 0.
    return (total / size) ** 0.5, 1.0 / sum((square / total) ** 2 / freedom for square, freedom in terms)


def _table(rows: ArrayLike) -> Floats:
    if not isinstance(rows, Sequence | np.ndarray) or len(rows) < 2:
        raise ArgumentError("scores must be one row a seed, of two or more seeds: one says nothing about others.")
    table = [scores_of(f"scores[{seed}]", row) for seed, row in enumerate(rows)]
    sizes = {row.size for row in table}
    if len(sizes) > 1 or min(sizes) < 2:
        raise ArgumentError(
            f"scores has rows of {min(sizes)} to {max(sizes)} questions; give every seed the same two or more "
            "questions, in the same order."
        )
    return np.stack(table)
