"""Decide a committed shard again, from its journal alone.

Its counts are returned. What the files of the merged run hold of each question is written to a file, from which it can
be copied in the order of the pools. So any process can decide a shard.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple

from eldgr_dspy.certifying import naming_question
from eldgr_dspy.consultations import Consultation, Key
from eldgr_dspy.errors import RunChangedError
from eldgr_dspy.figures.finished_run import DECISIONS, RunRead
from eldgr_dspy.figures.record import JournalTotals, Questions
from eldgr_dspy.files import flush_to_disk, read_object
from eldgr_dspy.journal import Journal, read_journal
from eldgr_dspy.pools import Pool, Row
from eldgr_dspy.programs.run.counted import Counted
from eldgr_dspy.programs.run.failures import FailureBudget
from eldgr_dspy.programs.run.recordings import Recordings
from eldgr_dspy.programs.run.results import line_of
from eldgr_dspy.programs.run.runner import Runner, Settled
from eldgr_dspy.programs.run.scheduling import rarer_collections
from eldgr_dspy.programs.shards.claims import Claim, read_claim
from eldgr_dspy.programs.shards.manifest import Sharded, ShardFile, WholePool, read_sharded
from eldgr_dspy.report.questions_page import QuestionsPage
from eldgr_dspy.rows import validate
from eldgr_dspy.showing import encodable
from eldgr_dspy.system import created, opened


class Task(NamedTuple):
    """A shard to be decided.

    Attributes:
        directory: Of the shards. number: which one. into: the file to write.
        pages: Whether the run has a page of questions. given: what the caller gives of the user's own.
    """

    directory: Path
    number: int
    into: Path
    pages: bool
    given: Mapping[str, object]


class Decided(NamedTuple):
    """The counts of a shard: of its questions, and of the consultations in its journal."""

    counted: Counted
    totals: JournalTotals


def decide_shard(task: Task, look: Callable[[], None]) -> Decided:
    """Decide the questions of a shard, write what the run's files hold of them, and return the counts.

    Args:
        task: Which shard. look: called before each question.

    Raises:
        RunChangedError: the journal lacks a consultation. The rest as `evaluate` does.
    """
    sharded = read_sharded(task.directory)
    shard, claim = sharded.shard(task.number), read_claim(sharded)
    pool, path = pool_of(sharded.whole(shard)), sharded.run(shard) / "journal.jsonl"
    counted = Counted(claim.rules)
    counted.begin(pool)
    page = QuestionsPage() if task.pages else None
    with _Final(path, read_only=True) as journal, rarer_collections(), _created(task.into) as out:
        settings = RunRead(path.parent, journal.heads, JournalTotals([]), given=task.given).settings
        runner = Runner({}, settings, claim.rules, journal, _AsJournaled(claim, path), FailureBudget(0))
        for row in _rows(sharded, shard):
            look()
            with naming_question(pool.name, row.id):
                settled = _settled(runner, pool.name, row)
                lines = counted.add(pool, settled)
                shown = (
                    "" if page is None else page.question(pool.name, row, settled.case, lines, settled.consultations)
                )
            _write(out, [encodable(line_of(line)).encode("utf-8") for line in lines], encodable(shown).encode("utf-8"))
        flush_to_disk(task.into, out)
    return Decided(counted, JournalTotals(read_journal(path), Questions([pool.name])))


def pool_of(whole: WholePool) -> Pool:
    """Return a pool that was cut into shards, which need not be where it was."""
    return Pool(whole.name, Path(whole.path), whole.rows, whole.task, whole.sha256, 0, b"")


def read_question(file: IO[bytes]) -> tuple[list[bytes], str]:
    """Return the next question that `decide_shard` has written: its lines of decisions, and its part of the page."""
    *lines, page = json.loads(file.readline())
    return [file.read(size) for size in lines], file.read(page).decode("utf-8")


def _created(path: Path) -> IO[bytes]:
    return created(path, becomes=path.with_name(DECISIONS["jsonl"]))  # which an error names


def _write(out: IO[bytes], lines: Sequence[bytes], page: bytes) -> None:
    sizes = json.dumps([*map(len, lines), len(page)]).encode("ascii")
    out.write(b"".join((sizes, b"\n", *lines, page)))


def _rows(sharded: Sharded, shard: ShardFile) -> Iterator[Row]:
    path = sharded.file(shard)
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            where = f"{path}, line {number}"
            yield validate(read_object(line, where), where)


def _settled(runner: Runner, pool: str, row: Row) -> Settled:
    """Decide a row from the journal alone."""
    try:
        query = next(runner.settle(pool, row))
    except StopIteration as decided:
        settled: Settled = decided.value
        return settled
    raise AssertionError(f"{query} would be asked")  # `_AsJournaled` governs everything


class _Final(Journal):
    """The journal of a committed shard. A call that failed is final here: its question was decided without it."""

    def find(self, key: Key) -> Consultation | None:
        """Return the consultation for `key`, also one that failed."""
        found = super().find(key)
        return self._failed.get(key) if found is None and self.attempts(key) else found

    def append_head(self, head: Mapping[str, Any]) -> None:
        """Write nothing."""

    @cached_property
    def _failed(self) -> dict[Key, Consultation]:
        return {entry.key: entry for entry in read_journal(self.path) if not entry.settled}


class _AsJournaled(Recordings):
    """No recordings: what the journal lacks was not in the recordings of the shards either."""

    def __init__(self, claim: Claim, journal: Path) -> None:
        super().__init__()
        self._replayed, self._journal = bool(claim.content["recordings"]), journal

    def governs(self, pool: str, asked: str) -> bool:
        """Nobody may be asked."""
        return True

    def find(self, key: Key) -> Consultation:
        """Raise `NotAskedError` after a replay; else the journal should have had the consultation."""
        if self._replayed:
            return super().find(key)
        raise RunChangedError(
            f"{self._journal}: lacks the {key[2]} of question {key[1]!r} of pool {key[0]!r}, so a rule decides "
            "otherwise than when the shard was run. Use a rule that decides the same each time."
        )
