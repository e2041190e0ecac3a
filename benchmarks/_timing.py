"""Helpers that the benchmarks share: processor time of the best of several rounds, and one printed line a result."""

import gc
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path


def cpu(work: Callable[[], object], *, rounds: int = 5) -> float:
    """Return the processor seconds of the best of `rounds`."""
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def peak_mib() -> float:
    """Return the largest resident size of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def pools_dir() -> Path:
    """Return the folder of real pools that ELDGR_POOLS names, or the one next to the checkout."""
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    return Path(os.environ.get("ELDGR_POOLS", beside))


def line(what: str, value: float, unit: str, aim: str = "") -> None:
    """Print one result, with its aim."""
    print(f"{what:<68} {value:>10.3f} {unit:<4} {aim and f'(aim: {aim})'}")
