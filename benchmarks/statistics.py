"""Processor time and memory of the statistics on a million paired outcomes.

Run: python -m benchmarks.statistics [--n 1000000]

Right and wrong, token F1 of answers of up to twelve words, and scores that are all distinct; five outcomes a question
as one unit; the other tests; and planning.
"""

import argparse
from collections import Counter
from collections.abc import Callable

import numpy as np

from benchmarks._timing import cpu, line, peak_mib
from eldgr_dspy import statistics


def token_f1(generator: np.random.Generator, n: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return F1 values as answers have them: many 0 and 1, and fractions of small numbers between them."""
    n_answer, n_gold = generator.integers(1, 13, size=n), generator.integers(1, 7, size=n)
    return 2 * generator.binomial(np.minimum(n_answer, n_gold), 0.5) / (n_answer + n_gold)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=1_000_000)
    n = parser.parse_args().n
    generator = np.random.Generator(np.random.PCG64(1))
    right = [generator.random(n) < share for share in (0.58, 0.56)]
    f1 = token_f1(generator, n), token_f1(generator, n)
    scores = generator.random(n), generator.random(n)
    fives = (arm[: n // 5 * 5].reshape(-1, 5).tolist() for arm in right)
    units = Counter(tuple(zip(*pair, strict=True)) for pair in zip(*fives, strict=True))
    seeds = generator.random((5, n // 5))
    work: list[tuple[str, Callable[[], object], str]] = [
        ("contrast, right and wrong", lambda: statistics.contrast(*right), "5"),
        ("contrast, token F1", lambda: statistics.contrast(*f1), "5"),
        ("contrast, all distinct", lambda: statistics.contrast(*scores), "5"),
        ("contrast_of_units, five outcomes each", lambda: statistics.contrast_of_units(units), "5"),
        ("seed_variance, five seeds", lambda: statistics.seed_variance(seeds), "5"),
    ]
    print(f"{n:,} paired outcomes; F1 has {np.unique(f1[0] - f1[1]).size:,} distinct differences")
    for what, call, aim in work:
        line(what, cpu(call, rounds=2), "s", aim)
    line("questions_needed, gain 2 %, discordant 6 %", cpu(lambda: statistics.questions_needed(0.02, 0.06)) * 1e3, "ms")
    line("the same, gain 0.05 %", cpu(lambda: statistics.questions_needed(0.0005, 0.06), rounds=1), "s")
    line("peak memory, inputs included", peak_mib(), "MiB", "2048")


if __name__ == "__main__":
    main()
