"""Pools cut into shards, run and merged: what the tests of shards share."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.shards.running import run_shard, uncommitted
from eldgr_dspy.programs.shards.sharding import shard_pools
from tests.capitals import untimed, write_pool
from tests.finished_runs import numbered


class Killed(BaseException):
    """The process ends here."""


def killed(*_: Any) -> Any:
    """Do in the place of a function what a kill does: nothing after it is done."""
    raise Killed


def sharded(folder: Path, rows: int = 3, n: int = 8) -> Path:
    """A directory of shards of a pool named `capitals`, none of them run."""
    shard_pools([write_pool(folder / "capitals.jsonl", numbered(n))], folder / "shards", rows)
    return folder / "shards"


def run_all(directory: str | Path, selector: Callable[[], Selector] = heuristic_selector, **plan: Any) -> None:
    """Run every shard that is not done."""
    for number in uncommitted(directory):
        run_shard(directory, number, selector(), Plan([directory], **plan))


def results(run: Path) -> dict[str, Any]:
    """The results of a run, without times; paths of pools aside."""
    found: dict[str, Any] = {
        name: json.loads(untimed(json.loads((run / name).read_text(encoding="utf-8"))))
        for name in ("summary.json", "record.json")
    }
    return {**found, "decisions": (run / "decisions.jsonl").read_text(encoding="utf-8")}


def ids(files: Sequence[Path]) -> list[str]:
    """The ids of the rows of files, in order."""
    return [json.loads(line)["id"] for file in files for line in file.read_text(encoding="utf-8").splitlines()]
