"""Score the heuristic roles on the real pools, and time them.

    python -m benchmarks.heuristic_roles [POOLS_DIR]

Reads POOLS_DIR, else ELDGR_POOLS, else ../shared/data. The judge is scored as a selector with full authority. The
repairer is scored by the exact match of its span over all questions. Neither is the rule's result, which also needs
certificates. A role that abstains counts as wrong here; the scalar-judge rule would ship consensus instead.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._timing import pools_dir
from eldgr_dspy.answer_types.answers import score
from eldgr_dspy.pools import Pool, Row, open_pool
from eldgr_dspy.programs.heuristics import ExtractiveRepairer, LexicalJudge

POOLS = ("gsm8k-openai4", "svamp-codex8", "hotpotqa-reflexion12")


def time_call(call: Callable[[], Any], seconds: list[float]) -> dict[str, Any]:
    """Return a role's output, and record its processor time."""
    start = time.thread_time()
    prediction = call()
    seconds.append(time.thread_time() - start)
    return dict(prediction.toDict())


def judge_row(row: Row, seconds: list[float]) -> str | None:
    """Return the answer that the judge prefers; None if it abstains."""
    inputs, judge = row.to_question().role_inputs("judge"), LexicalJudge()
    output = time_call(lambda: judge(**inputs), seconds)
    return row.candidates[output["preferred"]].answer if "preferred" in output else None


def repair_row(row: Row, seconds: list[float]) -> str | None:
    """Return the repairer's span; None if it abstains."""
    inputs, repairer = row.to_question().role_inputs("repairer"), ExtractiveRepairer()
    return time_call(lambda: repairer(**inputs), seconds).get("repaired_answer")


def first(row: Row, seconds: list[float]) -> str | None:
    """Return the first candidate's answer, for comparison."""
    seconds.append(0.0)
    return row.candidates[0].answer


def report(pool: Pool, name: str, role: Callable[[Row, list[float]], str | None]) -> None:
    """Print one line: how often the role is right, how often it answers, and its processor time a question."""
    seconds: list[float] = []
    right = n_answers = 0
    for row in pool.rows():
        answer = role(row, seconds)
        right += score(answer, row.gold, row.task).em
        n_answers += answer is not None
    median, most = statistics.median(seconds) * 1e3, max(seconds) * 1e3
    print(f"{pool.name:22} {name:9} {100 * right / pool.n:6.2f} % right {n_answers:5} of {pool.n} answered", end="")
    print(f"  {median:6.3f} ms median {most:6.2f} ms at most" if most else "")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else pools_dir()
    for name in POOLS:
        pool = open_pool(folder / f"{name}.jsonl.gz")
        report(pool, "first", first)
        report(pool, "judge", judge_row)
        if pool.task == "retrieval":
            report(pool, "repairer", repair_row)


if __name__ == "__main__":
    main()
