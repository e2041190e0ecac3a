"""A bounded map keeps order and memory, and whatever ends it early: nothing begins any more, all that began ends."""

import asyncio
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any, NoReturn, TypeVar

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.programs.run import scheduling
from eldgr_dspy.programs.run.scheduling import THREADS, OnStop, Steps, _in_order, map_in_order, window_of
from eldgr_dspy.programs.service.threads import in_thread
from tests.refusing import refuses

SOON, LONG = 0.2, 60.0
LATE = "nothing was said within 0.2 s; a longer --timeout waits longer"


class Work:  # counts what began and what ended, in threads or tasks; some items are slow, some fail
    def __init__(self, *, fails: frozenset[int] = frozenset(), seconds: float = 0.0) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.errors: list[BaseException] = []
        self.fails, self.seconds = fails, seconds

    def __call__(self, item: int) -> int:
        self.starts.append(item)
        time.sleep(self.seconds)
        self.ends.append(item)
        if item in self.fails:
            raise ValueError(f"item {item}")
        return item * item

    def stop(self, error: BaseException) -> None:
        self.errors.append(error)


class Calling:  # makes itself of an item, and keeps what comes of it as it is, and what is late as its message
    failure: str | None = None
    wait = 0.0

    def __init__(self, function: Callable[[int], Any], item: int) -> None:
        self._function, self._item = function, item

    def make(self) -> Any:
        return self._function(self._item)

    def keep(self, result: Any) -> Any:
        return str(result) if isinstance(result, TimeoutError) else result


def calling(function: Callable[[int], Any]) -> Callable[[int], Steps[Any]]:
    """The steps of an item that is one call."""

    def steps(item: int) -> Steps[Any]:
        return (yield Calling(function, item))

    return steps


def nothing(_: object) -> None:
    pass


def map_all(steps: Any, n: int, workers: int, stop: OnStop = nothing, seconds: float = LONG) -> list[Any]:
    with map_in_order(steps, range(n), workers, seconds, stop) as results:
        return list(results)


def interrupt_after_one(function: Callable[[int], object], workers: int, stop: OnStop) -> None:
    with map_in_order(calling(function), range(100), workers, LONG, stop) as results:
        next(results)
        raise KeyboardInterrupt


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(THREADS)]


def raising(error: BaseException) -> Callable[[object], NoReturn]:
    def fail(_: object) -> NoReturn:
        raise error

    return fail


def waiting(gate: threading.Event, *items: int) -> Callable[[int], int]:
    """What returns each item, some of them once a gate is open."""

    def wait(item: int) -> int:
        assert item not in items or gate.wait(LONG)
        return item

    return wait


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a late call waits on; open at the end, so that no thread outlives the test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("workers", [1, 3, 40])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    work = Work()
    assert map_all(calling(work), 600, workers, work.stop) == [item * item for item in range(600)]
    assert (work.errors, threads()) == ([], [])


def test_a_single_worker_takes_row_by_row_and_reads_none_ahead() -> None:
    """So that a run with one worker asks and journals in the order of the pool, the next row read when one is done."""
    replies = list[str]()

    def read() -> Iterator[int]:
        for item in range(3):
            replies.append(f"read {item}")
            yield item

    def steps(item: int) -> Steps[int]:
        for role in ("judge", "repairer"):
            yield Calling(lambda item: replies.append(f"{role} {item}"), item)  # noqa: B023 -- made before the next
        return item

    with map_in_order(steps, read(), 1, LONG, Work().stop) as results:
        for item in results:
            replies.append(f"decided {item}")
    assert replies == [f"{what} {item}" for item in range(3) for what in ("read", "judge", "repairer", "decided")]


def test_of_several_failures_the_first_in_time_is_raised() -> None:
    class Uneven(Work):  # item 0 ends once the failure of item 1 is known
        def __call__(self, item: int) -> int:
            while item == 0 and not self.errors:
                time.sleep(0.001)
            return super().__call__(item)

    work = Uneven(fails=frozenset({0, 1}))
    refuses(ValueError, "item 1", map_all, calling(work), 5, 2, work.stop)
    assert list(dict.fromkeys(str(error) for error in work.errors)) == ["item 1", "item 0"]


def test_an_error_where_results_are_used_waits_for_what_is_under_way() -> None:
    work = Work(seconds=0.05)
    refuses(KeyboardInterrupt, "^$", interrupt_after_one, work, 4, work.stop)
    assert (sorted(work.starts), len(work.starts) <= 8) == (sorted(work.ends), True)
    assert ([type(error) for error in work.errors], threads()) == ([KeyboardInterrupt], [])


