"""Runs under a lock."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.locks import freeze
from eldgr_dspy.programs.selector import Selector
from tests.capitals import row, write_pool

TWO = ("majority", "eldgr")


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_pool(Path("capitals.jsonl"), map(row, range(6)))


@pytest.fixture
def lock(pool: Path) -> Path:
    """A lock of the embedded roles under two rules."""
    return freeze(heuristic_selector(), TWO, Path("rule.lock.json")).path


def run(pool: Path | Sequence[Path], lock: Path, out: str, selector: Selector | None = None, **more: Any) -> Any:
    """What a run under a lock says of its confirmation."""
    pools = [pool] if isinstance(pool, Path) else pool
    plan = Plan(pools, Path(out), rules=TWO, lock=lock, **more)
    return evaluate(selector or heuristic_selector(), plan)["confirmation"]
