"""Rules that are as majority where a shard is run, and misbehave in another process, which merges."""

import multiprocessing
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from eldgr_dspy.cases import Case
from eldgr_dspy.decision import Choice, Steps

HELD_BY = "ELDGR_TEST_HELD_BY"
"""The variable with the path of a pipe that `held` reads to its end."""


def ended(case: Case) -> Steps:
    """Ends the process."""
    if is_elsewhere():
        os._exit(9)
    yield from ()
    return Choice("consensus", case.consensus)


def curious(case: Case) -> Steps:
    """Asks the judge on the questions of which it was not asked."""
    reply: Any = (yield "judge") if is_elsewhere() else None
    return Choice("consensus", case.consensus if reply is None else case.stated(reply))


def held(case: Case) -> Steps:
    """Waits on the first question until nobody writes to a pipe any more, or it is gone."""
    if is_elsewhere():
        _wait()
    yield from ()
    return Choice("consensus", case.consensus)


@cache
def _wait() -> None:
    with suppress(FileNotFoundError):
        Path(os.environ[HELD_BY]).read_bytes()


def is_elsewhere() -> bool:
    """Whether this is a process that another one of Python has started."""
    return multiprocessing.parent_process() is not None
