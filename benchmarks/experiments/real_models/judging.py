"""The runs: every judge alone, locked and with ties only, on the same samples; every rule sees the same replies."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
WITHOUT_JUDGE = tuple(rule for rule in RULES["gsm8k"] if rule not in ("judge", "near(0)"))
"""The rules in arithmetic that ask the deriver alone, or nobody."""


def derive(name: str, lms: Mapping[str, dspy.LM], out: Path, limit: int, workers: int) -> None:
    """Run the rules that ask no judge, with the first model as the deriver; the same call resumes."""
    selector = Selector()
    selector.deriver.set_lm(next(iter(lms.values())))
    _evaluate(selector, out, name, rules=WITHOUT_JUDGE, limit=limit, workers=workers)


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
    _evaluate(selector, out, name, rules=RULES[name], judges=judges, limit=limit, workers=workers)


def _evaluate(selector: Selector, out: Path, name: str, **options: Any) -> None:
    plan = Plan([out / f"{name}.jsonl"], out=out / name, max_failures="5%", timeout=900.0, **options)
    evaluate(selector, plan, Watcher())
    sys.stdout.write(f"{out / name}: every rule has decided; see report.html there.\n")
