"""What one reading of a pool's rows collects: its content hash, and what a later reading is checked by."""

import hashlib
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from eldgr_dspy.errors import PoolError
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.words import Task

BLOCK, DIGEST = 16, 8  # rows of a block, and the bytes of its digest that are kept, to see whether it was changed
_MOST_TWINS = 1_000


class Census:
    """What one reading of a pool's rows collects: half a byte of digests a row, and the hash of its id."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.task: Task | None = None  # before the first row
        self.missing = 0  # candidates without an answer
        self._content = hashlib.sha256()
        self._block, self._digests = list[bytes](), bytearray()
        self._ids = array("q")  # the hash of each row's id

    def add(self, where: str, row: Row) -> None:
        """Take the next row. Raises `PoolError` if its task differs from that of the rows before."""
        if self.task not in (None, row.task):
            raise PoolError(
                f"{self._path}, {where}, id {row.id!r}: task is {row.task!r} and was {self.task!r} before; "
                "a pool has one task: split the file."
            )
        self.task = row.task
        digest = row.digest()
        self._content.update(digest)
        self._block.append(digest)
        if len(self._block) == BLOCK:
            self._digests += digest_of(self._block)
            self._block.clear()
        self._ids.append(hash(row.id))
        self.missing += sum(1 for candidate in row.candidates if not (candidate.answer or "").strip())

    def __len__(self) -> int:
        return len(self._ids)

    def sha256(self) -> str:
        return self._content.hexdigest()

    def digests(self) -> bytes:
        return bytes(self._digests) + (digest_of(self._block) if self._block else b"")

    def taking(self, rows: Iterable[Row]) -> Iterator[Row]:
        for number, row in enumerate(rows, start=1):
            self.add(f"row {number}", row)
            yield row

    def twins(self) -> list[tuple[int, int]]:
        """Return the indices of two rows whose ids have the same hash: the first pairs, a thousand of them at most."""
        ids = np.frombuffer(self._ids, np.int64)
        order = np.argsort(ids, kind="stable")
        after = np.flatnonzero(ids[order[1:]] == ids[order[:-1]]) + 1
        after = after[np.argsort(order[after])][:_MOST_TWINS]
        return [*zip(order[after - 1].tolist(), order[after].tolist(), strict=True)]

    def refuse_twins(self) -> None:
        """Raise `PoolError` if two ids have the same hash. For two different ids this is practically impossible."""
        for first, second in self.twins()[:1]:
            raise PoolError(f"{self._path}: rows {first + 1} and {second + 1} have the same id; make ids unique.")


def digest_of(digests: Iterable[bytes]) -> bytes:
    return hashlib.sha256(b"".join(digests)).digest()[:DIGEST]
