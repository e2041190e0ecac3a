"""Old and new code in turn: a decision, a run, throughput and memory.

Run: python -m benchmarks.alternate OLD [--rounds 7] [--figures decision run throughput memory]

OLD is another checkout. Each measurement is a process of its own, which runs this file with the package of a checkout;
which of the two comes first changes from round to round. Prints the median of each, and the median ratio of new to old
in the same round. Times are processor times, so a busy machine changes them less than wall times; do not read anything
into a ratio within a few percent of 1. Only public names are used, so that old checkouts can be measured.
"""

import argparse
import gc
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._timing import command, pools_dir
from benchmarks.scale import rows

ROOT = Path(__file__).resolve().parent.parent
HOTPOT = "hotpotqa-reflexion12"


def real_pool(name: str) -> Path:
    """Return a real pool, or the demo pool where there is none."""
    real = pools_dir() / f"{name}.jsonl.gz"
    return real if real.is_file() else ROOT / "artifacts" / "demo-retrieval.jsonl"


def abstaining_lm() -> Any:
    """Return an LM that answers at once: a judge that prefers the third candidate, a repairer without an answer."""
    from eldgr_dspy.programs.testing import role_of, scripted_lm

    verdict = {"assessments": [], "preferred": 2, "judge_rationale": "it says so"}
    repair = {"repaired_answer": "", "repair_passage": -1}
    return scripted_lm(lambda request: verdict if role_of(request) == "judge" else repair)


def decision() -> float:
    """Return the milliseconds of a `Selector` call, the median of ten passes over a pool after a first one.

    The collector runs between passes: one full collection looks at all that DSPy loads, and takes as long as 50 calls.
    """
    import dspy

    from eldgr_dspy import Selector

    path, selector, passes = real_pool(HOTPOT), Selector(), list[float]()
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        pool = [{key: row[key] for key in ("question", "candidates", "evidence")} for row in map(json.loads, file)]
    with dspy.context(lm=abstaining_lm(), disable_history=True):
        for _ in range(11):
            gc.collect()
            start = time.process_time()
            for question in pool:
                selector(**question)
            passes.append((time.process_time() - start) / len(pool) * 1e3)
    return median(passes[1:])


def run() -> float:
    """Return the seconds of `eldgr evaluate` on two real pools with the heuristic roles, its start included."""
    pools = dict.fromkeys(real_pool(name) for name in (HOTPOT, "gsm8k-openai4"))
    return command("evaluate", *map(str, pools), "--out", "run", "--quiet").cpu


def throughput() -> float:
    """Return the milliseconds a question of a judged run with 64 workers and an LM that answers at once."""
    from eldgr_dspy import Selector
    from eldgr_dspy.programs.run.evaluation import Plan, evaluate

    pool, n, selector = Path("pool.jsonl"), 1_000, Selector()
    pool.write_text("".join(rows(n)), encoding="utf-8")
    selector.set_lm(abstaining_lm())
    start = time.process_time()
    evaluate(selector, Plan([pool], Path("judged"), ("majority", "judge"), workers=64))
    return (time.process_time() - start) / n * 1e3


def memory() -> float:
    """Return the peak MiB of `eldgr evaluate` on 4,000 questions with the heuristic roles."""
    Path("large.jsonl").write_text("".join(rows(4_000)), encoding="utf-8")
    return command("evaluate", "large.jsonl", "--out", "large", "--quiet").peak


FIGURES = {"decision": (decision, "ms"), "run": (run, "s"), "throughput": (throughput, "ms"), "memory": (memory, "MiB")}
"""What is measured, in which unit."""


def measure_in(name: str, checkout: Path) -> float:
    """Return one measurement of a figure, with the package of a checkout and the benchmarks of this one."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "benchmarks").symlink_to(ROOT / "benchmarks")
        path = {"PYTHONPATH": f"{scratch}:{checkout}", "PYTHONSAFEPATH": "1"}
        settings = {"DSPY_CACHEDIR": scratch, "LITELLM_LOCAL_MODEL_COST_MAP": "true", "ELDGR_POOLS": str(pools_dir())}
        child = subprocess.run(
            [sys.executable, "-m", "benchmarks.alternate", str(checkout), "--measure", name],
            env={**os.environ, **path, **settings},
            cwd=scratch,
            capture_output=True,
            text=True,
        )
    if child.returncode:
        sys.exit(f"{name} cannot be measured with {checkout}:\n{child.stderr}")
    return float(child.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--figures", nargs="+", choices=FIGURES, default=[*FIGURES])
    parser.add_argument("--measure", choices=FIGURES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure, _ = FIGURES[options.measure]
        print(measure())
        return
    old = options.old.resolve()
    print(f"{'':<12}{'old':>10}{'new':>10}{'new/old':>10}")
    for name in options.figures:
        pairs = list[tuple[float, float]]()
        for number in range(options.rounds):
            figures = {source: measure_in(name, source) for source in ((old, ROOT) if number % 2 else (ROOT, old))}
            pairs.append((figures[old], figures[ROOT]))
        olds, news = zip(*pairs, strict=True)
        ratio = median(new / before for before, new in pairs)
        print(f"{name:<12}{median(olds):>10.3f}{median(news):>10.3f}{ratio:>10.3f} {FIGURES[name][1]}", flush=True)


if __name__ == "__main__":
    main()
