"""Open the pools of a run again: where they were, or at the files given now, and only with the content they had.

Candidates, evidence and gold answers are in the pools and not in the journal.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.figures.finished_run import RunRead
from eldgr_dspy.pools import Pool, open_pools, pool_name


def reopen(run: RunRead, names: Sequence[str], files: Sequence[Path], command: str) -> list[Pool]:
    """Open pools of a run, and check them against its journal.

    Args:
        run: The run. names: which of its pools. files: where pools are now that have been moved.
        command: What to type if one is missing, with FILE in it.

    Raises:
        ArgumentError: a pool is not there, or a file is not one of these; or the answer type of the user's own was
            changed. PoolError: a pool cannot be read.
        RunChangedError: a pool is not the one that the run was made on.
    """
    moved = {pool_name(path): path for path in files}
    for name, path in moved.items():
        if name not in names:
            names_there = ", ".join(map(repr, names))
            raise ArgumentError(f"{path}: {run.path} was not made on a pool {name!r}; it was made on {names_there}.")
    statements = run.heads_of("pool")
    paths = [moved.get(name) or _where(run, name, statements[name], command) for name in names]
    pools = open_pools(paths, None if run.ungiven else run.settings.type)
    for pool in pools:
        made_on = statements[pool.name]["details"]["sha256"]
        if pool.sha256 != made_on:
            raise RunChangedError(
                f"{pool.path}: {run.path} was made on another pool {pool.name!r} (sha256 {made_on!r:.80}) than this "
                f"one ({pool.sha256!r}); give the file that it was made on."
            )
    return pools


def _where(run: RunRead, name: str, head: Mapping[str, Any], command: str) -> Path:
    path = head.get("path")
    if isinstance(path, str) and Path(path).exists():
        return Path(path)
    was = f"which was {path!r} and is not there" if isinstance(path, str) else "and does not say where it was"
    raise ArgumentError(
        f"{run.path} was made on a pool {name!r}, {was}; give its file: {command} "
        f"(sha256 {head['details']['sha256']:.16}..., {head['details']['rows']:,} questions)."
    )
