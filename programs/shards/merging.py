"""Merge the committed shards of a directory into one run, as if their pools had been run in one piece.

The journals are joined first. Then every row is decided from the joined journal, in the order of the pools, by the code
that decides a run. So each figure is what it would be without shards. No role is asked.
"""

import filecmp
import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from eldgr_dspy.consultations import Consultation, Key
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.figures.results import SUMMARY
from eldgr_dspy.figures.results.summary import Confirmed, Summary
from eldgr_dspy.files import flush_to_disk, read_object, remove_unfinished, replacing
from eldgr_dspy.journal import Journal
from eldgr_dspy.journal_lines import consultation_of, parsed, sealed
from eldgr_dspy.pools import Pool, Row
from eldgr_dspy.programs.file_locks import locked
from eldgr_dspy.programs.run.evaluation import Plan
from eldgr_dspy.programs.run.failures import FailureBudget
from eldgr_dspy.programs.run.plan import out_of
from eldgr_dspy.programs.run.recordings import Recordings
from eldgr_dspy.programs.run.results import Results, files_of, replacing_all
from eldgr_dspy.programs.run.runner import Runner, Settled
from eldgr_dspy.programs.shards.claims import Claim, read_claim, require_same_version
from eldgr_dspy.programs.shards.commits import again, is_committed, require_as_committed
from eldgr_dspy.programs.shards.manifest import Sharded, ShardFile, hash_of, read_sharded
from eldgr_dspy.rows import validate
from eldgr_dspy.system import opened

_CONSULTATION = b'{"kind": "consultation"'


def merge(directory: str | Path, out: str | Path | None = None) -> Summary:
    """Make one run of the shards of a directory, and return its summary.

    The run directory holds what `evaluate` on the whole pools would have written. Killed, it can be made again.

    Args:
        directory: What `shard_pools` has written, with every shard committed.
        out: The run directory; None for `runs/NAME[+NAME...]`.

    Raises:
        ArgumentError: a shard is missing, or `out` holds another run.
        RunChangedError: a shard, its journal or the manifest was changed, or was decided with something else.
        RunLockedError: another process has `out` open. OSError: a file cannot be written.
    """
    sharded = read_sharded(Path(directory))
    claim = _checked(sharded)
    folder = merged_into(directory, out)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock", f"{folder}: another process is writing to this run. Wait, or give another --out."):
        remove_unfinished(folder)
        failed = _joined(sharded, folder / "journal.jsonl")
        with _JoinedJournal(folder / "journal.jsonl", failed) as journal, ExitStack() as files:
            settings = read_run(sharded.run(sharded.manifest.shards[0])).settings
            runner = Runner({}, settings, claim.rules, journal, _AsJournaled(claim), FailureBudget(0))
            names = files_of(Plan([directory], folder), sum(pool.rows for pool in sharded.manifest.pools))
            opened_files = files.enter_context(replacing_all(folder, names))
            results = Results(runner, opened_files, lambda: None)
            results.confirmation = _confirmation(sharded, claim)
            _decide(sharded, runner, results)
            return results.finish()


def merged_into(directory: str | Path, out: str | Path | None = None) -> Path:
    """Return the run directory that `merge` writes: the given one, or `runs/NAME[+NAME...]`."""
    if out is not None:
        return Path(out)
    names = [pool.name for pool in read_sharded(Path(directory)).manifest.pools]
    return out_of(Plan([f"{name}.jsonl" for name in names]))


def _checked(sharded: Sharded) -> Claim:
    """Refuse shards that are missing, changed, or decided with something else; nothing is written before."""
    claim = read_claim(sharded)
    require_same_version(sharded, claim, "Install {} to merge them.")
    shards = sharded.manifest.shards
    missing = [shard.name for shard in shards if not is_committed(sharded, shard, claim)]
    if missing:
        listed = f"{', '.join(missing[:10])}{', ...' * (len(missing) > 10)}"
        raise ArgumentError(
            f"{sharded.path}: {len(missing):,} of {len(shards):,} shards are not done ({listed}). Run eldgr evaluate "
            f"{sharded.path} first."
        )
    known = {shard.name for shard in shards}
    for folder, suffix in (("shards", ".jsonl"), ("done", ".json")):
        for path in sorted((sharded.path / folder).iterdir()):
            if not path.name.startswith(".") and (path.suffix != suffix or path.stem not in known):
                raise RunChangedError(f"{path}: not a shard that manifest.json names. Move it away.")
    if not sharded.order.is_file() or hash_of(sharded.order) != sharded.manifest.order:
        raise RunChangedError(f"{sharded.order}: not the one that manifest.json names. Restore it from a copy.")
    for shard in shards:
        sharded.require_whole(shard)
        require_as_committed(sharded, shard)
    return claim


# -- one journal -------------------------------------------------------------------------------------------------------


def _joined(sharded: Sharded, path: Path) -> dict[Key, Consultation]:
    """Write the journals of all shards as one, and return the calls that failed and were not repeated.

    Raises:
        ArgumentError: `path` is the journal of another run.
    """
    heads = _heads(sharded)
    failed = dict[Key, Consultation]()
    with replacing(path) as out:
        out.writelines(map(sealed, heads))
        for shard in sharded.manifest.shards:
            journal = sharded.run(shard) / "journal.jsonl"
            with opened(journal) as lines:
                for number, line in enumerate(lines, start=1):
                    record = parsed(line, journal, f"line {number}")
                    if record["kind"] == "consultation":
                        out.write(line)
                        entry = consultation_of(record, journal, f"line {number}")
                        _require_of(shard, entry, journal)
                        if not entry.settled:
                            failed[entry.key] = entry
                        elif failed:
                            failed.pop(entry.key, None)
        flush_to_disk(path, out)
        if path.exists() and not filecmp.cmp(out.name, path, shallow=False):
            raise ArgumentError(f"out={str(path.parent)!r} holds another run. Give another --out.")
    return failed


