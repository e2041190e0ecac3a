"""The cost of a merge of many shards, and the time of workers on Ray against plain processes.

Run: python -m benchmarks.shards [--merge 400 8] [--engines 400 4] [--rounds 1] [--delays 0 0.1]

The questions are those of `benchmarks.scale`, each pool with a number of shards. Two plain processes run every second
shard each, and share nothing. On Ray there are two workers. Both take turns, without an LM and with an LM that answers
in this process after a delay, eight questions at once a process. The work lasts from the first shard's start to the
last one's commit; the rest of the wall time is start and end. Ratios are those of medians. Other work on the machine
lengthens the wall time, and hardly the processor time. Ray's workers have the priority of other processes here. By
default theirs is lower, so that they would wait for whatever else a machine does.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks._timing import command, line
from benchmarks.scale import rows
from benchmarks.throughput import RULES, in_process
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.shards.manifest import read_sharded
from eldgr_dspy.programs.shards.ray_engine import run_on_ray
from eldgr_dspy.programs.shards.running import run_shard, uncommitted
from eldgr_dspy.programs.shards.sharding import shard_pools

ROOT = Path(__file__).resolve().parent.parent
CHILD = "import sys; from benchmarks import shards; getattr(shards, sys.argv[1])(*sys.argv[2:])"
PROCESSES, WORKERS = 2, 8
SPENT = "spent.txt"
"""The file of a directory of shards that has the seconds of processor time."""


class Cost(NamedTuple):
    """The cost of running all shards, in seconds: wall, the work's part of it, and the workers' processor time."""

    wall: float
    work: float
    cpu: float


class Way(NamedTuple):
    """A way to run all shards: its name, and the arguments of each of its processes, after the directory."""

    name: str
    processes: list[tuple[str, ...]]


WAYS = [
    Way("two plain processes", [("plain", str(half)) for half in range(PROCESSES)]),
    Way("Ray, two workers", [("on_ray",)]),
]


@contextmanager
def prepared(directory: Path, delay: float) -> Iterator[tuple[Selector, Plan]]:
    """Make the selector and the plan, and note the processor time spent meanwhile; a delay of 0 takes no LM."""
    began = time.process_time()
    if delay:
        selector = Selector()
        selector.set_lm(in_process(delay))
        yield selector, Plan([directory], rules=RULES, workers=WORKERS)
    else:
        yield heuristic_selector(), Plan([directory])
    with (directory / SPENT).open("a") as file:
        file.write(f"{time.process_time() - began}\n")


def plain(directory: str, delay: str, half: str) -> None:
    """Run every second shard of a directory, one after the other, in this process."""
    shards = range(len(read_sharded(Path(directory)).manifest.shards))
    with prepared(Path(directory), float(delay)) as (selector, plan):
        for number in shards[int(half) :: PROCESSES]:
            run_shard(directory, number, selector, plan)


def on_ray(directory: str, delay: str) -> None:
    """Run all shards of a directory by two workers on Ray."""
    run_on_ray(directory, partial(prepared, Path(directory), float(delay)), PROCESSES)


def sharded(folder: Path, questions: int, shards: int) -> Path:
    """Return a new directory of shards, none of them run."""
    folder.mkdir()
    with (folder / "river.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(rows(questions))
    shard_pools([folder / "river.jsonl"], folder / "shards", -(-questions // shards))
    return folder / "shards"


def timed(way: Way, directory: Path, delay: float) -> Cost:
    """Return what a way costs for a copy of a directory."""
    with tempfile.TemporaryDirectory(dir=directory.parent) as name, (Path(name) / "said.txt").open("w+") as said:
        copy = shutil.copytree(directory, Path(name) / "shards")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_worker_niceness": "0"}
        began = time.perf_counter()
        running = [
            subprocess.Popen(
                [sys.executable, "-c", CHILD, function, str(copy), str(delay), *arguments], env=environment, stderr=said
            )
            for function, *arguments in way.processes
        ]
        codes = [process.wait() for process in running]
        wall = time.perf_counter() - began
        if any(codes) or uncommitted(copy):
            said.seek(0)
            raise SystemExit(f"{way.name} did not run all shards:\n{said.read()}")
        first = min(file.stat().st_mtime for file in (copy / "runs").glob(".*.lock"))
        last = max(file.stat().st_mtime for file in (copy / "done").iterdir())
        return Cost(wall, last - first, sum(map(float, (copy / SPENT).read_text().split())))


def compare(directory: Path, delay: float, rounds: int) -> None:
    """Print the time of each way, and the ratio of Ray to plain processes."""
    took = [[timed(way, directory, delay) for way in WAYS] for _ in range(rounds)]
    judge = f"an LM of {delay * 1e3:g} ms" if delay else "no LM"
    medians = list[float]()
    for way, costs in zip(WAYS, zip(*took, strict=True), strict=True):
        medians = [median(cost.work for cost in costs), median(cost.cpu for cost in costs), *medians]
        line(f"{way.name}, {judge}, work", medians[0], "s")
        line("the same, processor time of the workers", medians[1], "s")
        line("the same, start and end", median(cost.wall - cost.work for cost in costs), "s")
    line(f"Ray over plain processes, {judge}, work", medians[0] / medians[2], "x", "1.15")
    line("the same, processor time of the workers", medians[1] / medians[3], "x")


def merged(folder: Path, questions: int, shards: int) -> None:
    """Print the cost of a merge."""
    directory = sharded(folder / "merge", questions, shards)
    for half in range(PROCESSES):
        plain(str(directory), "0", str(half))
    took, cpu, peak = command("merge", str(directory), "--out", str(folder / "run"))
    count = len(read_sharded(directory).manifest.shards)
    line(f"merge of {count} shards, {questions:,} questions, wall", took, "s")
    line("the same, processor time", cpu, "s")
    line("the same, peak memory", peak, "MiB")


def main() -> None:
    """Print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--merge", type=int, nargs=2, default=[400, 8], metavar=("QUESTIONS", "SHARDS"))
    parser.add_argument("--engines", type=int, nargs=2, default=[400, 4], metavar=("QUESTIONS", "SHARDS"))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--delays", type=float, nargs="+", default=[0, 0.1], metavar="SECONDS", help="of the LM; 0: none"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        merged(Path(name), *given.merge)
        directory = sharded(Path(name) / "engines", *given.engines)
        for delay in given.delays:
            compare(directory, delay, given.rounds)


if __name__ == "__main__":
    main()
