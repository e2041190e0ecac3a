"""Seconds and memory of a report on 10,000 questions and how fast its pages open.

Run: python -m benchmarks.report_times [--rows 10000]

It makes a pool of synthetic questions, each with six candidates and ten passages of the size of HotpotQA's. It runs the
heuristic roles on it, and `eldgr report --format html` in its own process. If Chromium is installed, it opens the
pages.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks._timing import command, line

_PASSAGES, _CANDIDATES, _WORDS, _REASONING = 10, 6, 80, 90


def rows(n: int) -> Iterator[str]:
    """Return questions whose answers are in one passage each, with candidates that differ."""
    draw = random.Random(7)
    words = ["".join(draw.choices("aeioubcdfglmnprst", k=draw.randint(2, 9))) for _ in range(5_000)]

    def text(length: int) -> str:
        return " ".join(draw.choices(words, k=length)).capitalize() + "."

    for number in range(n):
        answers = [f"{draw.choice(words).capitalize()} {draw.choice(words).capitalize()}" for _ in range(4)]
        evidence = [{"title": text(2), "text": text(_WORDS)} for _ in range(_PASSAGES)]
        for answer in answers[: draw.randint(0, 3)]:
            passage = draw.choice(evidence)
            passage["text"] = f"{passage['text']} Here is {answer}. {text(12)}"
        picks = draw.choices(answers, weights=(4, 2, 1, 1), k=_CANDIDATES)
        candidates = [
            {"text": text(_REASONING), "answer": answer, "source": f"sample {i}"} for i, answer in enumerate(picks)
        ]
        row = {"id": f"q{number}", "question": text(16), "task": "retrieval", "candidates": candidates}
        yield json.dumps({**row, "evidence": evidence, "gold": [draw.choice(answers[:2])]}) + "\n"


def opening(page: Path, folder: Path) -> float:
    """Return the seconds until a page is complete in Chromium."""
    from tests.browser.chromium import browsing

    with browsing(folder) as browser:
        tab = browser.tab()
        tab.look()
        start = time.perf_counter()
        tab.open(page.as_uri())
        return time.perf_counter() - start


def main() -> None:
    from tests.browser.chromium import BROWSER

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000, help="size of the pool")
    n = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pool, run = folder / "synthetic.jsonl", folder / "run"
        with pool.open("w", encoding="utf-8") as file:
            file.writelines(rows(n))
        seconds, _, mib = command("evaluate", str(pool), "--out", str(run), "--quiet")
        line(f"eldgr evaluate, {n:,} x {_CANDIDATES}, heuristic roles, wall", seconds, "s")
        line("the same, peak memory", mib, "MiB")
        seconds, _, mib = command("report", str(run), "--format", "html")
        line(f"eldgr report --format html on {n:,} questions, wall", seconds, "s", "30")
        line("the same, peak memory", mib, "MiB")
        for page in ("report.html", "questions.html"):
            line(f"{page}, size", (run / page).stat().st_size / 2**20, "MiB")
            if BROWSER is not None:
                line(f"{page}, opened in Chromium, wall", opening(run / page, folder / page.removesuffix(".html")), "s")


if __name__ == "__main__":
    main()