def test_what_fails_because_the_rest_is_stopped_does_not_hide_the_error() -> None:
    stop = threading.Event()

    def fail_late(item: int) -> int:
        if item == 1:
            assert stop.wait(60)
            raise ValueError("stopped")
        return item

    def use_one() -> None:
        with map_in_order(calling(fail_late), range(2), 2, LONG, lambda _: stop.set()) as results:
            assert next(results) == 0
            raise OSError("No space left on device")

    refuses(OSError, "No space left", use_one)


def test_an_interrupt_during_the_wait_abandons_what_is_under_way() -> None:
    release = threading.Event()

    def work(item: int) -> None:
        time.sleep(0.1)
        if item:
            release.wait(30)

    refuses(KeyboardInterrupt, "^$", interrupt_after_one, work, 2, raising(KeyboardInterrupt()))
    assert len(threads()) == 2
    release.set()
    while threads():
        time.sleep(0.01)


def test_what_is_not_yielded_is_done_in_this_thread() -> None:
    def steps(item: int) -> Steps[threading.Thread]:
        if item == 2:
            raise ValueError("item 2")
        yield from ()
        return threading.current_thread()

    callers, errors = list[threading.Thread](), list[BaseException]()
    with pytest.raises(ValueError, match="item 2"), map_in_order(steps, range(4), 3, LONG, errors.append) as results:
        callers.extend(results)
    here = threading.current_thread()
    assert (callers, [str(error) for error in errors], threads()) == ([here, here], ["item 2"], [])


def test_what_a_call_raises_is_raised_even_if_it_is_not_an_error() -> None:
    errors = list[BaseException]()
    refuses(SystemExit, "7", map_all, calling(raising(SystemExit(7))), 3, 1, errors.append)
    assert ([type(error) for error in errors], threads()) == ([SystemExit], [])


def test_a_late_call_is_left_behind_and_another_thread_takes_its_place(gate: threading.Event) -> None:
    crew = list[threading.Thread]()

    def hang(item: int) -> int:
        if item == 1:
            crew.append(threading.current_thread())
            gate.wait(60)
        return item

    assert map_all(calling(hang), 6, 1, seconds=SOON) == [0, LATE, 2, 3, 4, 5]
    assert (threads(), crew[0].is_alive(), crew[0].daemon) == ([], True, True)


def test_calls_that_continue_do_not_keep_a_late_one_from_being_given_up(gate: threading.Event) -> None:
    start = time.monotonic()

    def hang(item: int) -> int:
        if item == 0:
            gate.wait(60)
        time.sleep(0.001)
        return item

    with map_in_order(calling(hang), itertools.count(), 2, SOON, nothing) as results:
        assert (next(results), time.monotonic() - start < 30) == (LATE, True)


def test_a_call_that_was_held_is_late_only_later_and_keeps_no_other_from_being_given_up(gate: threading.Event) -> None:
    calls = list[Calling]()

    def steps(item: int) -> Steps[Any]:
        calls.append(Calling(waiting(gate, 0, 1), item))
        calls[-1].wait = LONG * (item == 0)
        reply = yield calls[-1]
        if item == 1:
            gate.set()  # the one behind it was given up, and the one that was held continues
        return reply

    assert map_all(steps, 2, 2, seconds=SOON) == [0, LATE]


def test_the_deadline_holds_also_while_an_error_waits_for_what_is_under_way(gate: threading.Event) -> None:
    results = list[str]()

    class Hanging(Calling):
        def keep(self, result: Any) -> Any:
            results.append(super().keep(result))

    def steps(item: int) -> Steps[None]:
        if item == 1:
            raise ValueError("item 1")
        yield Hanging(lambda _: gate.wait(60), item)

    refuses(ValueError, "item 1", map_all, steps, 2, 1, seconds=SOON)
    assert results == [LATE]


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40), st.integers(1, 5))
def test_whatever_the_calls_of_each_item_results_come_in_order(plan: list[tuple[int, bool]], workers: int) -> None:
    """Each item is sent what came of each of its calls."""

    def steps(item: int) -> Steps[int]:
        reply = 10 * item
        for _ in range(plan[item][0]):
            reply = yield Calling(partial(following, 0.001 * plan[item][1]), reply)
        return reply

    assert map_all(steps, len(plan), workers) == [10 * item + calls for item, (calls, _) in enumerate(plan)]


def following(seconds: float, item: int) -> int:
    time.sleep(seconds)
    return item + 1


