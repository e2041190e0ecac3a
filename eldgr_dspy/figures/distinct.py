"""Count questions by their marks: what a figure depends on. Copies of a question are counted together, as one unit.

A run has many questions and few distinct marks. So twelve bytes are kept for each question, and the marks once.
"""

from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from eldgr_dspy.splitting import folded_question

Marks = TypeVar("Marks", bound=Hashable)

Units: TypeAlias = Mapping[tuple[Marks, ...], int]
"""How many units there are of each kind. A unit is the marks of a question, or of all copies of one."""

_CHUNK = 1 << 16  # questions that are looked at together, so that memory does not grow with those without a copy


class Distinct(Generic[Marks]):
    """Questions by their marks, taken one by one. Copies are questions with the same folded text."""

    def __init__(self) -> None:
        self._texts = array("q")  # the hash of each text
        self._codes = array("i")  # the number of its marks
        self._numbers: dict[Marks, int] = {}

    def add(self, question: str, marks: Marks) -> None:
        """Take the text of a question and its marks."""
        self._texts.append(hash(folded_question(question)))
        self._codes.append(self._numbers.setdefault(marks, len(self._numbers)))

    def absorb(self, other: "Distinct[Marks]") -> None:
        """Take other questions, none of which is a copy of one that is here.

        They may have been taken in another process, where the same text has another hash. So a copy would not be found.
        """
        numbers = [self._numbers.setdefault(marks, len(self._numbers)) for marks in other._numbers]
        self._texts.extend(other._texts)
        self._codes.extend(numbers[code] for code in other._codes)

    def units(self) -> Counter[tuple[Marks, ...]]:
        """Return how many units have the same marks, those of the first questions first."""
        texts, codes, known = np.asarray(self._texts), np.asarray(self._codes), [*self._numbers]
        repeated, single = _repeated(texts), np.zeros(len(known), np.int64)
        copies: list[NDArray[np.int64]] = []
        for start in range(0, texts.size, _CHUNK):
            part, coded = texts[start : start + _CHUNK], codes[start : start + _CHUNK]
            is_copy = _among(part, repeated)
            single += np.bincount(coded[~is_copy], minlength=len(known))
            copies.append(np.stack([part[is_copy], coded[is_copy]]))
        units = Counter[tuple[Marks, ...]]()
        units.update({(marks,): int(n) for marks, n in zip(known, single, strict=True) if n})
        for same, n in _groups(np.concatenate(copies, axis=1)) if repeated.size else ():
            units[tuple(known[code] for code in same)] += n
        return units


def by_question(units: Units[Marks]) -> Counter[Marks]:
    """Return how many questions have the same marks."""
    counts = Counter[Marks]()
    for unit, n in units.items():
        for marks in unit:
            counts[marks] += n
    return counts


def _repeated(texts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The hashes that several questions have, rising."""
    rising = np.sort(texts)
    return np.unique(rising[1:][rising[1:] == rising[:-1]])


def _among(values: NDArray[np.int64], rising: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not rising.size:
        return np.zeros(values.size, bool)
    places = np.minimum(np.searchsorted(rising, values), rising.size - 1)
    found: NDArray[np.bool_] = rising[places] == values
    return found


def _groups(copies: NDArray[np.int64]) -> Iterator[tuple[list[int], int]]:
    """Yield the numbers of the marks of copies, rising, and how many texts have these."""
    texts, codes = copies[:, np.lexsort((copies[1], copies[0]))]
    starts = np.flatnonzero(np.append(True, texts[1:] != texts[:-1]))
    sizes = np.diff(np.append(starts, texts.size))
    for size in np.unique(sizes):
        rows = codes[starts[sizes == size][:, None] + np.arange(size)]
        for row, n in zip(*np.unique(rows, axis=0, return_counts=True), strict=True):
            yield row.tolist(), int(n)
