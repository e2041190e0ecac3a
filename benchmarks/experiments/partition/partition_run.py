"""The experiment, from drawn questions to tables, in jobs that are each done once.

For each seed, questions are drawn, a start is taught right replies and an NLI model pairs. Each arm is trained from
that start. All policies answer the held-out questions, pools are sampled, and the rules decide on them. What is asked
of the results was fixed before, in `outcomes.toml`.
"""

import json
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from benchmarks.experiments.partition.arms import START, train_arm, write_rows
from benchmarks.experiments.partition.jobs import Job, do_all, write_json
from benchmarks.experiments.partition.judged_pools import decide, sample_pools
from benchmarks.experiments.partition.outcomes import Outcomes, outcomes
from benchmarks.experiments.partition.partition_results import results_of
from benchmarks.experiments.partition.partition_tables import write_tables
from benchmarks.experiments.partition.policy_replies import greedy
from benchmarks.experiments.partition.reader import teach_reader
from benchmarks.experiments.partition.sizes import Size
from benchmarks.experiments.partition.starting import require_in_range, teach_start
from benchmarks.experiments.partition.task import drawn_questions, fingerprint, of_both
from eldgr_dspy.base.differences import differences
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.programs.service.file_locks import hold

FILE: Final = "partition.json"
"""The name of the record of a run's settings in its folder."""

_LIBRARIES: Final = ("torch", "transformers", "trl", "datasets", "accelerate", "sentence_transformers")
_PACKAGES: Final = ("eldgr_dspy", "torch", "transformers", "trl", "sentence-transformers")


def run(out: Path, size: Size, say: Callable[[str], object]) -> dict[str, Any]:
    """Run the experiment, or its unfinished part, and return its results."""
    require_libraries()
    plan = outcomes()
    begin(out, stated_by(size, plan))
    with alone(out):
        for jobs in (first_jobs(out, size), training_jobs(out, size), last_jobs(out, size, plan)):
            do_all(out / "jobs", list(jobs), size.processes, say)
        results = {
            "versions": versions(),
            "processor": platform.machine(),
            **results_of(out, size, plan),
        }
        write_json(out / "results.json", results)
        write_tables(out / "tables.md", results)
    return results


# -- the jobs, in three rounds -----------------------------------------------------------------------------------------


def first_jobs(out: Path, size: Size) -> Iterator[Job]:
    """Yield the jobs that wait for nothing: data, start and reader of each seed."""
    for seed in size.seeds:
        yield Job(f"{seed}/start", start, (out, size, seed))
        yield Job(f"{seed}/reader", reader, (out, size, seed))


def training_jobs(out: Path, size: Size) -> Iterator[Job]:
    for run_ in range(1, size.runs + 1):
        for seed in size.seeds:
            for arm in size.arms:
                yield Job(f"{seed}/{arm}-{run_}", train_arm, (folder_of(out, seed), arm, run_, size, seed))


def last_jobs(out: Path, size: Size, plan: Outcomes) -> Iterator[Job]:
    """Yield the jobs that ask policies: greedy replies of all, and the pools with their decisions."""
    for seed in size.seeds:
        for policy in policies(size):
            yield Job(f"{seed}/{policy}.replies", replies, (out, policy, size, seed))
        yield Job(f"{seed}/pools", pools, (out, size, seed, plan))


def policies(size: Size) -> list[str]:
    """Return the names of the folders of a seed's policies: the start, and each run of each arm."""
    return [START, *(f"{arm}-{run_}" for arm in size.arms for run_ in range(1, size.runs + 1))]


def folder_of(out: Path, seed: int) -> Path:
    return out / f"seed-{seed}"


def start(out: Path, size: Size, seed: int) -> Mapping[str, Any]:
    """Draw the questions of a seed, write the rows to train on, and teach the start."""
    folder, questions = folder_of(out, seed), drawn_questions(size, seed)
    write_rows(folder / "data" / "train.jsonl", of_both(questions, "trained"))
    result = teach_start(folder / START, questions, size, seed)
    if size.warm.in_range:
        require_in_range(result["exact_match"])
    return {**result, "questions": fingerprint(questions)}


def reader(out: Path, size: Size, seed: int) -> Mapping[str, float]:
    return teach_reader(folder_of(out, seed) / "reader", drawn_questions(size, seed), size, seed)


def replies(out: Path, policy: str, size: Size, seed: int) -> None:
    greedy(folder_of(out, seed), policy, drawn_questions(size, seed), size)


def pools(out: Path, size: Size, seed: int, plan: Outcomes) -> Mapping[str, Any]:
    """Sample the pools of a seed, and decide on them."""
    folder, questions = folder_of(out, seed), drawn_questions(size, seed)
    for source in plan.pools:
        sample_pools(folder, source, questions, size, seed)
    return {source: decide(folder, source, plan.error_rates, seed) for source in plan.pools}


# -- the folder --------------------------------------------------------------------------------------------------------


def begin(out: Path, settings: Mapping[str, Any]) -> None:
    """Start a run in a folder, or resume one that was started with the same settings."""
    path, plain = out / FILE, json.loads(json.dumps(settings))
    if path.exists():
        if changes := differences(json.loads(path.read_text("utf-8")), plain):
            lines = "\n".join(f"  {line}" for line in changes)
            raise RunChangedError(
                f"{out}: this run was started with other settings:\n{lines}\nUndo the change, or give another --out."
            )
        return
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise ArgumentError(f"--out must be a folder that is empty or new; {str(out)!r} exists and has no {FILE}.")
    out.mkdir(parents=True, exist_ok=True)
    write_json(path, plain)


def stated_by(size: Size, plan: Outcomes) -> dict[str, Any]:
    """Return what the numbers of a run depend on: its size, but for how many jobs run at once, and the rest."""
    numbers = {name: value for name, value in asdict(size).items() if name != "processes"}
    return {**numbers, "outcomes": plan.sha256, "versions": versions()}


def alone(out: Path) -> AbstractContextManager[None]:
    """Keep other processes from a folder. Raises `RunLockedError` if one is at work in it."""
    return hold(out / f".{FILE}.lock", f"{out}: another process is at work in it; wait for it, or give another --out.")


def versions() -> dict[str, str]:
    """Return the versions that the numbers of a run may depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


def require_libraries() -> None:
    """Raise an `ArgumentError` that names a library which is missing."""
    for name in _LIBRARIES:
        if find_spec(name) is None:
            raise ArgumentError(f"The experiment needs {name}; run: pip install 'eldgr_dspy[train,nli]'")
