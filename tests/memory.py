"""How much memory a function takes, measured in a process of its own, and what is left of it after a block.

Calls that earlier tests gave up may still read in threads of this process, and what they allocate would count.
"""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, NamedTuple


class Memory(NamedTuple):
    """Bytes that Python allocated: at the most at one time, and still held by what the function returned."""

    peak: int
    size: int


def memory_of(function: Callable[..., Any], *args: Any) -> Memory:
    """The memory of the second call: the first also loads what is loaded once. The function must be one of a module."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        return alone.submit(_measure, function, *args).result()


def _measure(function: Callable[..., Any], *args: Any) -> Memory:
    function(*args)
    gc.collect()
    tracemalloc.start()
    _value = function(*args)
    size, peak = tracemalloc.get_traced_memory()
    return Memory(peak, size)


@contextmanager
def collect() -> Iterator[None]:
    """Collect at the end of the block; what was imported for the tests is frozen and not looked through."""
    yield
    gc.collect()
