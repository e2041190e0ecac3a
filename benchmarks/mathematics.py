"""What it costs to compare mathematics: the worst of some hostile pairs, and pools of ten different answers.

    python -m benchmarks.mathematics

Each hostile pair passes the check of its text, so it is compared, in a process of its own. Printed are the processor
time of the pair, up to the limit that ends the process, and the largest resident size of the process, Python and
`math-verify` included. Timed by the clock are the start of the process with one easy pair, and then the pools: the
first time, and again when every pair is remembered.
"""

import json
import os
import subprocess
import sys
from time import perf_counter
from typing import Any

from benchmarks._timing import line
from eldgr_dspy.answer_types.comparing import SECONDS
from eldgr_dspy.answer_types.math import Math
from eldgr_dspy.text.latex import fault

START = "from eldgr_dspy.answer_types.comparing import serve; serve()"
MATRIX, LETTERS = r"\begin{pmatrix}a&b\\c&d\end{pmatrix}", "a+b+c+d+e+f+g"
HOSTILE = {
    "an ordinary pair": ("1/2", "0.5"),
    "powers of sines": (r"\sin(x)^{20}+\cos(y)^{20}\tan(x+y)", r"\cos(x)^{20}+\sin(y)^{20}\tan(x+y)"),
    "powers of a sum of eight letters": (f"({LETTERS}+h)^{{99}}-({LETTERS})^{{99}}", f"({LETTERS}+h)^{{99}}"),
    "a product of 59 brackets": tuple("".join(f"(x+{n})" for n in range(k, k + 59)) for k in (1, 2)),
    "a sum of 27 fractions": tuple("+".join(rf"\frac{{1}}{{x{s}{n}}}" for n in range(1, 28)) for s in "+-"),
    "40 towers of letters": ("x^{y^{z}}" * 40, "z^{y^{x}}" * 40),
    "sines, eight deep": (r"\sin{" * 8 + "x" + "}" * 8, r"\cos{" * 8 + "x" + "}" * 8),
    "roots, eight deep": (r"\sqrt{2+" * 8 + "x" + "}" * 8, r"\sqrt{3+" * 8 + "x" + "}" * 8),
    "a set of 119 numbers": tuple(rf"\{{{','.join(map(str, range(k, k + 119)))}\}}" for k in (1, 2)),
    "a factorial of four digits": ("9999!", "9998!*9999"),
    "a power of four digits": ("9999^{9999}", "9999^{9998}*9998"),
    "powers of a matrix": (MATRIX + "^{99}", MATRIX + "^{98}"),
}
ONE_CLASS = (
    *("3/8", "0.375", r"\frac{3}{8}", "6/16", "3*2^{-3}", r"\frac{3}{2^3}", "1/4+1/8", "1-5/8"),
    *(r"\sqrt{9/64}", r"\frac{0.75}{2}"),
)
TEN_CLASSES = ("3/8", "x^2-1", r"\{1, 2\}", "[0, 1)", r"\sqrt{2}", r"2\pi", "(1, 2)", "e^{2x}", r"\frac{x}{y}", "20%")


def measure(one: str, other: str) -> tuple[float, float]:
    """Return the processor seconds of a comparison, and the peak of its process in MiB."""
    process = subprocess.Popen(
        [sys.executable, "-c", START],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"[]\n" + json.dumps([SECONDS, one, other, True]).encode() + b"\n")
    process.stdin.close()
    _, *replies = process.stdout.read().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    seconds: float = json.loads(replies[0])[1] if replies else SECONDS
    return seconds, usage.ru_maxrss / 1024


def print_hostile() -> None:
    """Print the cost of each hostile pair, and the worst."""
    kind, costs = Math(), list[tuple[float, float]]()
    for name, pair in HOSTILE.items():
        one, other = (class_.key for text in pair if (class_ := kind.class_of(text)))
        if fault(one) or fault(other):
            raise SystemExit(f"{name}: this pair is not compared, so it measures nothing.")
        costs.append(measure(one, other))
        print(f"{name:<40} {costs[-1][0]:>6.2f} s {costs[-1][1]:>6.0f} MiB")
    seconds, sizes = zip(*costs, strict=True)
    print(f"{'the worst':<40} {max(seconds):>6.2f} s {max(sizes):>6.0f} MiB")


def print_pools() -> None:
    """Print the time that the process takes to start, and that of pools when they are compared first and again."""
    kind: Any = Math()
    start = perf_counter()
    kind.grouping(["1/3", "2/6"])
    line("starting the process that compares, and one pair", (perf_counter() - start) * 1e3, "ms")
    for name, answers, classes in (("of one class", ONE_CLASS, 1), ("of ten classes", TEN_CLASSES, 10)):
        for time in ("first", "second"):
            start = perf_counter()
            keys = {class_.key for class_ in kind.grouping(answers).classes}
            line(f"ten different answers {name}, the {time} time", (perf_counter() - start) * 1e3, "ms")
            if len(keys) != classes:
                raise SystemExit(f"The pool {name} has {len(keys)} classes.")


def main() -> None:
    print_hostile()
    print_pools()


if __name__ == "__main__":
    main()
