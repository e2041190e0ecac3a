"""Check the inputs of statistics: a value that is not a number is refused by name and position, never read as 0."""

import operator
from collections.abc import Sequence
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eldgr_dspy.errors import ArgumentError

LARGEST = 1e100  # score; sums of larger ones could overflow
MOST = 10**12  # questions; shares of a few among more would lose digits

_EXAMPLES = {
    "alpha": "0.05 for a 5% chance of a false alarm",
    "level": "0.95 for 95%",
    "power": "0.8 for four chances in five",
    "share": "0.02 for 2% of the questions",
}

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def whole(name: str, value: int, least: int, most: int = MOST) -> int:
    """Return an integer from `least` to `most`, by the name of its argument."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        raise ArgumentError(f"{name} must be a whole number from {least} to {most:,}; got {value!r:.80}.")
    return number


def inside(name: str, value: float) -> float:
    """Return a number strictly between 0 and 1, by the name of its argument."""
    if not (is_score(value) and 0.0 < value < 1.0):
        raise ArgumentError(f"{name} must be strictly between 0 and 1; got {value!r}. Give {_EXAMPLES[name]}.")
    return float(value)


def scores(name: str, values: ArrayLike) -> Floats:
    """Return one float a question, shape (n,)."""
    items = values.tolist() if isinstance(values, np.ndarray) else values
    if not isinstance(items, Sequence | range) or isinstance(items, str):
        raise ArgumentError(f"{name} must be one number a question, shape (n,); got {values!r:.80}.")
    for position, value in enumerate(items):  # one by one, because NumPy would read None as NaN and '1' as a number
        if not is_score(value):
            raise ArgumentError(
                f"{name}[{position}] must be a finite number; got {value!r:.80}. Give unscored questions a score, or "
                "leave them out of both rules."
            )
    return np.array(items, dtype=np.float64)


def is_score(value: object) -> bool:
    """Whether a value is a finite number; booleans count."""
    if not isinstance(value, Real | np.bool_):
        return False
    try:
        return abs(float(value)) <= LARGEST
    except OverflowError:  # an integer or a fraction that no float can hold
        return False
