"""Shards inside a run directory: where whole pools are run by a cluster, and merged into that directory."""

from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree
from typing import Final

from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.pools import open_pools
from eldgr_dspy.programs.file_locks import locked
from eldgr_dspy.programs.shards.manifest import is_sharded, read_sharded
from eldgr_dspy.programs.shards.sharding import ROWS, cut

FOLDER: Final = "shards"

_SHARDS: Final = 64
_FEWEST: Final = 100


def shards_within(out: Path, paths: Sequence[str | Path]) -> Path:
    """Cut pools into shards inside a run directory, unless they are there already, and return the shards' directory.

    There are about 64 shards, of 100 to 50,000 questions, so that each of several processes runs several.

    Args:
        out: The run directory. paths: the pools.

    Raises:
        ArgumentError: `out` has a run that was made without shards.
        RunChangedError: its shards are of other pools, or the pools have changed.
        RunLockedError: another process is cutting them. PoolError: a pool cannot be read.
        OSError: a file cannot be written.
    """
    directory = out / FOLDER
    if not is_sharded(directory) and (out / "journal.jsonl").exists():
        raise ArgumentError(f"out={str(out)!r} has a run that was made without --engine. Give another --out.")
    pools = open_pools(paths)
    out.mkdir(parents=True, exist_ok=True)
    with locked(out / f".{FOLDER}.lock", f"{directory}: another process is cutting its shards. Wait for it."):
        if is_sharded(directory):
            held = [(pool.name, pool.sha256) for pool in read_sharded(directory).manifest.pools]
            if held != [(pool.name, pool.sha256) for pool in pools]:
                raise RunChangedError(
                    f"{directory}: holds the shards of {', '.join(name for name, _ in held)}, and their content is not "
                    "that of the given pools. Give the same pools, or another --out."
                )
            return directory
        unfinished = out / f".{FOLDER}.tmp"
        rmtree(unfinished, ignore_errors=True)
        cut(pools, unfinished, min(ROWS, max(_FEWEST, -(-sum(pool.n for pool in pools) // _SHARDS))))
        unfinished.rename(directory)
    return directory
