"""Paired statistics over questions: percentile bootstrap of a mean difference and the two-sided exact McNemar test.

They quantify which questions happened to be in the evaluation set, and nothing else: not the spread over training
seeds, not the noise of sampling candidates. One value a question is expected; where a question was sampled several
times, average first, or the interval is too narrow. Nothing here knows rules or pools; figures stay in the units of
the inputs.

    >>> contrast_from_counts(500, 17, 3, unit=100).p
    0.002576828002929687
"""

import math
import operator
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc

from eldgr_dspy.errors import ArgumentError

RESAMPLES = 20_000
LEVEL = 0.95
SEED = 2029

# Scores beyond this are no scores, and their sums could overflow.
_LARGEST = 1e100
# Counts held at a time while resampling: 2**20 of eight bytes each, whatever the number of questions.
_CELLS = 2**20

_Floats = NDArray[np.float64]
_Counts = NDArray[np.int64]


class Interval(NamedTuple):
    """The two ends of an interval, `low <= high`, in the units of what it is an interval of."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Contrast:
    """One rule against another on the same questions.

    Attributes:
        wins: questions where the rule scores higher than what it is set against.
        losses: questions where it scores lower.
        n: all questions, ties included.
        delta: the mean difference, rule minus the other, in the units of the inputs.
        interval: the percentile bootstrap interval of `delta`.
        p: the two-sided exact McNemar probability of wins and losses; for graded scores this is the exact sign test.
    """

    wins: int
    losses: int
    n: int
    delta: float
    interval: Interval
    p: float


def mcnemar(wins: int, losses: int) -> float:
    """Return the two-sided exact McNemar probability of a split at least as uneven as this one (method.md section 7).

    Concordant questions do not enter. Without a discordant question there is nothing to reject: 1.0, not undefined.
    A probability below the smallest float, as for 2,000 wins and no loss, is 0.0.

    Args:
        wins: questions that only the first rule has right.
        losses: questions that only the second rule has right.

    Raises:
        ArgumentError: a count is negative or not an integer.
    """
    wins, losses = _whole("wins", wins, 0), _whole("losses", losses, 0)
    fewer, discordant = min(wins, losses), wins + losses
    if discordant == 0:
        return 1.0
    # The lower binomial tail at one half is an incomplete beta: nothing is summed, so a million overflows nothing.
    return min(1.0, 2.0 * float(betainc(discordant - fewer, fewer + 1, 0.5)))


def paired_bootstrap(
    rule: ArrayLike, against: ArrayLike, *, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = SEED
) -> Interval:
    """Return the paired percentile bootstrap interval of the mean difference, rule minus against.

    Questions are the unit of resampling. The mean of a resample depends only on how often each distinct difference
    occurs in it, and those counts are multinomial: drawing them is the same distribution as drawing n question indices,
    and for right/wrong scores three numbers replace n. The same inputs, in any order of questions, and the same seed
    give the same bytes.

    Args:
        rule: one finite number a question, shape (n,): 0/1, booleans, 0-100 or F1.
        against: the same questions in the same order under the other rule, shape (n,).
        resamples: how many resamples, at least 1.
        level: coverage, strictly between 0 and 1.
        seed: a non-negative integer.

    Raises:
        ArgumentError: no question, unequal lengths, a value that is no finite number (its position is named), or an
            option out of range.
    """
    options = _Options.checked(resamples, level, seed)
    return _interval(*_distinct(_differences(rule, against)), options)


def contrast(
    rule: ArrayLike, against: ArrayLike, *, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = SEED
) -> Contrast:
    """Return wins, losses, mean difference, its interval and the exact p of one rule against another.

    Arguments, units and errors are those of `paired_bootstrap`: without a question there is no contrast, but an error.
    """
    options = _Options.checked(resamples, level, seed)
    return _contrast(*_distinct(_differences(rule, against)), options)


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
    """Return the contrast of two right/wrong rules from its counts alone, which is all that a published table gives.

    It equals `contrast` on any scores with these counts, to the byte.

    Args:
        n: all questions, at least 1.
        wins: questions that only the rule has right.
        losses: questions that only the other has right; wins + losses is at most n.
        unit: what one question is worth: 1 for shares, 100 for percentage points.
        resamples: how many resamples, at least 1.
        level: coverage, strictly between 0 and 1.
        seed: a non-negative integer.

    Raises:
        ArgumentError: a count is negative, not an integer, or wins + losses exceed n; or an
            option out of range.
    """
    options = _Options.checked(resamples, level, seed)
    n, wins, losses = _whole("n", n, 1), _whole("wins", wins, 0), _whole("losses", losses, 0)
    if wins + losses > n:
        raise ArgumentError(
            f"wins={wins!r} and losses={losses!r} are {wins + losses} questions, more than n={n!r}; "
            "give n as the number of all questions, ties included."
        )
    if not 0.0 < unit <= _LARGEST:
        raise ArgumentError(f"unit={unit!r} must be a positive number; give 1 for shares or 100 for percentage points.")
    counts = np.array([losses, n - wins - losses, wins], dtype=np.int64)
    return _contrast(np.array([-unit, 0.0, unit])[counts > 0], counts[counts > 0], options)


class _Options(NamedTuple):
    """The checked settings of a bootstrap."""

    resamples: int
    level: float
    seed: int

    @classmethod
    def checked(cls, resamples: int, level: float, seed: int) -> "_Options":
        if not 0.0 < level < 1.0:
            raise ArgumentError(f"level={level!r} must lie strictly between 0 and 1; give 0.95 for a 95% interval.")
        return cls(_whole("resamples", resamples, 1), level, _whole("seed", seed, 0))


def _whole(name: str, value: int, least: int) -> int:
    try:
        whole = operator.index(value)
    except TypeError as error:
        raise ArgumentError(f"{name}={value!r} must be an integer; give a whole number, {least} or more.") from error
    if whole < least:
        raise ArgumentError(f"{name}={value!r} must be {least} or more; give a whole number, {least} or more.")
    return whole


def _differences(rule: ArrayLike, against: ArrayLike) -> _Floats:
    left, right = _scores("rule", rule), _scores("against", against)
    if left.size != right.size:
        raise ArgumentError(
            f"rule has {left.size} values and against has {right.size}; both need one value for each of the same "
            "questions, in the same order. Leave a question out of both or of neither."
        )
    if left.size == 0:
        raise ArgumentError("rule and against are empty; a paired statistic needs at least one question.")
    return left - right


def _scores(name: str, values: ArrayLike) -> _Floats:
    """Return one float a question; what is no finite number is refused by name, never read as 0."""
    try:
        array: NDArray[Any] = np.asarray(values)
    except ValueError as error:
        raise ArgumentError(f"{name} must be one number a question, shape (n,), but is ragged.") from error
    if array.ndim != 1:
        raise ArgumentError(f"{name} must be one number a question, shape (n,), but has shape {array.shape}.")
    if array.dtype.kind not in "biuf":
        array = _as_numbers(name, values)
    scores = array.astype(np.float64)
    wrong = np.flatnonzero(~(np.abs(scores) <= _LARGEST))  # so that NaN counts as wrong
    if wrong.size:
        raise _not_a_score(name, int(wrong[0]), float(scores[wrong[0]]))
    return scores


def _as_numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    # Element by element, because NumPy would read None as NaN and the text '1' as a number.
    objects = np.asarray(values, dtype=object)
    for position, value in enumerate(objects):
        if not _is_score(value):
            raise _not_a_score(name, position, value)
    return objects


def _is_score(value: object) -> bool:
    if not isinstance(value, Real | np.bool_):
        return False
    try:
        return abs(float(value)) <= _LARGEST
    except OverflowError:  # an integer or a fraction that no float can hold
        return False


def _not_a_score(name: str, position: int, value: object) -> ArgumentError:
    return ArgumentError(
        f"{name}[{position}]={value!r} is not a finite number; decide what an unscored question counts as, "
        "or leave it out of both rules."
    )


def _distinct(differences: _Floats) -> tuple[_Floats, _Counts]:
    values, counts = np.unique(differences, return_counts=True)
    return values, counts.astype(np.int64)


def _contrast(values: _Floats, counts: _Counts, options: _Options) -> Contrast:
    wins, losses, n = int(counts[values > 0].sum()), int(counts[values < 0].sum()), int(counts.sum())
    # A single distinct difference is its own mean; multiplying and dividing by n could miss it by a rounding.
    delta = float(values[0]) if values.size == 1 else math.fsum(values * counts) / n
    return Contrast(wins, losses, n, delta, _interval(values, counts, options), mcnemar(wins, losses))


def _interval(values: _Floats, counts: _Counts, options: _Options) -> Interval:
    if values.size == 1:
        return Interval(float(values[0]), float(values[0]))
    tail = (1.0 - options.level) / 2.0
    # The nearest mean that was drawn: interpolating would give ends that no set of n questions can have.
    low, high = np.quantile(_resampled_means(values, counts, options), [tail, 1.0 - tail], method="nearest")
    return Interval(float(low), float(high))


def _resampled_means(values: _Floats, counts: _Counts, options: _Options) -> _Floats:
    """Return one mean a resample, shape (resamples,), holding at most `_CELLS` counts at a time."""
    generator = np.random.Generator(np.random.PCG64(options.seed))
    n, rows = int(counts.sum()), max(1, _CELLS // values.size)
    means = np.empty(options.resamples)
    for start in range(0, options.resamples, rows):
        chunk = means[start : start + rows]
        drawn = generator.multinomial(n, counts / n, size=chunk.size)
        # A plain sum, not a BLAS product: its order, and so its last bit, does not depend on the number of threads.
        chunk[:] = (drawn * values).sum(axis=1) / n
    return means
