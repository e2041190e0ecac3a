"""Whether documents support steps: one row of f_NLI a step, the input of `fact`, `triang`, `min` and conflation.

f_NLI is -1 for contradiction, 0 for neutral and 1 for entailment (section 3 of the paper). It is made here from three
probabilities, by one of three readings. This module does not call an NLI model or read text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eldgr_dspy.channels.undefined import Flags, Floats, Scores, Undefined, refuse
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.questions import require_one_of
from eldgr_dspy.words import READINGS, Reading

ENTAILS = 0.5  # from this f_NLI on, a document entails (ours; under `label` any threshold in (0, 1] is the same)

Row = Sequence[float] | Floats | Undefined
"""f_NLI of one step under each document retrieved for it; empty without documents, undefined without a corpus."""

# How far probabilities may be from a sum of 1: half precision keeps three digits.
_SUM_SLACK = 5e-3


def f_nli(probabilities: ArrayLike, reading: Reading = "label") -> Floats:
    """Return f_NLI, shape (n,), of n pairs.

    `label` is the paper's letter: -1, 0 or 1 for the likeliest label, neutral where two are equally likely.
    `expected` is p(entailment) - p(contradiction). `settled` is the same, but 0 where neutral is the likeliest label.

    Args:
        probabilities: Shape (n, 3): contradiction, neutral, entailment, in this order.
        reading: One of the three; the last two are ours.

    Raises:
        ArgumentError: A row is not a distribution (NaN, negative, not summing to 1), or `reading` is unknown.
    """
    require_one_of("reading", reading, READINGS)
    contradiction, neutral, entailment = _distributions(probabilities).T
    entails: Flags = (entailment > neutral) & (entailment > contradiction)
    contradicts: Flags = (contradiction > neutral) & (contradiction > entailment)
    labels: Floats = entails.astype(np.float64) - contradicts.astype(np.float64)
    if reading == "label":
        return labels
    expected: Floats = entailment - contradiction
    if reading == "settled":
        expected[labels == 0] = 0.0
    return expected


def _distributions(probabilities: ArrayLike) -> Floats:
    rows = np.asarray(probabilities, dtype=np.float64)
    if rows.size == 0:
        return np.zeros((0, 3))
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise ArgumentError(
            f"probabilities must have shape (n, 3): contradiction, neutral, entailment; got shape {rows.shape}."
        )
    fits = np.isfinite(rows).all(axis=1) & (rows >= 0).all(axis=1) & (abs(rows.sum(axis=1) - 1) <= _SUM_SLACK)
    if not fits.all():
        at = int(np.flatnonzero(~fits)[0])
        raise ArgumentError(
            f"probabilities[{at}] is {rows[at].tolist()}, but three probabilities that sum to 1 were expected; give "
            "the softmax of the model's logits, and leave out a pair whose logits are NaN."
        )
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class Grounding:
    """The rows of n steps, padded to K documents. A step without a corpus is undefined; one without a hit is neutral.

    Attributes:
        f: Shape (n, K), in [-1, 1]; 0 without a document.
        retrieved: Shape (n, K); whether there is a document.
        neutral: Shape (n, K); whether the document is neutral.
        reasons: Step -> why it is undefined.
        numbers: Shape (n, K); the number of each document: its place in the row, unless `renumber` gave others.
    """

    f: Floats
    retrieved: Flags
    neutral: Flags
    reasons: dict[int, str]
    numbers: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Grounding":
        """Return the grounding of rows of f_NLI, one a step; a document is neutral if its f is 0.

        Raises:
            ArgumentError: A row is not a list, or a value is not in [-1, 1].
        """
        rows_in = list(rows)
        reasons = {at: row.reason for at, row in enumerate(rows_in) if isinstance(row, Undefined)}
        numbers = [np.zeros(0) if isinstance(row, Undefined) else np.asarray(row, dtype=np.float64) for row in rows_in]
        for at, row in enumerate(numbers):
            if row.ndim != 1:
                raise ArgumentError(f"rows[{at}] must be a list of numbers, one a document; got {rows_in[at]!r:.80}.")
            if (wrong := np.flatnonzero(~((row >= -1) & (row <= 1)))).size:
                refuse(f"rows[{at}]", int(wrong[0]), float(row[wrong[0]]), -1, 1)
        return cls._pad(numbers, [row == 0 for row in numbers], reasons)

    @classmethod
    def from_probabilities(cls, rows: Iterable[ArrayLike | Undefined], reading: Reading = "label") -> "Grounding":
        """Return the grounding of probabilities under a reading of f_NLI.

        A document is neutral if neutral is its label, whatever the reading.

        Args:
            rows: For each step an array of shape (documents, 3), as `f_nli` takes it, or `Undefined`.
            reading: As `f_nli` takes it.

        Raises:
            ArgumentError: As `f_nli`.
        """
        distributions = [row if isinstance(row, Undefined) else _distributions(row) for row in rows]
        reasons = {at: row.reason for at, row in enumerate(distributions) if isinstance(row, Undefined)}
        arrays = [np.zeros((0, 3)) if isinstance(row, Undefined) else row for row in distributions]
        ends = np.cumsum([len(row) for row in arrays])[:-1]
        flat = np.concatenate(arrays) if arrays else np.zeros((0, 3))
        f, neutral = np.split(f_nli(flat, reading), ends), np.split(f_nli(flat) == 0, ends)
        return cls._pad(f if arrays else [], neutral if arrays else [], reasons)

    @classmethod
    def _pad(cls, f: Sequence[Floats], neutral: Sequence[NDArray[Any]], reasons: dict[int, str]) -> "Grounding":
        lengths = np.array([len(row) for row in f], dtype=np.int64)
        retrieved: Flags = np.arange(lengths.max(initial=0)) < lengths[:, None]
        values, neutrals = np.zeros(retrieved.shape), np.zeros(retrieved.shape, dtype=np.bool_)
        if f:
            values[retrieved], neutrals[retrieved] = np.concatenate(f), np.concatenate(neutral)
        places = np.broadcast_to(np.arange(retrieved.shape[1]), retrieved.shape)
        return cls(values, retrieved, neutrals, reasons, places)

    def renumber(self, documents: Sequence[Sequence[int]]) -> "Grounding":
        """Return the same rows with documents numbered as in the corpus and not by their places.

        Args:
            documents: For each step the numbers of its documents, in the order of its row; empty where it is undefined.

        Raises:
            ArgumentError: A step has more numbers than documents, or fewer.
        """
        counts = self.retrieved.sum(axis=1).tolist()
        if (lengths := [len(row) for row in documents]) != counts:
            raise ArgumentError(
                f"documents has {lengths} numbers a step, but the rows have {counts} documents; give a number for each."
            )
        numbers = np.zeros(self.retrieved.shape, dtype=np.int64)
        numbers[self.retrieved] = [number for row in documents for number in row]
        return replace(self, numbers=numbers)

    def __len__(self) -> int:
        return len(self.f)

    def best(self) -> Scores:
        """max_d f, in [-1, 1]: 0 if nothing was retrieved; `fact` uses it."""
        return self._column(self.f.max(axis=1, initial=-np.inf, where=self.retrieved))

    def least(self) -> Scores:
        """min_d f, in [-1, 1] (ours): one neutral document hides contradictions from `best`, but not from this."""
        return self._column(self.f.min(axis=1, initial=np.inf, where=self.retrieved))

    def best_of_those_that_speak(self) -> Scores:
        """max_d f over the documents that are not neutral (ours); undefined without such a document."""
        best = self.f.max(axis=1, initial=-np.inf, where=self.retrieved & ~self.neutral)
        silent = {int(at): "every document is neutral" for at in np.flatnonzero(np.isinf(best))}
        return self._column(best, silent)

    def deciding(self) -> list[int | None]:
        """The number of the document whose f is `best`; the earliest of several; None if nothing was retrieved."""
        return self._numbers_of(np.where(self.retrieved, self.f, -np.inf), self.retrieved)

    def contradicting(self) -> list[int | None]:
        """The number of the document that contradicts the step most; None if no f is below 0."""
        return self._numbers_of(np.where(self.retrieved, -self.f, -np.inf), self.retrieved & (self.f < 0))

    def entailing(self, threshold: float = ENTAILS) -> list[tuple[int, ...] | Undefined]:
        """The numbers of the documents that entail each step: f at or above the threshold."""
        entails = self.retrieved & (self.f >= threshold)
        rows = [tuple(row[mask].tolist()) for row, mask in zip(self.numbers, entails, strict=True)]
        return [Undefined(self.reasons[at]) if at in self.reasons else row for at, row in enumerate(rows)]

    def _numbers_of(self, order: Floats, mask: Flags) -> list[int | None]:
        if not self.f.size:
            return [None] * len(self)
        numbers = np.take_along_axis(self.numbers, order.argmax(axis=1)[:, None], axis=1)[:, 0].tolist()
        return [number if any(row) else None for number, row in zip(numbers, mask.tolist(), strict=True)]

    def _column(self, extremes: Floats, silent: dict[int, str] | None = None) -> Scores:
        """Return a column; an extreme of no document is infinite, and counts as neutral."""
        reasons = {**(silent or {}), **self.reasons}
        defined = np.ones(len(extremes), dtype=np.bool_)
        defined[list(reasons)] = False
        return Scores(np.where(defined & np.isfinite(extremes), extremes, 0.0), defined, reasons)
