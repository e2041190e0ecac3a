"""The runs: every judge alone, locked and with ties only, on the same samples; every rule sees the same replies."""

import sys
from collections.abc import Mapping
from pathlib import Path

import dspy

from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, Watcher, evaluate
from eldgr_dspy.programs.selector import Selector

RULES = {
    "hotpotqa": ("first", "majority", "certified", "judge", "near(0)", "eldgr"),
    "mixed": ("first", "majority", "certified", "judge", "near(0)", "eldgr"),
    "gsm8k": ("first", "majority", "judge", "near(0)", "eldgr", "support", "support(1)", "support(0)"),
}
"""The rules on each pool; `near(0)` lets the judge settle ties alone."""


def judge(name: str, lms: Mapping[str, dspy.LM], out: Path, limit: int, workers: int) -> None:
    """Run every judge on the first questions of a pool; the same call resumes, and a larger limit adds to it.

    The first model also repairs and derives, for all judges.
    """
    selector = Selector()
    first = next(iter(lms.values()))
    selector.repairer.set_lm(first)
    selector.deriver.set_lm(first)
    judges = {}
    for label, lm in lms.items():
        judges[label] = Judge()
        judges[label].set_lm(lm)
    plan = Plan(
        [out / f"{name}.jsonl"],
        out=out / name,
        rules=RULES[name],
        judges=judges,
        limit=limit,
        workers=workers,
        max_failures="5%",
        timeout=900.0,
    )
    evaluate(selector, plan, Watcher())
    sys.stdout.write(f"{out / name}: every rule has decided; see report.html there.\n")
