"""Wall time and memory of many recorded judges on a large pool.

Run: python -m benchmarks.recorded_judges [--judges 50] [--rows 500 2000]

A pool of short questions with five candidates, and a recording of one short reply a question for each judge. Each size
is run by `eldgr evaluate` in a process of its own. The last line says how much memory each further question takes,
between the smallest and the largest size.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks._timing import command, line

NAMES = ("Lyon", "Paris", "Nice", "Metz")
RECORDINGS = 5  # different ones; the judges share them


def rows(n: int) -> Iterator[str]:
    """Return questions on which consensus is uncertified and wrong, and a judge can make another answer ship."""
    candidates = [{"text": name, "answer": name} for name in ("Lyon", *NAMES)]
    evidence = [{"title": "France", "text": "Paris is the capital of France."}]
    for number in range(n):
        row = {"id": f"q{number}", "question": f"Capital {number}?", "task": "retrieval", "candidates": candidates}
        yield json.dumps({**row, "evidence": evidence, "gold": ["Paris"]}) + "\n"


def replies(n: int, judge: int) -> Iterator[str]:
    """Return a recording in which each judge prefers another candidate."""
    for number in range(n):
        content = {"assessments": [], "preferred": (number * (judge + 1)) % 5, "judge_rationale": f"reply {number}"}
        reply = {"kind": "consultation", "id": f"q{number}", "role": "judge", "outcome": "ok", "content": content}
        yield json.dumps(reply) + "\n"


def measured(n: int, judges: int) -> float:
    """Print wall time and peak memory at a size; return the peak MiB."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pool, files = folder / "pool.jsonl", [folder / f"{number}.jsonl" for number in range(RECORDINGS)]
        with pool.open("w", encoding="utf-8") as file:
            file.writelines(rows(n))
        for number, path in enumerate(files):
            with path.open("w", encoding="utf-8") as file:
                file.writelines(replies(n, number))
        options = [arg for j in range(judges) for arg in ("--replay", f"j{j}={files[j % RECORDINGS]}")]
        seconds, _, peak = command("evaluate", str(pool), *options, "--out", str(folder / "run"), "--quiet")
        line(f"eldgr evaluate, {n:,} x {judges} recorded judges, wall", seconds, "s")
        line("the same, peak memory", peak, "MiB")
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judges", type=int, default=50)
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 2_000], help="sizes of the pool")
    options = parser.parse_args()
    peaks = {n: measured(n, options.judges) for n in sorted(options.rows)}
    fewest, most = min(peaks), max(peaks)
    if most > fewest:
        line("memory of a further question", (peaks[most] - peaks[fewest]) * 1024 / (most - fewest), "KiB")


if __name__ == "__main__":
    main()
