"""The journal: every consultation that was paid for, as JSON lines that are only ever appended.

It is the state of a run. A line is written in one piece, and flushed to the disk before a consultation that took a call
counts as done; a last line that a crash has torn is dropped with a warning when the journal is opened again. Beside
consultations it holds the settings of the run, the pools (by content hash) and the roles (by fingerprint), so that a
run can only be continued as what it was.
"""

import json
import os
import threading
import warnings
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args
from zlib import crc32

from eldgr_dspy.errors import JournalError, PoolError
from eldgr_dspy.files import GZIP, append_whole, require_text, sync_folder, whole_lines
from eldgr_dspy.redaction import redacted, redacted_value
from eldgr_dspy.showing import shown
from eldgr_dspy.system import naming, opened
from eldgr_dspy.words import ROLES, Role

Outcome = Literal["ok", "abstained", "failed"]

Key = tuple[str, str, Role]
"""Which consultation: pool, question id, role."""


@dataclass(frozen=True, slots=True)
class Consultation:
    """One consultation as it is journaled.

    Attributes:
        pool, id, role: Which question of which pool was put to which role.
        outcome: `ok`: it answered. `abstained`: it said nothing usable, see `reason`. `failed`: the call did not come
            through (never a verdict; asked again on resume).
        content: The fields that it returned, for `ok`.
        fingerprint: Of everything that shaped the call; the journal's `role` line with it has the details.
        asked, served: The model asked for, and the model that the server said had answered; None where unknown.
        attempt: 1, or one more than the failed attempts before it.
        calls: How many LM requests it took; 0 for an embedded role or a recording.
        cached: How many replies DSPy's cache gave, which took no request.
        prompt_characters: How long the prompts were that were answered, None where none was.
        prompt_tokens, completion_tokens: As reported, None where unknown. cost: in dollars, None where unknown.
        implausible: What was reported and cannot be true, as text; it counts as unknown. None where all is plausible.
        dearest: What the dearest of several requests cost, None where unknown or where it took one.
        seconds: By a monotonic clock.
        recorded: Whether it was supplied by `--replay` instead of asked.
    """

    pool: str
    id: str
    role: Role
    outcome: Outcome
    reason: str | None = None
    content: Mapping[str, Any] | None = None
    fingerprint: str | None = None
    asked: str | None = None
    served: str | None = None
    attempt: int = 1
    calls: int = 0
    cached: int = 0
    prompt_characters: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    dearest: float | None = None
    seconds: float | None = None
    implausible: str | None = None
    recorded: bool = False

    @property
    def key(self) -> Key:
        """Which consultation this is."""
        return (self.pool, self.id, self.role)

    @property
    def settled(self) -> bool:
        """Whether it need not be asked again."""
        return self.outcome != "failed"

    @property
    def answered(self) -> bool:
        """Whether any of its requests was answered, as far as it was journaled."""
        return self.cost is not None or self.prompt_characters is not None


_FIELDS = tuple(field.name for field in fields(Consultation))
_HEADS = ("settings", "pool", "role", "reserved")
_ABSENT = type(None)
_NUMBERS = (int, float)
_MOST = 10**15
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("pool", "id", "role", "outcome"), (str,)),
    **dict.fromkeys(("reason", "fingerprint", "asked", "served", "implausible"), (str, _ABSENT)),
    **dict.fromkeys(("attempt", "calls", "cached"), (int,)),
    **dict.fromkeys(("prompt_characters", "prompt_tokens", "completion_tokens"), (int, _ABSENT)),
    **dict.fromkeys(("cost", "dearest", "seconds"), (int, float, _ABSENT)),
    "content": (dict, _ABSENT),
    "recorded": (bool,),
}
"""What a journaled field may be: exactly one of these, so that `true` is no number."""
_FREE = ("content", "reason", "asked", "served", "implausible", "details", "path")
"""The fields that may hold what comes from outside; the others are words of the journal, or name a question."""
_WORDS = {str: "text", int: "a count", float: "a number", bool: "true or false", dict: "an object", _ABSENT: "null"}


class TornLineWarning(UserWarning):
    """The last line of a journal was incomplete and has been dropped; its consultation will be asked again."""


@dataclass(slots=True)
class _Index:
    """What is known of a journal's lines: heads in full, consultations by their place in the file."""

    heads: list[dict[str, Any]] = field(default_factory=list)
    settled: dict[int, int] = field(default_factory=dict)  # by the key's hash: a key takes three times the memory
    failed: dict[Key, int] = field(default_factory=dict)
    asked: dict[tuple[Role, str | None], str] = field(default_factory=dict)


