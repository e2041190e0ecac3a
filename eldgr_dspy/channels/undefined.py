"""Scores that may be undefined: a score that could not be measured is `Undefined`, with the reason, never a number.

`Scores` is a column of scores, one a step. In JSON the undefined ones are null with a reason.
NaN and infinity are refused on input, so the rest of the code need not check for them.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from numbers import Real
from typing import NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from eldgr_dspy.errors import ArgumentError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Single precision can put a probability this far outside its range; anything further out is a mistake.
_SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class Undefined:
    """A score that could not be measured, and why. It has no truth value and no order, and arithmetic on it fails."""

    reason: str

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self!r} is neither true nor false; ask isinstance(score, Undefined) first.")


Score = float | Undefined
Values = Iterable[object]
"""Scores as input: floats, integers, numpy numbers and `Undefined`, one a step, or a `Scores`."""


@dataclass(frozen=True, slots=True, eq=False)
class Scores(Sequence[Score]):
    """One score a step. `scores[i]` is a float or `Undefined`.

    Attributes:
        numbers: Shape (n,); 0 where undefined, without a meaning.
        defined: Shape (n,); which of them are measured.
        reasons: Step -> why it is undefined; its keys are exactly the steps that are not defined.
    """

    numbers: Floats
    defined: Flags
    reasons: Mapping[int, str] = field(default_factory=dict[int, str])

    @classmethod
    def of(cls, values: Values, name: str = "scores", low: float = -math.inf, high: float = math.inf) -> "Scores":
        """Return a column of the values given, each checked.

        Args:
            values: One a step.
            name: Their name in an error.
            low: The smallest value allowed; a value that is smaller only by rounding counts as `low`.
            high: The largest value allowed, with the same tolerance.

        Raises:
            ArgumentError: A value is NaN, infinite, out of range, or not a number.
        """
        reasons: Mapping[int, str] = values.reasons if isinstance(values, Scores) else {}
        if isinstance(values, Scores):
            numbers, defined = values.numbers, values.defined
        elif isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "fiu":
            numbers, defined = values.astype(np.float64), np.ones(len(values), dtype=np.bool_)
        else:
            items = list(values)
            reasons = {at: item.reason for at, item in enumerate(items) if isinstance(item, Undefined)}
            numbers = np.array([0.0 if at in reasons else _number(item, name, at) for at, item in enumerate(items)])
            defined = np.array([at not in reasons for at in range(len(items))], dtype=np.bool_)
        inside = np.isfinite(numbers) & (numbers >= low - _SLACK) & (numbers <= high + _SLACK)
        if (wrong := np.flatnonzero(defined & ~inside)).size:
            refuse(name, int(wrong[0]), float(numbers[wrong[0]]), low, high)
        return cls(np.where(defined, np.clip(numbers, low, high), 0.0), defined, reasons)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Score: ...
    @overload
    def __getitem__(self, index: slice) -> "Scores": ...
    def __getitem__(self, index: int | slice) -> "Score | Scores":
        if isinstance(index, slice):
            places = range(len(self))[index]
            reasons = {at: self.reasons[place] for at, place in enumerate(places) if place in self.reasons}
            return Scores(self.numbers[index], self.defined[index], reasons)
        place = range(len(self))[index]
        return float(self.numbers[place]) if self.defined[place] else Undefined(self.reasons[place])

    def __iter__(self) -> Iterator[Score]:
        return (self[at] for at in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scores) and list(self) == list(other)

    def mean(self) -> Score:
        """The mean of the measured scores; undefined without any."""
        if not self.defined.any():
            return Undefined("no step was measured" if len(self) else "there is no step")
        return float(self.numbers[self.defined].mean())


def each(compute: Callable[..., Floats], *columns: Scores) -> Scores:
    """Apply an elementwise function to columns; a step is undefined if any of them is, with the first one's reason."""
    same_length(*columns)
    defined = np.logical_and.reduce([column.defined for column in columns])
    numbers = np.zeros(len(defined))
    numbers[defined] = compute(*(column.numbers[defined] for column in columns))
    return Scores(numbers, defined, {at: why for one in reversed(columns) for at, why in one.reasons.items()})


def same_length(*columns: Sized) -> int:
    """Return the length that all columns have; raise an `ArgumentError` if they differ."""
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        raise ArgumentError(
            f"The columns have {sorted(lengths)} entries; expected one a step. Give Undefined(reason) "
            "for a step without a score."
        )
    return lengths.pop()


def refuse(name: str, at: int, value: object, low: float = -math.inf, high: float = math.inf) -> NoReturn:
    """Raise the error for a value that is not a score."""
    demand = "a finite number" if math.isinf(low) else f"a number from {low:g} to {high:g}"
    demand = f"{low:g} or more" if math.isinf(high) and not math.isinf(low) else demand
    raise ArgumentError(
        f"{name}[{at}] must be {demand}; got {value!r}. If a score could not be measured, give Undefined(reason)."
    )


def _number(value: object, name: str, at: int) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        refuse(name, at, value)
    return float(value)
