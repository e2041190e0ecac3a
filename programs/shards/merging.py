"""Merge the committed shards of a directory into one run, as if their pools had been run in one piece.

The journals are joined first. Then every shard is decided again, in this process or in several, by the code that
decides a run. The counts are put together, and decisions are copied in the order of the pools. So each figure is what
it would be without shards. No role is asked.
"""

import filecmp
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.figures.record import JournalTotals
from eldgr_dspy.figures.results import SUMMARY
from eldgr_dspy.figures.results.summary import Confirmed, Summary
from eldgr_dspy.files import flush_to_disk, remove_unfinished, removed_afterwards, replacing
from eldgr_dspy.journal_lines import parsed, sealed
from eldgr_dspy.named_judges import unlabelled
from eldgr_dspy.programs.file_locks import locked
from eldgr_dspy.programs.run.counted import Counted
from eldgr_dspy.programs.run.plan import Plan, out_of, require_count, require_format
from eldgr_dspy.programs.run.results import Results, files_of, replacing_all
from eldgr_dspy.programs.run.signals import Signals
from eldgr_dspy.programs.shards.claims import CLAIM, Claim, read_claim, require_same_version
from eldgr_dspy.programs.shards.commits import again, is_committed, require_as_committed
from eldgr_dspy.programs.shards.deciding import Decided, Task, pool_of, read_question
from eldgr_dspy.programs.shards.manifest import MANIFEST, Sharded, ShardFile, hash_of, read_sharded
from eldgr_dspy.programs.shards.processes import deciding
from eldgr_dspy.rules import is_own
from eldgr_dspy.system import opened

_CONSULTATION = b'{"kind": "consultation"'


def merge(
    directory: str | Path,
    out: str | Path | None = None,
    processes: int = 1,
    *,
    decisions: Literal["jsonl", "parquet"] = "jsonl",
    pages: bool = False,
    rules: Sequence[str] = (),
    **given: object,
) -> Summary:
    """Make one run of the shards of a directory, and return its summary.

    The run directory holds what `evaluate` on the whole pools would have written. Killed, it can be made again.

    Args:
        directory: What `shard_pools` has written, with every shard committed: a path, or the address of a bucket.
        out: The run directory; None for `runs/NAME[+NAME...]`.
        processes: How many processes decide shards at once. With more than one, a script must call this function below
            `if __name__ == "__main__":`, because each process imports the script.
        decisions: The format of the decisions. pages: whether the page of questions is written beyond 20,000.
        rules: Those of your own that decide. given: certificate, refusals and answer type of your own, see `read_run`.

    Raises:
        ArgumentError: a shard is missing, `out` holds another run, `processes` is not a count, or `decisions` not a
            format.
        RunChangedError: a shard, its journal or the manifest was changed, or was decided with something else.
        RunLockedError: another process has `out` open. RunStoppedError: one of the processes has ended.
        OSError: a file cannot be written, or a bucket cannot be reached.
    """
    require_count("processes", processes)
    require_format(decisions)
    sharded = _downloaded(read_sharded(directory))
    claim = _checked(sharded)
    if unnamed := {*filter(is_own, map(unlabelled, claim.rules))} - {*map(unlabelled, rules)}:
        raise ArgumentError(f"{CLAIM} names {min(unnamed)!r:.80}, and a file imports nothing. Give it: --rules.")
    folder = merged_into(directory, out)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock", f"{folder}: another process is writing to this run. Wait, or give another --out."):
        remove_unfinished(folder)
        heads = _heads(sharded)
        _join(sharded, heads, folder / "journal.jsonl")
        plan = Plan([sharded.path], folder, decisions=decisions, pages=pages)
        return _merged(sharded, claim, heads, plan, processes, given)


def _merged(
    sharded: Sharded,
    claim: Claim,
    heads: Sequence[Mapping[str, Any]],
    plan: Plan,
    processes: int,
    given: Mapping[str, object],
) -> Summary:
    """Write the results of the shards, and return the summary."""
    _ = read_run(sharded.run(sharded.manifest.shards[0]), **given).settings  # a type of one's own is then known
    folder, n = out_of(plan), sum(pool.rows for pool in sharded.manifest.pools)
    names = files_of(plan, n)
    shards = range(len(sharded.manifest.shards))
    signals = Signals()
    with signals, ExitStack() as files:
        results = Results(folder, Counted(claim.rules), files.enter_context(replacing_all(folder, names)), signals.look)
        results.confirmation = _confirmation(sharded, claim)
        spools = [files.enter_context(removed_afterwards(folder)) for _ in shards]
        tasks = [Task(sharded.path, number, spools[number], "questions.html" in names, given) for number in shards]
        with deciding(tasks, min(processes, len(tasks)), signals.look) as parts:
            totals = _decide(sharded, spools, parts, results)
        return results.finish(heads, totals)


def merged_into(directory: str | Path, out: str | Path | None = None) -> Path:
    """Return the run directory that `merge` writes: the given one, or `runs/NAME[+NAME...]`."""
    names = [] if out is not None else [pool.name for pool in read_sharded(directory).manifest.pools]
    return out_of(Plan([f"{name}.jsonl" for name in names], out))


