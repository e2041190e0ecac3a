"""A run opens each file of its directory once, and a pool twice: it is checked whole before the first call."""

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from tests.capitals import obliging, row, selector_with, write_pool

_COUNTED: list[Counter[str]] = []  # the count under way; a hook of Python's stays until the process ends


def _count(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _COUNTED and isinstance(arguments[0], str | os.PathLike):
        _COUNTED[-1][Path(arguments[0]).name] += 1


def opened(pool: Path, out: Path) -> Counter[str]:
    """How often a run opens each file, by name; a result has a temporary name until it is whole."""
    _COUNTED.append(Counter())
    try:
        evaluate(selector_with(obliging)[0], Plan([pool], out, workers=3, max_calls=1_000))
    finally:
        counted = _COUNTED.pop()
    names = {path.name for path in [*out.iterdir(), pool]}
    temporary = sum(n for name, n in counted.items() if name.endswith(".tmp"))
    return Counter({name: n for name, n in counted.items() if name in names}) + Counter({"results": temporary})


def test_each_file_is_opened_once_also_when_the_run_is_resumed(tmp_path: Path) -> None:
    sys.addaudithook(_count)
    pool = write_pool(tmp_path / "capitals.jsonl", map(row, range(8)))
    results = [opened(pool, tmp_path / "run") for _ in range(2)]
    assert results == [Counter({"capitals.jsonl": 2, "journal.jsonl": 1, ".lock": 1, "results": 5})] * 2
