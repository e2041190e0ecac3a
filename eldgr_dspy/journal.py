"""The journal: every paid consultation, as JSON lines that are only ever appended.

It is the state of a run. A line is written in one piece, and flushed to the disk before a consultation that took a call
counts as done; a last line that a crash has torn is dropped with a warning when the journal is opened again. It also
holds the settings of the run, the pools (by content hash) and the roles (by fingerprint), so that a resumed run must
keep them; and the pairs of answers that could not be compared in time, because the clock decided that.
"""

import os
import threading
import warnings
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from eldgr_dspy.base.file_limits import MAX_DOCUMENT_VALUES, MAX_LINE, RAISE, n_values, require_few, scale
from eldgr_dspy.base.files import GZIP, append_whole, require_text, sync_folder, whole_lines
from eldgr_dspy.base.system import naming, open_file
from eldgr_dspy.errors import JournalError, PoolError
from eldgr_dspy.formats.journal_lines import (
    consultation_of,
    head_of,
    parse,
    record_of,
    require_types,
    seal,
    without_credentials,
)
from eldgr_dspy.rule.consultations import Consultation, Key
from eldgr_dspy.rule.named_judges import Label
from eldgr_dspy.showing import display_text

_BLOCK, _LINE = 2**18, 2**12  # bytes that are read at once, of all lines and of one
_LONGEST = 4 * MAX_LINE  # the longest line that is read: a row fits, with its escapes


class TornLineWarning(UserWarning):
    """The last line of a journal was incomplete and has been dropped; its consultation will be asked again."""


class Places:
    """Where consultations are in a file: sixteen bytes for each, by the hash of its key; the last one for each key."""

    def __init__(self) -> None:
        self._keys, self._places = array("q"), array("q")

    def add(self, key: Key, place: int) -> None:
        """Take a consultation."""
        self._keys.append(hash(key))
        self._places.append(place)

    def end(self) -> list[int]:
        """Sort what was taken; from then on it can be found. Return the places that a later one of the key replaced."""
        keys = np.asarray(self._keys)
        order = np.argsort(keys, kind="stable")
        rising = keys[order]
        last = np.append(rising[1:] != rising[:-1], True)[: rising.size]
        places = np.asarray(self._places)[order]
        self._keys, self._places = array("q", rising[last].tobytes()), array("q", places[last].tobytes())
        return [*map(int, places[~last])]

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, key: Key) -> int | None:
        """Return where the consultation is; None if there is none."""
        code = hash(key)
        at = bisect_left(self._keys, code)
        return self._places[at] if at < len(self._keys) and self._keys[at] == code else None


@dataclass(slots=True)
class _Index:
    """An index of a journal's lines: heads in full, with how many values they hold; consultations by their place."""

    heads: list[dict[str, Any]] = field(default_factory=list)
    n_values: int = 0
    places: Places = field(default_factory=Places)
    failures: dict[Key, int] = field(default_factory=dict)
    calls: dict[tuple[Label, str | None], str] = field(default_factory=dict)


