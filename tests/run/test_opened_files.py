"""A run opens each file once, a pool twice (checked whole before the first call), and looks for cycles less often."""

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.programs.run.evaluation import Plan, evaluate, rarer_collections
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


@pytest.fixture(autouse=True)
def _thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("error", [None, ZeroDivisionError])
def test_cycles_are_looked_for_less_often_and_afterwards_as_before(error: type[Exception] | None) -> None:
    gc.set_threshold(700, 9, 8)
    with suppress(ZeroDivisionError), rarer_collections():
        assert gc.get_threshold()[0] > 10_000
        assert gc.get_threshold()[1:] == (9, 8)
        if error:
            raise error
    assert gc.get_threshold() == (700, 9, 8)


@pytest.mark.parametrize("set_by_user", [(0, 10, 10), (10**6, 5, 5)], ids=["switched off", "rarer still"])
def test_what_a_user_has_set_rarer_still_stays(set_by_user: tuple[int, int, int]) -> None:
    gc.set_threshold(*set_by_user)
    with rarer_collections():
        assert gc.get_threshold() == set_by_user
    assert gc.get_threshold() == set_by_user


def test_of_two_runs_at_once_the_last_to_end_leaves_what_the_first_found() -> None:
    gc.set_threshold(700, 10, 10)
    first, second = ExitStack(), ExitStack()
    first.enter_context(rarer_collections())
    second.enter_context(rarer_collections())
    first.close()
    assert gc.get_threshold()[0] > 10_000
    second.close()
    assert gc.get_threshold() == (700, 10, 10)
