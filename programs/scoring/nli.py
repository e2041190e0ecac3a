"""Pairs for an NLI model: each is read once, in one call, and not again as long as it is remembered."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from eldgr_dspy.channels.protocols import NLI
from eldgr_dspy.channels.undefined import Floats
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.cross_encoder import DEFAULT, CrossEncoderNLI
from eldgr_dspy.programs.scoring.nli_pairs import probabilities_of
from eldgr_dspy.programs.scoring.pair_reader import check_pairs


class CachedNLI:
    """Remembers what an NLI model reads, NaN included; what was used longest ago is dropped first.

    Threads may share it. A thread that asks waits for another's call, so that no pair is read twice. A deep copy is the
    same object. A pickle, as `save_program=True` makes one, has the reader and the size; it starts empty.

    Attributes:
        nli: The reader.
        read: How many pairs it was given.
    """

    def __init__(self, nli: NLI, entries: int = 1_000_000) -> None:
        """Remember up to `entries` pairs, 1 or more, about 250 bytes each, by a hash of reader and texts."""
        if entries < 1:
            raise ArgumentError(f"entries must be at least 1; got {entries}. Without a memory, use the reader itself.")
        self.nli, self.read = nli, 0
        self._entries = entries
        self._rows = OrderedDict[bytes, bytes]()
        self._alone = Lock()

    @property
    def name(self) -> str:
        """The name of the reader."""
        return self.nli.name

    def __len__(self) -> int:
        return len(self._rows)

    def __deepcopy__(self, memo: dict[int, Any]) -> "CachedNLI":
        return self  # a copy of a program that holds it shares the same memory

    def __reduce__(self) -> tuple[Any, ...]:
        return CachedNLI, (self.nli, self._entries)  # a file keeps the program, not what it has read

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return the probabilities of (premise, hypothesis) pairs; new ones are asked in one call, each once.

        Returns:
            Shape (n, 3): contradiction, neutral, entailment. A row of NaN is a pair that could not be read.

        Raises:
            ArgumentError: The reader returned another shape, or a pair is not two texts.
        """
        name = self.nli.name
        texts = [repr((name, *pair)).encode("ascii", "backslashreplace") for pair in check_pairs(pairs)]
        keys = [hashlib.blake2b(text, digest_size=16).digest() for text in texts]
        with self._alone:
            rows = {key: self._rows[key] for key in keys if key in self._rows}
            fresh = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in rows}
            if fresh:
                values = probabilities_of(self.nli, [*fresh.values()])
                rows |= zip(fresh, map(np.ndarray.tobytes, values), strict=True)
                self.read += len(fresh)
            for key in keys:
                self._rows[key] = rows[key]
                self._rows.move_to_end(key)
            while len(self._rows) > self._entries:
                self._rows.popitem(last=False)
        return np.frombuffer(b"".join(rows[key] for key in keys)).reshape(-1, 3).copy()


def load_nli(model: str | Path = DEFAULT, *, entries: int = 1_000_000, **settings: Any) -> CachedNLI:
    """Load an NLI model as `CrossEncoderNLI` does, and remember what it reads.

    Args:
        model: A name on the Hugging Face Hub, or a folder.
        entries: How many pairs are remembered.
        settings: Those of `CrossEncoderNLI`, with its errors.
    """
    return CachedNLI(CrossEncoderNLI(model, **settings), entries)
