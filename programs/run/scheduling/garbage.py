"""Garbage collection while a run is under way: as ever, but rarer.

Python looks for cycles whenever so many more objects have been made than freed, some hundreds by default, and now and
then among all that there are. A run makes many that live as long as their question and few cycles, so that of the time
which its questions took a seventh went into looking (`python -m benchmarks.throughput`).
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_OBJECTS = 50_000  # some ten megabytes at most, where all of them are garbage

_before = list[tuple[int, int, int]]()  # the thresholds that each run under way has found, the first to begin first
_lock = Lock()


@contextmanager
def rarer_collections() -> Iterator[None]:
    """Look for cycles less often inside the block; the last of several runs to end leaves all as the first found it."""
    with _lock:
        _before.append(gc.get_threshold())
        youngest, *older = gc.get_threshold()
        if 0 < youngest < _OBJECTS:  # at 0 the user has switched it off
            gc.set_threshold(_OBJECTS, *older)
    try:
        yield
    finally:
        with _lock:
            found = _before[0]
            _before.pop()
            if not _before:
                gc.set_threshold(*found)
