"""Runs under a lock."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.selector import Selector

TWO = ("majority", "eldgr")


def run(pool: Path | Sequence[Path], lock: Path, out: str, selector: Selector | None = None, **more: Any) -> Any:
    """What a run under a lock says of its confirmation."""
    pools = [pool] if isinstance(pool, Path) else pool
    plan = Plan(pools, Path(out), rules=TWO, lock=lock, **more)
    return evaluate(selector or heuristic_selector(), plan)["confirmation"]
