"""What the tests of Ray share: a small cluster, and selectors that workers can make by a name."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.shards.ray_engine import run_on_ray
from eldgr_dspy.programs.testing import text_of
from tests.capitals import Flaky, obliging, selector_with

LONGEST = 240  # seconds for a test


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


def run(directory: Path, prepare: Callable[..., Any] = heuristic, **plan: Any) -> None:
    """Run the shards of a directory with two workers."""
    run_on_ray(directory, partial(prepare, directory, **plan), processes=2)


def flaky(folder: Path, request: Any) -> Any:
    """A judge whose server is away for questions 1 and 7."""
    return Flaky(lambda number: number in (1, 7))(request)
