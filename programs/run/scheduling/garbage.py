"""Garbage collection during a run: unchanged, but rarer.

Python looks for cycles whenever some hundreds more objects have been made than freed, and now and then among all that
exist. A run makes many objects that live as long as their question, and few cycles. A seventh of the time of its
questions was spent looking for cycles (`python -m benchmarks.throughput`).
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_OBJECTS = 50_000  # about ten megabytes at most, if all of them are garbage

_before = list[tuple[int, int, int]]()  # the thresholds that each run under way has found, the first to start first
_lock = Lock()


@contextmanager
def rarer_collections() -> Iterator[None]:
    """Look for cycles less often inside the block; the last of several runs to end restores what the first found."""
    with _lock:
        _before.append(gc.get_threshold())
        youngest, *older = gc.get_threshold()
        if 0 < youngest < _OBJECTS:  # at 0 the user has switched it off
            gc.set_threshold(_OBJECTS, *older)
    try:
        yield
    finally:
        with _lock:
            thresholds = _before[0]
            _before.pop()
            if not _before:
                gc.set_threshold(*thresholds)