class Journal:
    """A journal open for appending. Thread-safe. One process at a time: the run directory's lock sees to that."""

    def __init__(self, path: Path) -> None:
        """Open or create the journal at `path`, drop a torn last line with a `TornLineWarning`, and index the rest."""
        if path.is_symlink():
            raise JournalError(f"{path}: must be a file of its own; got a link. Give another directory.")
        self.path = path
        is_new = not path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        self._write_lock, self._sync_lock = threading.Lock(), threading.Lock()
        self._on_disk = self._end = 0
        try:
            if is_new:
                sync_folder(path.parent)
            self._index = self._read_index()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Flush what is not on the disk yet, and close the file."""
        if self._file != -1:
            try:
                self.flush()
            finally:
                with self._sync_lock, self._write_lock:  # an abandoned thread may be about to append
                    os.close(self._file)
                    self._file = -1

    @property
    def heads(self) -> list[dict[str, Any]]:
        """The lines that are not consultations: `settings`, `pool`, `role`, `reserved` and `comparisons`, in order."""
        return self._index.heads

    @property
    def calls(self) -> Mapping[tuple[Label, str | None], str]:
        """The roles and fingerprints that had calls when the journal was opened, with the first line of each."""
        return self._index.calls

    def __len__(self) -> int:
        return len(self._index.places)

    def find(self, key: Key) -> Consultation | None:
        """Return the final consultation for `key`, or None if it must be asked."""
        offset = self._index.places.find(key)
        if offset is None:
            return None
        line = next(self._lines(offset, _LINE))
        consultation = consultation_of(parse(line, self.path, f"byte {offset}"), self.path, f"byte {offset}")
        return consultation if consultation.key == key else None  # two keys of one hash: one of them is asked again

    def attempts(self, key: Key) -> int:
        """Return how many attempts at `key` have failed."""
        return self._index.failures.get(key, 0)

    def append_head(self, head: Mapping[str, Any]) -> None:
        """Append a line that is not a consultation, and remember it, both without credentials."""
        clean = without_credentials(head)
        self.flush(self._append(clean))
        self._index.heads.append(clean)

    def append(self, consultation: Consultation, *, flush: bool = False) -> None:
        """Append a consultation.

        One that took a call is on the disk on return. One that took none is written, so that the end of the process
        does not lose it, and flushed with the next that did, or on `close`; at once with `flush`.
        """
        self.flush(self.write(consultation, flush=flush))

    def write(self, consultation: Consultation, *, flush: bool = False) -> int:
        """Append a consultation as `append` does, and return the byte up to which `flush` must still be called."""
        record = record_of(consultation)
        require_types(record, self.path, "a line about to be written")
        end = self._append({"kind": "consultation", **record})
        return end if flush or consultation.calls > 0 or not consultation.settled else 0

    def _append(self, record: Mapping[str, Any]) -> int:
        line = seal(record)
        with self._write_lock:
            with naming(self.path):
                append_whole(self._file, line)
            self._end += len(line)
            return self._end

    @property
    def on_disk(self) -> int:
        """Up to which byte the journal is known to be on the disk."""
        return self._on_disk

    def flush(self, upto: int | None = None) -> None:
        """Flush to the disk up to a byte, or everything. Threads that wait for one another share a flush."""
        upto = self._end if upto is None else upto
        if self._on_disk >= upto:
            return
        with self._sync_lock:
            if self._on_disk < upto:
                with self._write_lock:
                    end = self._end
                with naming(self.path):
                    os.fsync(self._file)
                self._on_disk = end

    def consultations(self) -> Iterator[Consultation]:
        """Yield all consultations, in order, also those that were appended since the journal was opened."""
        for number, line in enumerate(self._lines(), start=1):
            record = parse(line, self.path, f"line {number}")
            if record["kind"] == "consultation":
                yield consultation_of(record, self.path, f"line {number}")

    def _lines(self, offset: int = 0, size: int = _BLOCK) -> Iterator[bytes]:
        """Yield the lines from a byte on, each with its end, which a torn last one lacks; it reads `size` at once."""
        rest = b""
        while True:
            with self._write_lock, naming(self.path):  # threads share the position; appending has one of its own
                os.lseek(self._file, offset, os.SEEK_SET)
                block = os.read(self._file, size)
            offset, size = offset + len(block), _BLOCK  # a line may be long
            *lines, rest = (rest + block).split(b"\n")
            _require_short(self.path, rest)
            yield from (line + b"\n" for line in lines)
            if not block:
                break
        if rest:
            yield rest

    def _read_index(self) -> _Index:
        index, offset = _Index(), 0
        for number, line in enumerate(self._lines(), start=1):
            if not line.endswith(b"\n"):
                if number == 1 and line[:7] != b'{"kind"'[: len(line)]:
                    raise JournalError(f"{self.path}: must be a journal; got another file. Give another directory.")
                self._drop_torn(number, offset, len(line))
                break
            self._take(index, line, f"line {number}", offset)
            offset += len(line)
        index.places.end()
        self._end = offset  # none of it is known to be synced: a killed process may have written it and not flushed it
        return index

    def _drop_torn(self, number: int, offset: int, size: int) -> None:
        with naming(self.path):
            os.ftruncate(self._file, offset)
            os.fsync(self._file)
        place = f"{self.path}, line {number}: torn after {size} bytes and dropped"
        warnings.warn(display_text(f"{place}; what it recorded will be asked again."), TornLineWarning, stacklevel=4)

    def _take(self, index: _Index, line: bytes, where: str, offset: int) -> None:
        record = parse(line, self.path, where)
        if record.get("kind") != "consultation":
            index.heads.append(head_of(record, self.path, where))
            index.n_values += _n_values(line, index.n_values, self.path, where)
            return
        consultation = consultation_of(record, self.path, where)
        if not consultation.recorded:
            index.calls.setdefault((consultation.label, consultation.fingerprint), where)
        if consultation.settled:
            index.places.add(consultation.key, offset)
        else:
            index.failures[consultation.key] = index.failures.get(consultation.key, 0) + 1


def read_journal(
    path: Path, heads: list[dict[str, Any]] | None = None, on_tear: Callable[[JournalError], None] | None = None
) -> Iterator[Consultation]:
    """Yield the consultations of a journal, plain or .gz, which is only read; its other lines are added to `heads`."""
    in_memory = 0
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            record = parse(line, path, where := f"line {number}")
            entry = (consultation_of if record.get("kind") == "consultation" else head_of)(record, path, where)
        except JournalError as error:
            # A torn last line, as after a crash or during a run, is skipped if there is `on_tear`.
            if on_tear is None or line.endswith(b"\n"):
                raise
            on_tear(error)
            return
        if isinstance(entry, Consultation):
            yield entry
        elif heads is not None:
            heads.append(entry)
            in_memory += _n_values(line, in_memory, path, f"line {number}")


def _n_values(head: bytes, before: int, path: Path, where: str) -> int:
    """Return how many values a head holds; a `JournalError` if, with the `before` of earlier heads, it is too many."""
    n = n_values(head)
    try:
        require_few(before + n, f"{path}, up to {where}", MAX_DOCUMENT_VALUES)
    except PoolError as error:
        raise JournalError(error.args[0]) from error
    return n


def _require_short(path: Path, line: bytes) -> None:
    if len(line) > (longest := scale(_LONGEST)):
        raise JournalError(f"{path}: a line is longer than {longest:,} bytes; a run writes no such line. {RAISE}")


def short_lines(path: Path, file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line) of a plain file; a `JournalError` if one is longer than any that a run writes."""
    for number, line in enumerate(iter(partial(file.readline, scale(_LONGEST) + 1), b""), start=1):
        _require_short(path, line)
        yield number, line


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line); a plain journal may have any number of lines, a compressed one has the limits of a pool."""
    remedy = "a recording is a journal, plain or .gz"
    try:
        with open_file(path) as file:
            beginning = file.peek()
            if not beginning.startswith(GZIP):
                require_text(path, beginning, remedy)
                yield from short_lines(path, file)
                return
        yield from whole_lines(path, remedy)
    except PoolError as error:
        raise JournalError(str(error)) from error
