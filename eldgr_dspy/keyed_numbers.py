"""Numbers under 64-bit keys: more of them than should be in memory, looked at a part at a time.

The last 65,536 are in memory, those before them in a temporary file that ends with the process.
"""

import tempfile
import weakref
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eldgr_dspy.system import naming

Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Keys and their numbers, in the order in which they were added."""

_IN_MEMORY, _PAIR = 1 << 16, 16  # pairs, and the bytes of one
_MOST_PARTS = 64  # each part reads all pairs once


class KeyedNumbers:
    """Pairs of a key and a number, which are only added to. They can be pickled."""

    def __init__(self) -> None:
        self._keys, self._numbers = array("q"), array("q")
        self._written = 0  # pairs in the file
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        return self._written + len(self._keys)

    def add(self, key: int, number: int) -> None:
        """Add a pair."""
        self._keys.append(key)
        self._numbers.append(number)
        if len(self._keys) >= _IN_MEMORY:
            self._write()

    def extend(self, pairs: Pairs) -> None:
        """Add many pairs."""
        for key, number in zip(*(part.tolist() for part in pairs), strict=True):
            self.add(key, number)

    def chunks(self) -> Iterator[Pairs]:
        """Yield all pairs in order, 65,536 at a time."""
        for start in range(0, self._written, _IN_MEMORY):
            keys, numbers = np.frombuffer(self._read(start), np.int64).reshape(2, -1)
            yield keys, numbers
        yield np.array(self._keys, np.int64), np.array(self._numbers, np.int64)

    def parts(self) -> Iterator[Pairs]:
        """Yield all pairs in parts of about 65,536, at most 64 of them. Pairs with the same key are in one part."""
        n = min(_MOST_PARTS, 1 + len(self) // _IN_MEMORY)
        for part in range(n):
            mine = ((keys % n == part, keys, numbers) for keys, numbers in self.chunks())
            picked = [np.stack([keys[here], numbers[here]]) for here, keys, numbers in mine]
            keys, numbers = np.concatenate(picked, axis=1)
            yield keys, numbers

    def _write(self) -> None:
        with naming(Path(tempfile.gettempdir())):
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with this object
                weakref.finalize(self, self._file.close)
            self._file.seek(self._written * _PAIR)
            self._file.write(self._keys.tobytes() + self._numbers.tobytes())
            self._file.flush()
        self._written += len(self._keys)
        del self._keys[:], self._numbers[:]

    def _read(self, start: int) -> bytes:
        assert self._file is not None
        with naming(Path(tempfile.gettempdir())):
            self._file.seek(start * _PAIR)
            return self._file.read(_IN_MEMORY * _PAIR)

    def __getstate__(self) -> list[Pairs]:
        return [*self.chunks()]

    def __setstate__(self, chunks: list[Pairs]) -> None:
        KeyedNumbers.__init__(self)
        for chunk in chunks:
            self.extend(chunk)