def _downloaded(sharded: Sharded) -> Sharded:
    """Download from a bucket what says which shards are done, into a folder that no shard is run in."""
    if sharded.bucket is None:
        return sharded
    here = replace(sharded, path=sharded.path.with_name(f"{sharded.path.name}-merge"))
    (here.path / "shards").mkdir(parents=True, exist_ok=True)
    here.pull(here.path / MANIFEST, here.path / CLAIM, here.order, *map(here.marker, here.manifest.shards))
    return here


def _checked(sharded: Sharded) -> Claim:
    """Refuse shards that are missing, changed, or decided with something else; nothing is written before."""
    claim = read_claim(sharded)
    require_same_version(sharded, claim, "Install {} to merge them.")
    shards = sharded.manifest.shards
    missing = [shard.name for shard in shards if not is_committed(sharded, shard, claim)]
    if missing:
        listed = f"{', '.join(missing[:10])}{', ...' * (len(missing) > 10)}"
        raise ArgumentError(
            f"{sharded.place}: {len(missing):,} of {len(shards):,} shards are not done ({listed}). Run eldgr evaluate "
            f"{sharded.place} first."
        )
    known = {shard.name for shard in shards}
    for folder, suffix in (("shards", ".jsonl"), ("done", ".json")):
        for path in sorted((sharded.path / folder).iterdir()):
            if not path.name.startswith(".") and (path.suffix != suffix or path.stem not in known):
                raise RunChangedError(f"{path}: not a shard that manifest.json names. Move it away.")
    if not sharded.order.is_file() or hash_of(sharded.order) != sharded.manifest.order:
        raise RunChangedError(
            f"{sharded.named(sharded.order)}: not the one that manifest.json names. Restore it from a copy."
        )
    for shard in shards:
        sharded.require_whole(shard)
        require_as_committed(sharded, shard)
    return claim


# -- one journal -------------------------------------------------------------------------------------------------------


def _join(sharded: Sharded, heads: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the journals of all shards as one.

    Raises:
        ArgumentError: `path` is the journal of another run.
    """
    with replacing(path) as out:
        out.writelines(map(sealed, heads))
        for shard in sharded.manifest.shards:
            journal = sharded.run(shard) / "journal.jsonl"
            with opened(journal) as lines:
                for number, line in enumerate(lines, start=1):
                    record = parsed(line, journal, f"line {number}")
                    if record["kind"] == "consultation":
                        out.write(line)
                        _require_of(shard, record.get("pool"), journal)
        flush_to_disk(path, out)
        if path.exists() and not filecmp.cmp(out.name, path, shallow=False):
            raise ArgumentError(f"out={str(path.parent)!r} holds another run. Give another --out.")


def _require_of(shard: ShardFile, pool: object, journal: Path) -> None:
    """Refuse a journal in which another pool was asked too, which a run of the whole pool would not have counted."""
    if pool != shard.pool:
        raise RunChangedError(
            f"{journal}: must have consultations on {shard.pool!r} alone; got some on {pool!r:.80}. Run shards "
            f"by eldgr evaluate DIR --shard N. {again(shard)}"
        )


def _heads(sharded: Sharded) -> list[dict[str, Any]]:
    """Return what the joined journal states: the whole pools, and once each what the shards state of anything else."""
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
    return [*stated["settings"].values(), *pools, *stated["role"].values(), *stated["comparisons"].values()]


def _heads_of(journal: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a journal that are not consultations; those are read when they are joined."""
    with opened(journal) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.startswith(_CONSULTATION) and parsed(line, journal, f"line {number}")["kind"] != "consultation":
                yield parsed(line, journal, f"line {number}")


# -- one run -----------------------------------------------------------------------------------------------------------


def _decide(sharded: Sharded, spools: Sequence[Path], parts: Iterator[Decided], results: Results) -> JournalTotals:
    """Count the questions of all shards, copy them in the order of the pools, and return the totals of the journals.

    Counts are taken in shard by shard. Copies of a question are in one shard, so none is missed, although the hash of a
    text differs between processes.
    """
    for whole in sharded.manifest.pools:
        results.counted.begin(pool_of(whole))
    totals, offsets = JournalTotals([]), list[int]()
    left = [shard.rows for shard in sharded.manifest.shards]
    with opened(sharded.order) as order:
        for line in order:
            number, count = json.loads(line)
            while number >= len(offsets):
                decided = next(parts)
                results.counted.absorb(decided.counted)
                totals.absorb(decided.totals)
                offsets.append(0)
            with opened(spools[number]) as file:
                file.seek(offsets[number])
                for _ in range(count):
                    results.copy(*read_question(file))
                offsets[number] = file.tell()
            left[number] -= count
            if not left[number]:
                spools[number].unlink()
    if any(left):
        raise RunChangedError(f"{sharded.order}: lacks rows. Restore it from a copy.")
    return totals


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
