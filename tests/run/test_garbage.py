"""Cycles are looked for less often while a run is under way, and as before when it has ended."""

import gc
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from eldgr_dspy.programs.run.evaluation import rarer_collections


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
