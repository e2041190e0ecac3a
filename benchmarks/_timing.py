"""Helpers that the benchmarks share: processor time of the best of several rounds, and one printed line a result."""

import gc
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

# The peak is read from /proc because a child's getrusage begins with its parent's.
COMMAND = """
import sys, time
from eldgr_dspy.programs.commands import main
code = main(sys.argv[1:])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024, time.process_time())
sys.exit(code)
"""


class Cost(NamedTuple):
    """The cost of a command: wall and processor seconds, and the peak of its memory in MiB."""

    wall: float
    cpu: float
    peak: float


def cpu(work: Callable[[], object], *, rounds: int = 5) -> float:
    """Return the processor seconds of the best of `rounds`."""
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def peak_mib() -> float:
    """Return the largest resident size of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def command(*arguments: str) -> Cost:
    """Return the cost of `eldgr` with these arguments in its own process, start included."""
    start = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", COMMAND, *arguments], capture_output=True, text=True, check=True)
    peak, processor = map(float, run.stdout.split()[-2:])
    return Cost(time.perf_counter() - start, processor, peak)


def pools_dir() -> Path:
    """Return the folder of real pools that ELDGR_POOLS names, or the one next to the checkout."""
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    return Path(os.environ.get("ELDGR_POOLS", beside))


def line(what: str, value: float, unit: str, aim: str = "") -> None:
    """Print one result, with its aim."""
    print(f"{what:<68} {value:>10.3f} {unit:<4} {aim and f'(aim: {aim})'}")
