"""A call ends at its deadline, wherever it stands."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from eldgr_dspy.programs.engines.deadline import run_within, within

Way = Callable[[float, Any], Any]


def awaited(seconds: float, call: Callable[[], Any]) -> Any:
    return asyncio.run(within(seconds, call))


each_way = pytest.mark.parametrize("way", [run_within, awaited])


async def forever() -> str:
    while True:  # drips: no single wait is long
        await asyncio.sleep(0.01)


async def at_once() -> str:
    return "done"


async def failing() -> str:
    raise LookupError("no such thing")


@each_way
def test_a_call_that_ends_in_time_returns_what_it_returns(way: Way) -> None:
    assert way(20, at_once) == "done"


@each_way
def test_a_call_that_does_not_end_is_ended(way: Way) -> None:
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        way(0.05, forever)
    assert time.monotonic() - begun < 10


@each_way
def test_what_a_call_raises_is_raised(way: Way) -> None:
    with pytest.raises(LookupError, match="no such thing"):
        way(20, failing)


@each_way
def test_a_call_that_is_ended_cleans_up(way: Way) -> None:
    cleaned = threading.Event()

    async def careful() -> None:
        try:
            await forever()
        finally:
            cleaned.set()

    with pytest.raises(TimeoutError):
        way(0.05, careful)
    assert cleaned.wait(10)


def test_a_blocking_call_may_be_made_where_an_event_loop_is_running() -> None:
    async def caller() -> str:
        return run_within(20, at_once)

    assert asyncio.run(caller()) == "done"


def test_calls_of_many_threads_do_not_wait_for_each_other() -> None:
    gate, arrived = asyncio.Event(), list[int]()

    async def meet() -> str:
        arrived.append(1)
        if len(arrived) == 8:
            gate.set()
        await gate.wait()
        return "met"

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda _: run_within(20, meet), range(8))) == ["met"] * 8
