"""Read finished runs given as `[NAME=]RUN[:POOL]`: a run has the name that it is given, or that of its directory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.finished_run import RunRead, read_run
from eldgr_dspy.figures.results.summary_fields import PoolFigures, Summary


@dataclass(frozen=True)
class NamedRun:
    """A finished run under a name, with those of its pools that are meant.

    Attributes:
        name: What the run stands for. pools: names of pools. summary: the content of `summary.json`.
    """

    name: str
    run: RunRead
    pools: Sequence[str]
    summary: Summary

    def figures(self, pool: str) -> PoolFigures:
        """Return a pool's part of `summary.json`."""
        return self.summary["pools"][pool]

    def sha256(self, pool: str) -> str:
        """Return the hash of a pool's content."""
        return str(self.run.stated("pool")[pool]["details"]["sha256"])

    def __str__(self) -> str:
        return self.name if self.name == str(self.run.path) else f"{self.name}={self.run.path}"


def named_runs(arguments: Iterable[str]) -> dict[str, NamedRun]:
    """Read runs by name, in the order given.

    Raises:
        ArgumentError: a name is given twice; a run cannot be read, is not finished, or has no pool of that name.
        JournalError: a journal cannot be read.
    """
    runs = dict[str, NamedRun]()
    for argument in arguments:
        name, _, place = argument.partition("=") if not Path(argument).is_dir() else ("", "", "")
        path, pool = _located(place or argument)
        named = _named(name if name and place else argument, read_run(path), pool)
        if named.name in runs:
            raise ArgumentError(f"{argument!r}: {named.name!r} is given already; give each run a name, NAME=RUN.")
        runs[named.name] = named
    return runs


def _located(place: str) -> tuple[Path, str | None]:
    """A directory whose name has a colon is that directory; otherwise a pool's name may follow the last colon."""
    run, colon, pool = place.rpartition(":")
    if Path(place).is_dir() or not colon or not Path(run).is_dir():
        return Path(place), None
    return Path(run), pool


def _named(name: str, run: RunRead, pool: str | None) -> NamedRun:
    summary = run.summary()
    pools = [*summary["pools"]]
    if pool is not None and pool not in pools:
        raise ArgumentError(f"{run.path} has no pool {pool!r}; its pools are {', '.join(map(repr, pools)) or 'none'}.")
    return NamedRun(name, run, pools if pool is None else [pool], summary)
