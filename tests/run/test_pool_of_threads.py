"""Calls share daemon threads, one call at a time each; a thread that is left behind is never given another call."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TypeVar

import pytest

from eldgr_dspy.programs.service.threads import in_thread

SOON, LONG = 0.05, 60.0
R = TypeVar("R")
WORD = ContextVar("WORD", default="none")


def within(seconds: float, call: Callable[[], R]) -> R:
    async def made() -> R:
        return await asyncio.wait_for(in_thread(call), seconds)

    return asyncio.run(made())


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a late call waits on; open at the end, so that no thread outlives the test."""
    event = threading.Event()
    yield event
    event.set()


def test_calls_one_after_another_are_made_in_one_thread() -> None:
    first = within(LONG, threading.get_ident)
    assert {within(LONG, threading.get_ident) for _ in range(20)} == {first}
    assert first != threading.get_ident()


def test_a_late_call_is_left_behind_and_its_thread_is_given_no_other(gate: threading.Event) -> None:
    late: list[int] = []

    def wait() -> None:
        late.append(threading.get_ident())
        gate.wait()

    with pytest.raises(TimeoutError):
        within(SOON, wait)
    assert within(LONG, threading.get_ident) not in late


def test_what_a_call_raises_is_raised_also_where_it_is_a_timeout_of_its_own() -> None:
    def fail() -> None:
        raise TimeoutError("the client's")

    with pytest.raises(TimeoutError, match="the client's"):
        within(LONG, fail)
    assert within(LONG, lambda: "next") == "next"


def test_a_call_sees_the_context_of_its_own_caller_and_not_that_of_the_call_before() -> None:
    def change() -> str:
        before = WORD.get()
        WORD.set("changed")
        return before

    token = WORD.set("caller's")
    assert [within(LONG, change), within(LONG, change)] == ["caller's", "caller's"]
    WORD.reset(token)
    assert within(LONG, WORD.get) == "none"


def test_calls_at_once_have_a_thread_each() -> None:
    met = threading.Barrier(8)

    def meet() -> int:
        met.wait(LONG)
        return threading.get_ident()

    async def meeting() -> set[int]:
        return set(await asyncio.gather(*(in_thread(meet) for _ in range(8))))

    assert len(asyncio.run(meeting())) == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    within(LONG, int)
    child = os.fork()
    if not child:
        os._exit(within(10.0, lambda: 42))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
