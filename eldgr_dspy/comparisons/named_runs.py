"""Read finished runs given as `NAME=RUN`, since the names of its pools do not tell what a run stands for.

Each name means one pool of a run: the only one of the task that the name needs, or the one named in `NAME=RUN:POOL`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.finished_run import RunRead, read_run
from eldgr_dspy.figures.results.summary import PoolFigures, Summary
from eldgr_dspy.words import Task


@dataclass(frozen=True)
class NamedRun:
    """A finished run under a name, with its pool; the pool has scored questions.

    Attributes:
        name: What the run stands for. pool: the pool's name. summary: the content of `summary.json`.
    """

    name: str
    run: RunRead
    pool: str
    summary: Summary

    @property
    def figures(self) -> PoolFigures:
        """The pool's part of `summary.json`."""
        return self.summary["pools"][self.pool]

    @property
    def sha256(self) -> str:
        """The hash of the pool's content."""
        return str(self.run.stated("pool")[self.pool]["details"]["sha256"])

    def __str__(self) -> str:
        return f"{self.name}={self.run.path}"


def named_runs(arguments: Iterable[str], tasks: Mapping[str, Task] | None = None) -> dict[str, NamedRun]:
    """Read runs given as `NAME=RUN` or `NAME=RUN:POOL`, in the order given.

    Args:
        arguments: As typed.
        tasks: The known names, with the task that each needs; None if any name and task is allowed.

    Raises:
        ArgumentError: an argument does not name a run; a name is unknown or given twice; a run cannot be read or is not
            finished; the pool is ambiguous, is of another task, or has no question with a gold answer.
        JournalError: a journal cannot be read.
    """
    runs = dict[str, NamedRun]()
    for argument in arguments:
        name, _, given = argument.partition("=")
        if not name or not given:
            raise ArgumentError(
                f"{argument!r} does not name a run; give NAME=RUN, such as {_example(tasks)}=runs/NAME."
            )
        if tasks is not None and name not in tasks:
            raise ArgumentError(f"{argument!r}: {name!r} is not known; use one of {', '.join(tasks)}.")
        if name in runs:
            raise ArgumentError(f"{argument!r}: {name!r} is given already, as {runs[name]}; give each name once.")
        runs[name] = _named(name, given, None if tasks is None else tasks[name])
    return runs


def _example(tasks: Mapping[str, Task] | None) -> str:
    return next(iter(tasks)) if tasks else "full"


def _named(name: str, given: str, task: Task | None) -> NamedRun:
    path, pool = _located(given)
    run = read_run(path)
    summary = run.summary()
    named = NamedRun(name, run, _pool(f"{name}={path}", summary["pools"], pool, task), summary)
    if not named.figures["n_scored"]:
        lack = "has no question with a gold answer, so nothing is scored" if named.figures["n"] else "is empty"
        raise ArgumentError(f"{named}: pool {named.pool!r} {lack}; give a run on a pool with gold answers.")
    return named


def _located(given: str) -> tuple[Path, str | None]:
    """A directory whose name has a colon is that directory; otherwise a pool's name may follow the last colon."""
    run, colon, pool = given.rpartition(":")
    if Path(given).is_dir() or not colon or not Path(run).is_dir():
        return Path(given), None
    return Path(run), pool


def _pool(said: str, pools: Mapping[str, PoolFigures], given: str | None, task: Task | None) -> str:
    listed = ", ".join(f"{name!r} ({pool['task']})" for name, pool in pools.items()) or "none"
    if given is not None and given not in pools:
        raise ArgumentError(f"{said} has no pool {given!r}; its pools are {listed}.")
    fitting = [name for name in ([given] if given is not None else pools) if task in (None, pools[name]["task"])]
    if not fitting:
        raise ArgumentError(
            f"{said} must be a run on a pool of task {task or 'arithmetic or retrieval'}; its pools are {listed}."
            if given is None
            else f"{said} must be on a pool of task {task}, and {given!r} is not; its pools are {listed}."
        )
    if len(fitting) > 1:
        raise ArgumentError(f"{said} has several pools, {listed}; say which by its name, as {said}:{fitting[0]}.")
    return fitting[0]