class Journal:
    """A journal open for appending. Thread-safe. One process at a time: the run directory's lock sees to that."""

    def __init__(self, path: Path) -> None:
        """Open or create the journal at `path`, drop a torn last line with a `TornLineWarning`, and index the rest.

        Raises:
            JournalError: if a line other than the last cannot be read.
        """
        self.path = path
        created = not path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        self._write_lock, self._sync_lock = threading.Lock(), threading.Lock()
        self._synced = self._end = 0
        try:
            if created:
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
        if self._file >= 0:
            try:
                self.flush()
            finally:
                with self._sync_lock, self._write_lock:  # a thread that was abandoned may be about to append
                    os.close(self._file)
                    self._file = -1

    @property
    def heads(self) -> list[dict[str, Any]]:
        """The lines that are not consultations, in order: `settings`, `pool`, `role` and `reserved`."""
        return self._index.heads

    @property
    def asked(self) -> Mapping[tuple[Role, str | None], str]:
        """The roles and fingerprints that the journal, when opened, held calls of, with the first line of each."""
        return self._index.asked

    def __len__(self) -> int:
        return len(self._index.settled)

    def find(self, key: Key) -> Consultation | None:
        """Return the consultation that settles `key`, or None where it has to be asked."""
        offset = self._index.settled.get(hash(key))
        if offset is None:
            return None
        found = read_consultation(self._line_at(offset), self.path, f"byte {offset}")
        return found if found.key == key else None  # two keys of one hash: one of them is asked again

    def attempts(self, key: Key) -> int:
        """Return how many attempts at `key` have failed."""
        return self._index.failed.get(key, 0)

    def append_head(self, head: Mapping[str, Any]) -> None:
        """Append a line that is not a consultation, and remember it, both without credentials."""
        clean = _without_credentials(head)
        self.flush(self._append(clean))
        self._index.heads.append(clean)

    def append(self, consultation: Consultation, *, flush: bool = False) -> None:
        """Append a consultation.

        One that took a call is on the disk on return. One that took none is written, so that the end of the process
        does not lose it, and flushed with the next that did, or on `close`; at once with `flush`.
        """
        self.flush(self.write(consultation, flush=flush))

    def write(self, consultation: Consultation, *, flush: bool = False) -> int:
        """Append a consultation as `append` does, and return up to which byte `flush` is still to be called."""
        record = {name: value for name in _FIELDS if (value := getattr(consultation, name)) is not None}
        _require_types(record, self.path, "a line about to be written")
        end = self._append({"kind": "consultation", **record})
        return end if flush or consultation.calls > 0 or not consultation.settled else 0

    def _append(self, record: Mapping[str, Any]) -> int:
        """Append a line; return where it ends."""
        text = _ENCODER.encode(record)
        if redacted(text) != text:  # whoever made the record has missed one; the key by which it is found stays
            text = _ENCODER.encode(_without_credentials(record))
        body = text.removesuffix("}").encode("ascii")
        line = b'%b%b"%08x"}\n' % (body, _CHECKSUM, crc32(body))
        with self._write_lock:
            with naming(self.path):
                append_whole(self._file, line)
            self._end += len(line)
            return self._end

    @property
    def synced(self) -> int:
        """Up to which byte the journal is known to be on the disk."""
        return self._synced

    def flush(self, upto: int | None = None) -> None:
        """Flush to the disk up to a byte, or all that is written. Threads that wait for one another share a flush."""
        upto = self._end if upto is None else upto
        if self._synced >= upto:
            return
        with self._sync_lock:
            if self._synced < upto:
                with self._write_lock:
                    end = self._end
                with naming(self.path):
                    os.fsync(self._file)
                self._synced = end

    def _line_at(self, offset: int) -> bytes:
        with naming(self.path), self.path.open("rb") as file:  # a handle a look-up, so that threads share no position
            file.seek(offset)
            return file.readline()

    def _read_index(self) -> _Index:
        index, offset = _Index(), 0
        with opened(self.path) as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    self._drop_torn(number, offset, len(line))
                    break
                self._take(index, line, f"line {number}", offset)
                offset += len(line)
        self._end = offset  # and none of it synced: a process that was killed may have written it and not flushed it
        return index

    def _drop_torn(self, number: int, offset: int, size: int) -> None:
        with naming(self.path):
            os.ftruncate(self._file, offset)
            os.fsync(self._file)
        torn = f"{self.path}, line {number}: torn after {size} bytes and dropped"
        warnings.warn(shown(f"{torn}; what it recorded will be asked again."), TornLineWarning, stacklevel=4)

    def _take(self, index: _Index, line: bytes, where: str, offset: int) -> None:
        record = _parse(line, self.path, where)
        if record.get("kind") != "consultation":
            index.heads.append(_head(record, self.path, where))
            return
        found = _consultation(record, self.path, where)
        if not found.recorded:
            index.asked.setdefault((found.role, found.fingerprint), where)
        if found.settled:
            index.settled[hash(found.key)] = offset
        else:
            index.failed[found.key] = index.failed.get(found.key, 0) + 1


