"""The ledger of a lock: which pools it has seen, a line for each run and pool, appended and never changed.

A line is on the disk before the run asks any role, so that an interrupted evaluation also counts. A pool is known by
its content. It also counts as seen if its questions were, in another order or with other candidates. One process writes
at a time.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError

from eldgr_dspy.errors import JournalError
from eldgr_dspy.files import append_whole, sync_folder
from eldgr_dspy.pools import Pool
from eldgr_dspy.programs.file_locks import locked
from eldgr_dspy.programs.run.sorted_texts import in_order
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.system import refusal

_PATIENCE = 10.0  # seconds; a line takes a few milliseconds


class Look(BaseModel):
    """One run's look at one pool.

    Attributes:
        lock: Hash of the lock. pool: content hash of the pool. name: the pool's name.
        asked: Hash of the pool's questions in any order, see `questions_of`; None in an older ledger.
        questions: How many questions were looked at, at least. time: when it started, in UTC.
        run: The id of the run, which is in its journal, wherever its directory is. out: where that was.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    lock: str
    pool: str
    name: str
    questions: PositiveInt
    time: str
    run: str
    out: str
    asked: str | None = None

    def is_within(self, other: "Look") -> bool:
        """Return whether another look is the same run's at the same pool, and at as many questions."""
        return (self.run, self.pool) == (other.run, other.pool) and self.questions <= other.questions


class Ledger:
    """The ledger of the lock with the hash `lock`, in a file that may not exist yet."""

    def __init__(self, path: Path, lock: str) -> None:
        self.path, self._lock = path, lock

    def looks(self) -> list[Look]:
        """Return every look, in order.

        Raises:
            JournalError: naming the line that cannot be read, or belongs to another lock.
        """
        try:
            lines = self.path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise JournalError(refusal(error, self.path)) from error
        return [self._look(line, number) for number, line in enumerate(lines, start=1)]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other process from writing.

        Raises:
            RunLockedError: another process keeps the lock.
        """
        lock = self.path.with_name(f".{self.path.name}.lock")
        with ExitStack() as held:
            try:
                held.enter_context(
                    locked(lock, f"{self.path}: another process is writing to it; wait for it.", _PATIENCE)
                )
            except OSError as error:
                raise JournalError(refusal(error, self.path)) from error
            yield

    def append(self, looks: Sequence[Look]) -> None:
        """Append looks; on return they are on the disk. To be called while no other process writes."""
        lines = "".join(json.dumps(look.model_dump()) + "\n" for look in looks).encode("ascii")
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                append_whole(file, lines, flush=True)
            finally:
                os.close(file)
            sync_folder(self.path.parent)
        except OSError as error:
            raise JournalError(refusal(error, self.path)) from error

    def _look(self, line: bytes, number: int) -> Look:
        where = f"{self.path}, line {number}"
        if not line.endswith(b"\n"):
            raise JournalError(f"{where}: torn; the look that it was to record had not started, so remove that line.")
        try:
            look = Look.model_validate_json(line)
        except ValidationError as error:
            fault = error.errors()[0]
            place = ".".join(map(str, fault["loc"]))
            raise JournalError(
                f"{where}: not a look at a pool ({place}{': ' * bool(place)}{fault['msg']}); restore the ledger from a "
                "copy."
            ) from error
        if look.lock != self._lock:
            raise JournalError(
                f"{where}: lock={look.lock!r:.80} is not the lock next to it; restore either from a copy."
            )
        return look


def questions_of(pool: Pool) -> str:
    """Return a hash of the questions of a pool by their folded texts, without order, ids, candidates or evidence.

    Raises:
        PoolError: the pool has changed since it was opened.
    """
    return hash_of_questions(folded_question(row.question) for row in pool.rows())


def hash_of_questions(texts: Iterable[str]) -> str:
    """Return the hash of folded questions in any order; see `questions_of`."""
    digest, before = sha256(b"["), ""
    for text in in_order(texts):
        digest.update(f"{before}{json.dumps(text)}".encode("ascii"))
        before = ", "
    digest.update(b"]")
    return digest.hexdigest()


def seen_before(looks: Sequence[Look], pool: str, run: str | None, asked: str | None = None) -> list[Look]:
    """Return the first look of each other run at a pool or at its questions, if it came before that of `run`."""
    first: dict[str, Look] = {}
    for look in looks:
        if look.pool == pool and look.run == run:
            break
        if look.run != run and (look.pool == pool or (asked is not None and look.asked == asked)):
            first.setdefault(look.run, look)
    return list(first.values())