def test_no_more_than_a_window_of_items_is_taken_also_behind_a_slow_one(gate: threading.Event) -> None:
    def taking(items: list[int]) -> Iterator[int]:
        for item in range(10_000):
            items.append(item)
            yield item

    items = list[int]()
    with map_in_order(calling(Work()), taking(items), 4, LONG, nothing) as results:
        next(results)
        assert len(items) <= window_of(4)
    timer, items = threading.Timer(0.5, gate.set), []
    timer.start()
    with map_in_order(calling(waiting(gate, 0)), taking(items), 2, LONG, nothing) as results:
        assert (next(results), len(items) <= window_of(2)) == (0, True)
        assert list(results) == list(range(1, 10_000))
    timer.join()


class Punctual:  # stands for the threads: a call is through as soon as it is given, or only when it is waited for
    def __init__(self, workers: int, *, slow: bool) -> None:
        self.workers, self.slow = workers, slow
        self.queue: list[tuple[int, Any]] = []

    def give(self, number: int, call: Any) -> None:
        self.queue.append((number, call.keep(call.make())))

    def get(self, *, wait: bool) -> tuple[int, Any] | None:
        return self.queue.pop(0) if self.queue and (wait or not self.slow) else None


@pytest.mark.parametrize(("slow", "calls"), [(False, 1), (True, 13)], ids=["through at once", "only when waited for"])
def test_a_result_is_used_as_soon_as_no_call_is_through_and_no_worker_would_be_idle(slow: bool, calls: int) -> None:
    work = Work()
    callers: Any = Punctual(3, slow=slow)
    results = _in_order(map(calling(work), range(2_000)), callers, lambda: None)
    assert (next(results), len(work.starts)) == (0, calls)
    assert list(results) == [item * item for item in range(1, 2_000)]


def test_results_are_used_while_a_call_is_under_way(gate: threading.Event) -> None:
    with map_in_order(calling(waiting(gate, 5)), range(6), 3, LONG, nothing) as results:
        assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
        gate.set()
        assert list(results) == [5]


def test_what_on_stop_raises_is_raised_and_where_no_thread_can_begin_the_map_ends(monkeypatch: Any) -> None:
    class Unstoppable(Work):
        def stop(self, error: BaseException) -> None:
            super().stop(error)
            if len(self.errors) == 1:
                raise OSError("No space left on device")

    work = Unstoppable(fails=frozenset({0}))
    refuses((OSError, ValueError), "No space left|item 0", map_all, calling(work), 3, 1, work.stop)
    monkeypatch.setattr(scheduling, "start", raising(RuntimeError("can't start new thread")))
    refuses(RuntimeError, "can't start", map_all, calling(Work()), 3, 2)


def test_whoever_leaves_early_has_no_further_call_made(gate: threading.Event) -> None:
    work, leaving = Work(), list[bool]()

    def working(item: int) -> int:
        assert item < 2 or gate.wait(60)
        return work(item)

    def look() -> None:
        if leaving:
            gate.set()

    with map_in_order(calling(working), range(100), 2, LONG, work.stop, look) as results:
        next(results)
        leaving.append(True)
    assert sorted(work.ends) in ([0, 1], [0, 1, 2], [0, 1, 2, 3])


def test_the_callers_context_holds_in_every_thread() -> None:
    with dspy.context(rollout=7):
        assert map_all(calling(lambda _: dspy.settings.rollout), 9, 3) == [7] * 9


R = TypeVar("R")
WORD = ContextVar("WORD", default="none")


def within(seconds: float, call: Callable[[], R]) -> R:
    async def run() -> R:
        return await asyncio.wait_for(in_thread(call), seconds)

    return asyncio.run(run())


def test_calls_are_made_in_one_thread_until_it_is_left_behind_with_a_late_one(gate: threading.Event) -> None:
    first, late = within(LONG, threading.get_ident), list[int]()
    assert {within(LONG, threading.get_ident) for _ in range(20)} == {first}
    assert first != threading.get_ident()

    def wait() -> None:
        late.append(threading.get_ident())
        gate.wait()

    refuses(TimeoutError, "^$", within, SOON, wait)
    assert within(LONG, threading.get_ident) not in late


def test_a_call_sees_the_context_of_its_own_caller_and_not_that_of_the_call_before() -> None:
    """Also after one that raised, be it a timeout of its own."""
    refuses(TimeoutError, "the client's", within, LONG, partial(raising(TimeoutError("the client's")), None))

    def change() -> str:
        before = WORD.get()
        WORD.set("changed")
        return before

    token = WORD.set("caller's")
    assert [within(LONG, change), within(LONG, change)] == ["caller's", "caller's"]
    WORD.reset(token)
    assert within(LONG, WORD.get) == "none"


def test_calls_at_once_have_a_thread_each() -> None:
    barrier = threading.Barrier(8)

    def meet() -> int:
        barrier.wait(LONG)
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
