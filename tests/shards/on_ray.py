"""What the tests of Ray share: a small cluster, and selectors that workers can make by a name."""

import gc
import os
import random
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, Watcher, evaluate
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.shards.merging import merge
from eldgr_dspy.programs.shards.ray_engine import run_on_ray
from eldgr_dspy.programs.shards.running import uncommitted
from eldgr_dspy.programs.testing import text_of
from tests.capitals import Flaky, obliging, selector_with
from tests.house.doc_blocks import ROOT
from tests.shards.sharded import results

LONGEST = 240  # seconds for a test
STORE = 80 * 2**20  # bytes, of the object store of a machine
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "RAY_worker_niceness": "0"}
"""Has workers find the tests, and run as fast as other processes: Ray's default is the lowest priority but four."""


@contextmanager
def environment() -> Iterator[None]:
    """The variables of a cluster of this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield


@contextmanager
def two_workers() -> Iterator[None]:
    """A cluster of two CPUs on this machine, whose workers find the tests."""
    import ray

    with environment():
        try:
            try:
                ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=STORE)
            except (OSError, RuntimeError) as error:
                pytest.skip(f"Ray cannot be started on this machine: {error}")
            yield
        finally:
            ray.shutdown()
            forgotten()


def forgotten() -> None:
    """Have Python forget processes that Ray has ended and not waited for, of which it would warn in any later test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    """End a test that stands still."""

    def end(*_: object) -> None:
        raise TimeoutError(f"the test took {LONGEST} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(LONGEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@contextmanager
def heuristic(directory: Path, **plan: Any) -> Iterator[tuple[Selector, Plan]]:
    """The heuristic roles."""
    yield heuristic_selector(), Plan([directory], **plan)


@contextmanager
def scripted(
    directory: Path, reply: Callable[[Path, Any], Any] | None = None, **plan: Any
) -> Iterator[tuple[Selector, Plan]]:
    """A scripted judge; its replies may depend on files next to the directory."""
    yield selector_with(obliging if reply is None else partial(reply, directory.parent))[0], Plan([directory], **plan)


class Faulty(dspy.Module):
    """A judge with a fault in its code."""

    def forward(self, **_: Any) -> Any:
        return 1 / 0


@contextmanager
def faulty(directory: Path, **plan: Any) -> Iterator[tuple[Selector, Plan]]:
    """A judge whose code is at fault."""
    selector = heuristic_selector()
    selector.judge = Faulty()
    yield selector, Plan([directory], **plan)


def poisoned(folder: Path, request: Any) -> Any:
    """A judge that ends its process on question 4."""
    if "capital number 4?" in text_of(request):
        os.kill(os.getpid(), signal.SIGKILL)
    return obliging(request)


def slow(folder: Path, request: Any) -> Any:
    """A judge that takes a moment, and notes who asked what."""
    with (folder / "asked.txt").open("a") as file:
        file.write(f"{os.getpid()} {text_of(request).split('capital number ')[1].split('?')[0]}\n")
    time.sleep(0.05)
    return obliging(request)


def held(folder: Path, request: Any) -> Any:
    """The same judge, which after six questions takes as long as there is a file `hold`."""
    reply = slow(folder, request)
    while (folder / "hold").exists() and len((folder / "asked.txt").read_text().splitlines()) > 6:
        time.sleep(0.05)
    return reply


def run(directory: Path, prepare: Callable[..., Any] = heuristic, watcher: Watcher | None = None, **plan: Any) -> None:
    """Run the shards of a directory with two workers."""
    run_on_ray(directory, partial(prepare, directory, **plan), processes=2, watcher=watcher)


def flaky(folder: Path, request: Any) -> Any:
    """A judge whose server is away for questions 1 and 7."""
    return Flaky(lambda number: number in (1, 7))(request)


# -- kills, and what has to hold after them ----------------------------------------------------------------------------

N = 40
PATIENCE = 120.0  # seconds, for a machine that is busy


def asked(directory: Path) -> list[tuple[int, str]]:
    """Each request so far: the process that sent it, and the question."""
    path = directory.parent / "asked.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(process), question) for process, question in map(str.split, lines)]


def wait_for(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def require_undisturbed(directory: Path, most_again: int, n: int = N) -> int:
    """Hold the merged run against that of one process; return how many questions were asked again."""
    assert uncommitted(directory) == []
    merge(directory, directory.parent / "merged")
    plain = Plan([directory.parent / "capitals.jsonl"], directory.parent / "plain")
    evaluate(selector_with(obliging)[0], plain)
    assert results(directory.parent / "merged") == results(directory.parent / "plain")
    keys = [entry.key for entry in read_journal(directory.parent / "merged" / "journal.jsonl")]
    assert len(keys) == len(set(keys)) == n
    times = Counter(question for _, question in asked(directory))
    assert len(times) == n
    assert times.total() - n <= most_again
    return times.total() - n


@contextmanager
def killing(directory: Path, kills: int, seed: int, longest: float = 0.2) -> Iterator[list[int]]:
    """Kill workers meanwhile, each up to `longest` seconds after it has asked something; gives which were."""
    draw, killed, over = random.Random(seed), list[int](), threading.Event()

    def kill() -> None:
        while len(killed) < kills and not over.is_set():
            alive = [process for process, _ in asked(directory)[-3:] if process not in killed]
            if alive:
                time.sleep(draw.uniform(0, longest))
                with suppress(ProcessLookupError):
                    os.kill(alive[-1], signal.SIGKILL)
                killed.append(alive[-1])
            time.sleep(0.02)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join(PATIENCE)