def read_journal(
    path: Path, heads: list[dict[str, Any]] | None = None, on_torn: Callable[[JournalError], None] | None = None
) -> Iterator[Consultation]:
    """Yield the consultations of a finished or recorded journal without opening it for writing.

    Args:
        path: The journal, plain or .gz, the latter within the limits of a pool's. Blank lines are passed over.
        heads: Where to put the lines that are not consultations.
        on_torn: Told of a last line that has no end and cannot be read, as a crash or a run that is writing leaves it;
            it is passed over then. None where there must be no such line.

    Raises:
        JournalError: naming the line that cannot be read; or the file, if it is not text or is a damaged .gz.
    """
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            found = _read(line, path, f"line {number}")
        except JournalError as error:
            if on_torn is None or line.endswith(b"\n"):
                raise
            on_torn(error)
            return
        if isinstance(found, Consultation):
            yield found
        elif heads is not None:
            heads.append(found)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line); a plain journal is as long as its run made it, a compressed one bounded as pools are."""
    expected = "a recording is a journal, plain or .gz"
    try:
        with opened(path) as file:
            beginning = file.peek()
            if not beginning.startswith(GZIP):
                require_text(path, beginning, expected)
                yield from enumerate(file, start=1)
                return
        yield from whole_lines(path, expected)
    except PoolError as error:
        raise JournalError(str(error)) from error


def _read(line: bytes, path: Path, where: str) -> Consultation | dict[str, Any]:
    """Read a line: a consultation, or the head that it is."""
    record = _parse(line, path, where)
    return _consultation(record, path, where) if record.get("kind") == "consultation" else _head(record, path, where)


def read_consultation(line: bytes, path: Path, where: str) -> Consultation:
    """Read one journaled consultation; `path` and `where` are for the error message."""
    return _consultation(_parse(line, path, where), path, where)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _without_credentials(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: redacted_value(value) if name in _FREE else value for name, value in record.items()}


_DECODER = json.JSONDecoder(parse_constant=_no_number)
_ENCODER = json.JSONEncoder(allow_nan=False)
_CHECKSUM = b', "crc32": '
"""What stands before the checksum of a line, its last field; the checksum is of all before this."""


def _parse(line: bytes, path: Path, where: str) -> dict[str, Any]:
    try:
        record = _DECODER.decode(line.decode("utf-8-sig"))  # an editor may have put a mark before a recording
    except (ValueError, RecursionError) as error:
        raise JournalError(f"{path}, {where}: not a JSON object ({error}); restore the journal from a copy.") from error
    if not isinstance(record, dict):
        raise JournalError(f"{path}, {where}: {record!r:.80} is not a JSON object; restore the journal from a copy.")
    stated = record.pop("crc32", None)
    body, _, end = line.removeprefix(BOM_UTF8).rpartition(_CHECKSUM)
    if stated is not None and end.strip() != b'"%08x"}' % crc32(body):
        raise JournalError(
            f"{path}, {where}: the line does not match its checksum {stated!r:.20}, so that it was damaged or edited; "
            "restore the journal from a copy, or remove crc32 from the line if the change is meant."
        )
    return record


def _head(record: dict[str, Any], path: Path, where: str) -> dict[str, Any]:
    kind = record.get("kind")
    if kind not in _HEADS:
        known = ", ".join(("consultation", *_HEADS))
        raise JournalError(f"{path}, {where}: kind={kind!r:.80} is not one of {known}; a journal is expected.")
    _check(isinstance(record.get("name"), str), path, where, f"a {kind} without a name")
    _check(isinstance(record.get("details"), dict), path, where, f"a {kind} without details")
    return record


def _consultation(record: dict[str, Any], path: Path, where: str) -> Consultation:
    del record["kind"]
    try:
        found = Consultation(**{"pool": "", **record})
    except TypeError as error:
        raise JournalError(f"{path}, {where}: not a consultation ({error}).") from error
    _require_types(record, path, where)
    _check(found.role in ROLES, path, where, f"role={found.role!r} is not one of {', '.join(ROLES)}")
    _check(found.outcome in get_args(Outcome), path, where, f"outcome={found.outcome!r} is not known")
    _check(found.outcome != "ok" or found.content is not None, path, where, "outcome 'ok' without content")
    return found


def _require_types(record: Mapping[str, Any], path: Path, where: str) -> None:
    """Refuse a field that is not what it may be, of a line that was read or is about to be written."""
    for name, value in record.items():
        if type(value) not in _TYPES[name] or (type(value) in _NUMBERS and not is_plausible(value)):
            raise JournalError(f"{path}, {where}: {name}={value!r:.80} is not {_expected(name)}.")


def is_plausible(value: object) -> bool:
    """Return whether a number may be journaled as a count, an amount in dollars or seconds: from 0 to 10**15."""
    return isinstance(value, _NUMBERS) and not isinstance(value, bool) and 0 <= value <= _MOST


def _expected(name: str) -> str:
    kinds = [kind for kind in _TYPES[name] if kind is not int or float not in _TYPES[name]]
    return " or ".join(_WORDS[kind] for kind in kinds)


def _check(holds: bool, path: Path, where: str, problem: str) -> None:
    if not holds:
        raise JournalError(f"{path}, {where}: {problem}.")
