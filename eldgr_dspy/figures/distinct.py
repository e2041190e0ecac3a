"""Count questions by their marks: what a figure depends on. Copies of a question are counted together, as one unit.

A run has many questions and few distinct marks. So sixteen bytes are kept for each question, and the marks once.
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


class Distinct(Generic[Marks]):
    """Questions by their marks, taken one by one. Copies are questions with the same folded text."""

    def __init__(self) -> None:
        self._texts, self._codes = array("q"), array("q")  # of each question: its hash, and the number of its marks
        self._numbers: dict[Marks, int] = {}

    def add(self, question: str, marks: Marks) -> None:
        """Take the text of a question and its marks."""
        self._texts.append(hash(folded_question(question)))
        self._codes.append(self._numbers.setdefault(marks, len(self._numbers)))

    def units(self) -> Counter[tuple[Marks, ...]]:
        """Return how many units have the same marks: those of one question first, in the order of the questions."""
        counts, known = Counter[tuple[int, ...]](), [*self._numbers]
        for codes, n in _groups(np.array(self._texts, np.int64), np.array(self._codes, np.int64)):
            counts[codes] += n
        rising = sorted(counts.items(), key=lambda counted: (len(counted[0]), counted[0]))
        return Counter({tuple(known[code] for code in codes): n for codes, n in rising})


def by_question(units: Units[Marks]) -> Counter[Marks]:
    """Return how many questions have the same marks."""
    counts = Counter[Marks]()
    for unit, n in units.items():
        for marks in unit:
            counts[marks] += n
    return counts


def _groups(texts: NDArray[np.int64], codes: NDArray[np.int64]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the numbers of the marks of equal texts, rising, and how many texts have these."""
    order = np.lexsort((codes, texts))
    texts, codes = texts[order], codes[order]
    starts = np.flatnonzero(np.append(True, texts[1:] != texts[:-1])[: texts.size])
    sizes = np.diff(np.append(starts, texts.size))
    for size in np.unique(sizes):
        rows = codes[starts[sizes == size][:, None] + np.arange(size)]
        for row, n in zip(*np.unique(rows, axis=0, return_counts=True), strict=True):
            yield tuple(row.tolist()), int(n)
