"""Wall time, processor time, memory and bytes of `eldgr evaluate` over many questions, without an LM.

Run: python -m benchmarks.scale [--questions 1000 4000 ...]

Each question has four candidates and two short passages, and is one of four kinds: all agree, consensus is certified,
another answer is certified, or none is. So the heuristic judge and the heuristic repairer are asked on half of them.
Each run is a process of its own. The processor time of a question leaves out that of a run of four questions, which is
the start. The pool is read twice, as always: to check and hash it, and to decide it.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks._timing import Cost, command, line

KINDS = (
    ("Port {0}", "Port {0}", "Port {0}", "Port {0}"),
    ("Port {0}", "Port {0}", "Mill {0}", "Ford {0}"),
    ("Ford {0}", "Ford {0}", "Port {0}", "Mill {0}"),
    ("Ford {0}", "Ford {0}", "Mill {0}", "Wick {0}"),
)
"""The answers to a question of each kind. The right one is the port, and the only one in the evidence."""


def rows(n: int) -> Iterator[str]:
    """Return questions, each with evidence of its own."""
    for number in range(n):
        answers = [answer.format(number) for answer in KINDS[number % 4]]
        texts = (
            f"The river {number} rises in the hills and runs past the old mill.",
            f"It reaches the sea at Port {number}, a market town with {number % 90 + 10} boats.",
        )
        row = {
            "id": f"q{number}",
            "question": f"Where does the river {number} reach the sea?",
            "task": "retrieval",
            "candidates": [{"text": f"I think it is {answer}.", "answer": answer} for answer in answers],
            "evidence": [{"title": f"River {number}", "text": text} for text in texts],
            "gold": [f"Port {number}"],
        }
        yield json.dumps(row) + "\n"


def measure(folder: Path, n: int, *options: str) -> tuple[Cost, dict[str, int]]:
    """Return the cost of a run of `n` questions in its own process, and the bytes of each file."""
    pool = folder / f"river{n}.jsonl"
    with pool.open("w", encoding="utf-8") as file:
        file.writelines(rows(n))
    cost = command("evaluate", str(pool), "--out", str(folder / f"run{n}"), "--quiet", *options)
    files = [pool, *(folder / f"run{n}").iterdir()]
    return cost, {file.name: file.stat().st_size for file in files if file.is_file()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, nargs="+", default=[1_000, 4_000], metavar="N", help="sizes of pools")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        start, _ = measure(Path(name), 4)
        line("start, processor time", start.cpu, "s")
        line("start, peak memory", start.peak, "MiB")
    for n in options.questions:
        with tempfile.TemporaryDirectory() as name:
            cost, sizes = measure(Path(name), n)
        line(f"{n:,} questions x 4, no LM, wall", cost.wall, "s")
        line("the same, processor time a question", (cost.cpu - start.cpu) / n * 1e3, "ms")
        line("the same, peak memory", cost.peak, "MiB")
        for name in (f"river{n}.jsonl", "journal.jsonl", "decisions.jsonl"):
            line(f"the same, {name} a question", sizes[name] / n, "bytes")


if __name__ == "__main__":
    main()
