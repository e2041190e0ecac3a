"""Check the inputs of statistics: a value that is not a number is refused by name and position, never read as 0."""

import operator
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eldgr_dspy.errors import ArgumentError

LARGEST = 1e100
"""The largest score; sums of larger ones could overflow."""

MOST = 10**12
"""The largest number of questions; shares of a few among more would lose digits."""

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def whole(name: str, value: int, least: int) -> int:
    """Return an integer of at least `least`, by the name of its argument."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise ArgumentError(f"{name} must be a whole number, {least} or more; got {value!r}.") from error
    if number < least:
        raise ArgumentError(f"{name} must be a whole number, {least} or more; got {value!r}.")
    return number


def questions(name: str, value: int, least: int, most: int = MOST) -> int:
    """Return a count of questions from `least` to `most`, by the name of its argument."""
    n = whole(name, value, least)
    if n > most:
        raise ArgumentError(f"{name} must be at most {most:,} questions; got {value!r:.80}.")
    return n


def inside(name: str, value: float, remedy: str) -> float:
    """Return a number strictly between 0 and 1."""
    if not (is_score(value) and 0.0 < value < 1.0):
        raise ArgumentError(f"{name} must be strictly between 0 and 1; got {value!r}. {remedy}.")
    return float(value)


def positive(name: str, value: float, remedy: str) -> float:
    """Return a number above 0 that is at most the largest score."""
    if not (is_score(value) and value > 0.0):
        raise ArgumentError(f"{name} must be a positive number; got {value!r}. {remedy}.")
    return float(value)


def split(n: int, wins: int, losses: int) -> tuple[int, int, int]:
    """Return the counts of a paired comparison of right and wrong: all questions, wins and losses among them."""
    n, wins, losses = questions("n", n, 1), questions("wins", wins, 0), questions("losses", losses, 0)
    if wins + losses > n:
        raise ArgumentError(
            f"wins={wins!r} and losses={losses!r} are {wins + losses} questions, more than n={n!r}; "
            "give n as the number of all questions, ties included."
        )
    return n, wins, losses


def both(rule: ArrayLike, against: ArrayLike) -> tuple[Floats, Floats]:
    """Return the scores of both arms, one float a question each, at least one."""
    left, right = scores("rule", rule), scores("against", against)
    if left.size != right.size:
        raise ArgumentError(
            f"rule has {left.size} values and against has {right.size}; both need one value for each of the same "
            "questions, in the same order. Leave a question out of both or of neither."
        )
    if left.size == 0:
        raise ArgumentError("rule and against are empty; a paired statistic needs at least one question.")
    return left, right


def differences(rule: ArrayLike, against: ArrayLike) -> Floats:
    """Return the paired differences, shape (n,), n at least 1."""
    left, right = both(rule, against)
    return left - right


def scores(name: str, values: ArrayLike) -> Floats:
    """Return one float a question, shape (n,)."""
    try:
        array: NDArray[Any] = np.asarray(values)
    except ValueError as error:
        raise ArgumentError(f"{name} must be one number a question, shape (n,), but is ragged.") from error
    if array.ndim != 1:
        raise ArgumentError(f"{name} must be one number a question, shape (n,), but has shape {array.shape}.")
    masked = np.flatnonzero(np.ma.getmask(values))  # NumPy would read the values under the mask
    if masked.size:
        raise _not_a_score(name, int(masked[0]), np.ma.masked)
    if array.dtype.kind not in "biuf":
        array = _as_numbers(name, values)
    floats = array.astype(np.float64)
    wrong = np.flatnonzero(~(np.abs(floats) <= LARGEST))  # so that NaN counts as wrong
    if wrong.size:
        raise _not_a_score(name, int(wrong[0]), float(floats[wrong[0]]))
    return floats


def _as_numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    # Element by element, because NumPy would read None as NaN and the text '1' as a number.
    objects = np.asarray(values, dtype=object)
    for position, value in enumerate(objects):
        if not is_score(value):
            raise _not_a_score(name, position, value)
    return objects


def is_score(value: object) -> bool:
    """Whether a value is a finite number; booleans count."""
    if not isinstance(value, Real | np.bool_):
        return False
    try:
        return abs(float(value)) <= LARGEST
    except OverflowError:  # an integer or a fraction that no float can hold
        return False


def _not_a_score(name: str, position: int, value: object) -> ArgumentError:
    return ArgumentError(
        f"{name}[{position}] must be a finite number; got {value!r}. Give unscored questions a score, "
        "or leave them out of both rules."
    )
