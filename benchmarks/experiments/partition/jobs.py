"""Jobs that are each done once, several at a time: a finished one has a file, and is skipped the next time."""

import json
import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eldgr_dspy.base.files import replacing


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of work, which can be sent to another process.

    Attributes:
        name: Of its file in the folder of jobs; slashes make folders.
        work: A function of a module, which returns what it found as plain JSON. An interrupted job is done again, and
            must cope with its own leftovers.
        arguments: Of the function.
    """

    name: str
    work: Callable[..., Mapping[str, Any] | None]
    arguments: tuple[Any, ...]


def do_all(folder: Path, jobs: Sequence[Job], processes: int, say: Callable[[str], object]) -> None:
    """Do the jobs that are not done; the order does not matter.

    Raises:
        Exception: That of the first job that failed, once those under way have ended; finished ones stay done.
    """
    todo = [job for job in jobs if not _file(folder, job.name).exists()]
    if processes == 1:
        for job in todo:
            say(_line(job, do(folder, job)))
        return
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(todo)) or 1, mp_context=spawning) as pool:
        under_way = {pool.submit(do, folder, job): job for job in todo}
        try:
            for future in as_completed(under_way):
                say(_line(under_way[future], future.result()))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def do(folder: Path, job: Job) -> float:
    """Do a job, write down what it found, and return the seconds that it took; what it prints is in a file beside."""
    import torch

    if not torch.cuda.is_available():
        torch.set_num_threads(1)  # models as small as these are slower with two, and the numbers may differ
    path, start = _file(folder, job.name), time.monotonic()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".log").open("w", encoding="utf-8") as log, redirect_stdout(log), redirect_stderr(log):
        result = job.work(*job.arguments) or {}
    seconds = round(time.monotonic() - start, 1)
    write_json(path, {"seconds": seconds, "found": result})
    return seconds


def found_by(folder: Path, name: str) -> Any:
    return json.loads(_file(folder, name).read_text("utf-8"))["found"]


def seconds_of(folder: Path) -> dict[str, float]:
    """Return the seconds of each finished job, by its name: those of the call that finished it."""
    return {
        path.relative_to(folder).with_suffix("").as_posix(): json.loads(path.read_text("utf-8"))["seconds"]
        for path in sorted(folder.rglob("*.json"))
    }


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file of JSON, whole or not at all."""
    with replacing(path) as out:
        out.write(json.dumps(content, indent=1, allow_nan=False).encode("ascii") + b"\n")


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _line(job: Job, seconds: float) -> str:
    return f"{job.name}: {seconds:.0f} s"
