"""Wall time and memory of imports, each in a fresh interpreter.

Run: python -m benchmarks.imports
"""

import subprocess
import sys

from benchmarks._timing import line

STATEMENTS = (
    "pass",
    "import eldgr_dspy",
    "from eldgr_dspy import decide",
    "from eldgr_dspy import statistics",
    "import dspy",
    "from eldgr_dspy import Selector",
    "import eldgr_dspy.programs.commands",
)

MEASURE = """
import resource, time
began = time.perf_counter()
{statement}
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def measure(statement: str) -> tuple[float, float]:
    """Return the seconds and the peak MiB of the best of three interpreters."""
    runs = []
    for _ in range(3):
        code = MEASURE.format(statement=statement)
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        seconds, mib = map(float, run.stdout.split())
        runs.append((seconds, mib))
    return min(runs)


def main() -> None:
    for statement in STATEMENTS:
        seconds, mib = measure(statement)
        line(f"{statement} ({mib:.0f} MiB)", seconds * 1e3, "ms")


if __name__ == "__main__":
    main()