def _require_of(shard: ShardFile, entry: Consultation, journal: Path) -> None:
    """Refuse a journal in which another pool was asked too, which a run of the whole pool would not have counted."""
    if entry.pool != shard.pool:
        raise RunChangedError(
            f"{journal}: must have consultations on {shard.pool!r} alone; got some on {entry.pool!r:.80}. Run shards "
            f"by eldgr evaluate DIR --shard N. {again(shard)}"
        )


def _heads(sharded: Sharded) -> list[dict[str, Any]]:
    """Return what the joined journal states: settings and roles of the shards, each once, and the whole pools."""
    stated: dict[str, dict[bytes, dict[str, Any]]] = defaultdict(dict)
    for shard in sharded.manifest.shards:
        for head in _heads_of(sharded.run(shard) / "journal.jsonl"):
            stated[head["kind"]].setdefault(sealed(head), head)
    pools = [
        {
            "kind": "pool",
            "name": pool.name,
            "details": {"sha256": pool.sha256, "rows": pool.rows, "task": pool.task},
            "path": pool.path,
        }
        for pool in sharded.manifest.pools
    ]
    return [*stated["settings"].values(), *pools, *stated["role"].values()]


def _heads_of(journal: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a journal that are not consultations; those are read when they are joined."""
    with opened(journal) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.startswith(_CONSULTATION) and parsed(line, journal, f"line {number}")["kind"] != "consultation":
                yield parsed(line, journal, f"line {number}")


class _JoinedJournal(Journal):
    """The joined journal. A call that failed is final here: its question was decided without it."""

    def __init__(self, path: Path, failed: dict[Key, Consultation]) -> None:
        super().__init__(path)
        self._failed = failed

    def find(self, key: Key) -> Consultation | None:
        """Return the consultation for `key`, also one that failed."""
        return super().find(key) or self._failed.get(key)


class _AsJournaled(Recordings):
    """No recordings: what the journal lacks was not in the recordings of the shards either."""

    def __init__(self, claim: Claim) -> None:
        super().__init__()
        self._replayed = bool(claim.content["recordings"])

    def governs(self, pool: str, asked: str) -> bool:
        """Nobody may be asked."""
        return True

    def find(self, key: Key) -> Consultation:
        """Raise `NotAskedError` after a replay; else the journal should have had the consultation."""
        if self._replayed:
            return super().find(key)
        raise RunChangedError(
            f"The journals lack the {key[2]} of question {key[1]!r} of pool {key[0]!r}, so a rule decides otherwise "
            "than when its shard was run. Use a rule that decides the same each time."
        )


# -- one run -----------------------------------------------------------------------------------------------------------


def _decide(sharded: Sharded, runner: Runner, results: Results) -> None:
    """Decide the rows of all shards, in the order of the pools."""
    wholes = sharded.manifest.pools
    pools = {
        whole.name: Pool(whole.name, Path(whole.path), whole.rows, whole.task, whole.sha256, 0, b"") for whole in wholes
    }
    left = {name: pool.n for name, pool in pools.items()}
    for pool in pools.values():
        results.begin(pool)
    for shard, row in _rows(sharded):
        left[shard.pool] -= 1
        results.add(pools[shard.pool], _settled(runner, shard.pool, row))
    if any(left.values()):
        raise RunChangedError(f"{sharded.order}: lacks rows. Restore it from a copy.")


def _settled(runner: Runner, pool: str, row: Row) -> Settled:
    """Decide a row from the journal alone."""
    try:
        query = next(runner.settle(pool, row))
    except StopIteration as decided:
        settled: Settled = decided.value
        return settled
    raise AssertionError(f"{query} would be asked")  # `_AsJournaled` governs everything


def _rows(sharded: Sharded) -> Iterator[tuple[ShardFile, Row]]:
    """Yield each row with its shard, in the order of the pools; one file is open at a time."""
    offsets: dict[int, int] = defaultdict(int)
    with opened(sharded.order) as order:
        for line in order:
            number, count = json.loads(line)
            shard = sharded.shard(number)
            path = sharded.file(shard)
            with opened(path) as file:
                file.seek(offsets[number])
                for _ in range(count):
                    where = f"{path}, byte {file.tell()}"
                    yield shard, validate(read_object(file.readline(), where), where)
                offsets[number] = file.tell()


def _confirmation(sharded: Sharded, claim: Claim) -> Confirmed | None:
    """Return what the lock says of the run: of each pool what it said of the pool's shards."""
    if claim.content["lock"] is None:
        return None
    said = Confirmed(lock=claim.content["lock"], seen_before={}, earlier=[])
    for pool in sharded.manifest.pools:
        first = next(shard for shard in sharded.manifest.shards if shard.pool == pool.name)
        summary = SUMMARY.validate_json((sharded.run(first) / "summary.json").read_bytes())
        if summary["confirmation"] is not None:
            said["seen_before"].update(summary["confirmation"]["seen_before"])
            said["earlier"].extend(summary["confirmation"]["earlier"])
    return said
