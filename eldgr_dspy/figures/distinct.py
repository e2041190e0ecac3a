"""Columns of a table of questions in memory: four bytes a question, and each different value once.

Copies of a question, those with the same folded text, are one unit where independence matters.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from eldgr_dspy.splitting import folded_question

Value = TypeVar("Value", bound=Hashable)
_Other = TypeVar("_Other", bound=Hashable)

Units: TypeAlias = Mapping[tuple[Value, ...], int]
"""How many units there are of each kind. A unit is the value of a question, or those of all copies of one."""


class Column(Generic[Value]):
    """A column, one value a question; values must be hashable."""

    def __init__(self, values: Iterable[Value] = ()) -> None:
        self._numbers: dict[Value, int] = {}
        self._codes = array("i")  # of each question, the number of its value
        for value in values:
            self.append(value)

    def append(self, value: Value) -> None:
        self._codes.append(self._numbers.setdefault(value, len(self._numbers)))

    def __len__(self) -> int:
        return len(self._codes)

    def __iter__(self) -> Iterator[Value]:
        """Yield the different values, in the order in which they were first added."""
        return iter(self._numbers)

    def codes(self) -> NDArray[np.int32]:
        """Return the number of each question's value, shape (n,)."""
        return np.array(self._codes, np.int32)

    def each(self, of: Callable[[Value], Any]) -> NDArray[Any]:
        """Return what a function returns for each question, shape (n,); it is called once a different value."""
        return np.array([of(value) for value in self._numbers] or [False])[self.codes()]

    def beside(self, other: "Column[_Other]") -> "Column[tuple[Value, _Other]]":
        both = self.codes().astype(np.int64) * max(1, len(other._numbers)) + other.codes()
        keys, codes = np.unique(both, return_inverse=True)
        mine, others, pairs = [*self], [*other], Column[tuple[Value, _Other]]()
        pairs._numbers = {
            (mine[key // len(others)], others[key % len(others)]): code for code, key in enumerate(keys.tolist())
        }
        pairs._codes = array("i", codes.astype(np.int32).tobytes())
        return pairs

    def counts(self, where: NDArray[np.bool_] | slice = slice(None)) -> Counter[Value]:
        counts = np.bincount(self.codes()[where], minlength=len(self._numbers)).tolist()
        return Counter({value: n for value, n in zip(self._numbers, counts, strict=True) if n})

    def units(self, texts: NDArray[np.int64], where: NDArray[np.bool_] | slice = slice(None)) -> Counter[Any]:
        """Return how many units have the same values; `texts` has the hash of each question's text, shape (n,)."""
        values = [*self._numbers]
        groups = _groups(texts[where], self.codes()[where])
        return Counter({tuple(values[code] for code in codes): n for codes, n in groups})


def counts_by(counts: Mapping[Value, int], of: Callable[[Value], _Other]) -> Counter[_Other]:
    """Return how many questions or units have each value that a function returns for theirs."""
    totals = Counter[_Other]()
    for value, n in counts.items():
        totals[of(value)] += n
    return totals


def questions_in(units: Units[Value]) -> Counter[Value]:
    totals = Counter[Value]()
    for unit, n in units.items():
        for value in unit:
            totals[value] += n
    return totals


def text_key(question: str) -> int:
    """Return the hash of a question's folded text in this process."""
    return hash(folded_question(question))


def _groups(texts: NDArray[np.int64], codes: NDArray[np.int32]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the numbers of the values of equal texts, rising, and how many texts have these."""
    order = np.lexsort((codes, texts))
    texts, codes = texts[order], codes[order]
    starts = np.flatnonzero(np.append(True, texts[1:] != texts[:-1])[: texts.size])
    sizes = np.diff(np.append(starts, texts.size))
    for size in np.unique(sizes):
        rows = codes[starts[sizes == size][:, None] + np.arange(size)]
        for row, n in zip(*np.unique(rows, axis=0, return_counts=True), strict=True):
            yield tuple(row.tolist()), int(n)
