"""Runs to read back: made in an instant with the heuristic roles, or with a scripted judge that has a price."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.selector import Selector
from tests.capitals import row, write_pool


def make_rows(n: int) -> Iterable[Mapping[str, Any]]:
    """Rows on which the judge can lead away from consensus; every third has consensus right."""
    for number in range(n):
        yield row(number, gold=["Nice"] if number % 3 == 0 else ["Paris"])


def finished_run(
    folder: Path, *, n: int = 6, selector: Selector | None = None, rows: Any = None, **plan: Any
) -> tuple[Path, Path]:
    """Make a run on a pool named `capitals` in a folder; return the run directory and the pool's file."""
    pool = write_pool(folder / "capitals.jsonl", make_rows(n) if rows is None else rows)
    out = plan.pop("out", folder / "run")
    evaluate(selector or heuristic_selector(), Plan([pool], out, **plan))
    return out, pool


def unseal(journal: str) -> str:
    """A journal without its checksums, so that it may be edited."""
    return re.sub(r', "crc32": "[0-9a-f]{8}"', "", journal)
