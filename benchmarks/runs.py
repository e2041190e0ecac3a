"""Wall time and memory of whole runs.

Run: python -m benchmarks.runs [--rows 100000]

A pool of 1,000 questions with four candidates and an LM that answers at once, with journal, statistics and report,
against the bare DSPy loop that makes the same calls; the real GSM8K pool with the heuristic judge; a large pool, whose
memory is measured at several sizes; and the time that the journal adds to a consultation.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy

from benchmarks._timing import command, line, pools_dir
from eldgr_dspy.journal import Journal
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import role_of, scripted_lm
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.signatures import JudgeCandidates, RepairAnswer

TEXT = "Paris is the capital of France and lies on the Seine, a river that reaches the sea at Le Havre. "


def instant(request: Any) -> dict[str, Any]:
    """Return a judge that prefers the third candidate, and a repairer that finds nothing."""
    if role_of(request) == "judge":
        return {"assessments": [], "preferred": 3, "judge_rationale": "none"}
    return {"repaired_answer": "", "repair_passage": -1}


def rows(n: int) -> Iterator[str]:
    """Return questions on which judge and repairer are both asked and neither decides."""
    candidates = [{"text": f"Perhaps {answer}.", "answer": answer} for answer in ("Lyon", "Lyon", "Paris", "Nice")]
    for number in range(n):
        evidence = [{"title": f"T{index}", "text": TEXT * 2} for index in range(3)]
        row = {"id": f"q{number}", "question": f"Capital {number}?", "task": "retrieval", "candidates": candidates}
        yield json.dumps({**row, "evidence": evidence, "gold": ["Paris"]}) + "\n"


def bare_loop(pool: Path) -> float:
    """Return the seconds that DSPy alone takes for the same calls."""
    judge, repairer = dspy.Predict(JudgeCandidates), dspy.Predict(RepairAnswer)
    start = time.perf_counter()
    with dspy.context(lm=scripted_lm(instant), adapter=dspy.JSONAdapter(), disable_history=True):
        for row in open_pool(pool).rows():
            question = row.to_question()
            judge(**question.role_inputs("judge"))
            repairer(**question.role_inputs("repairer"))
    return time.perf_counter() - start


def whole_run(pool: Path, out: Path, workers: int) -> float:
    """Return the seconds that a run with journal, statistics and report takes."""
    selector = Selector()
    selector.set_lm(scripted_lm(instant))
    start = time.perf_counter()
    summary = evaluate(selector, Plan([pool], out, workers=workers))
    assert summary["consultations"]["judge"]["calls"] == summary["pools"][pool.stem]["n"]
    return time.perf_counter() - start


def journal_cost(folder: Path, n: int = 2_000) -> float:
    """Return the seconds that one journaled consultation takes, each flushed to the disk."""
    content = {"assessments": [], "preferred": 2, "judge_rationale": "x" * 200}
    with Journal(folder / "j.jsonl") as journal:
        start = time.perf_counter()
        for number in range(n):
            journal.append(Consultation("p", f"q{number}", "judge", "ok", content=content, calls=1, seconds=0.5))
        return (time.perf_counter() - start) / n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="size of the large pool")
    large = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pool = folder / "thousand.jsonl"
        pool.write_text("".join(rows(1_000)), encoding="utf-8")
        floor = bare_loop(pool)
        line("bare DSPy loop, 1,000 x 4, 2,000 instant calls, wall", floor, "s")
        for workers in (1, 8):
            seconds = whole_run(pool, folder / f"run{workers}", workers)
            line(f"whole run, {workers} worker(s), wall", seconds, "s")
            line(f"whole run, {workers} worker(s), over the bare loop", seconds - floor, "s", "3")
        line("journal, a consultation flushed to the disk", journal_cost(folder) * 1e3, "ms")

        gsm8k = pools_dir() / "gsm8k-openai4.jsonl.gz"
        if gsm8k.is_file():
            seconds, _, mib = command("evaluate", str(gsm8k), "--out", str(folder / "gsm8k"), "--quiet")
            line("eldgr evaluate, 1,319 x 4, heuristic judge, wall with start-up", seconds, "s", "10")
            line("the same, peak memory", mib, "MiB")
        for n in (large // 10, large):
            pool = folder / f"rows{n}.jsonl"
            with pool.open("w", encoding="utf-8") as file:
                file.writelines(rows(n))
            seconds, _, mib = command("evaluate", str(pool), "--out", str(folder / f"run{n}"), "--quiet")
            line(f"eldgr evaluate, {n:,} x 4, heuristic roles, wall", seconds, "s")
            line("the same, peak memory", mib, "MiB")
            seconds, _, mib = command("evaluate", str(pool), "--out", str(folder / f"run{n}"), "--quiet")
            line("the same again, everything journaled, wall", seconds, "s")
            line("the same, peak memory", mib, "MiB")


if __name__ == "__main__":
    main()
