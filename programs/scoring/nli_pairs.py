"""The pairs of premise and hypothesis for a group of texts: each is read once, and all of them in one call."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eldgr_dspy.channels.protocols import NLI
from eldgr_dspy.channels.undefined import Floats, Undefined
from eldgr_dspy.errors import ArgumentError, result_of
from eldgr_dspy.programs.scoring.pair_reader import Pair


@dataclass(frozen=True, slots=True)
class Row:
    """A hypothesis, and the premises that it is compared with one by one."""

    hypothesis: str
    premises: tuple[str, ...]

    @property
    def pairs(self) -> list[Pair]:
        """A pair for each premise, in order."""
        return [(premise, self.hypothesis) for premise in self.premises]


MaybeRow = Row | Undefined  # `Undefined` says why nothing can be read


@dataclass(frozen=True, slots=True)
class Readings:
    """What an NLI model read: shape (n, 3), a row of NaN where it gave no number; and the row of each pair."""

    probabilities: Floats
    places: Mapping[Pair, int]

    def of(self, row: MaybeRow) -> Floats | Undefined:
        """Return the probabilities of a row, shape (premises, 3); undefined if the model gave no number for one."""
        if isinstance(row, Undefined):
            return row
        values: Floats = self.probabilities[[self.places[pair] for pair in row.pairs]]
        gaps = int(np.isnan(values).any(axis=1).sum())
        return Undefined(f"the NLI model gave no number for {gaps} of {len(values)} pairs") if gaps else values

    def nothing_of(self, *rows: MaybeRow) -> bool:
        """Return whether there were pairs to read in these rows, and the model gave no number for any."""
        places = [self.places[pair] for row in rows if isinstance(row, Row) for pair in row.pairs]
        return bool(places) and bool(np.isnan(self.probabilities[places]).any(axis=1).all())


def read(nli: NLI, rows: Iterable[MaybeRow]) -> Readings:
    """Return what a model reads in the pairs of all rows: each pair once, in one call; without pairs, no call.

    The longest pairs are first, so that a model that reads in batches pads little; equal ones go by their texts.
    """
    distinct = {pair for row in rows if isinstance(row, Row) for pair in row.pairs}
    pairs = sorted(distinct, key=lambda pair: (-len(pair[0]) - len(pair[1]), pair))
    probabilities = probabilities_of(nli, pairs) if pairs else np.zeros((0, 3))
    return Readings(probabilities, {pair: place for place, pair in enumerate(pairs)})


def probabilities_of(nli: NLI, pairs: Sequence[Pair]) -> Floats:
    """Return what a model reads in pairs, shape (pairs, 3); raise an `ArgumentError` if it returns another shape."""
    output = result_of(nli.probabilities(pairs), f"{nli.name}.probabilities", "give a model that is not")
    values = np.asarray(output, dtype=np.float64)
    if values.shape != (len(pairs), 3):
        raise ArgumentError(
            f"The NLI model {nli.name!r} returned the shape {values.shape} for {len(pairs)} pairs; expected "
            f"({len(pairs)}, 3): contradiction, neutral and entailment of each pair."
        )
    return values
