"""A bounded map keeps order and memory, and whatever ends it early: nothing begins any more, all that began ends."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import dspy
import pytest

from eldgr_dspy.programs.run.concurrency import THREADS, OnStop, amap_ordered, map_ordered, window_of


class Work:
    """Counts what began and what ended, in threads or tasks; some items are slow, some fail."""

    def __init__(self, *, fails: frozenset[int] = frozenset(), seconds: float = 0.0) -> None:
        self.began: list[int] = []
        self.ended: list[int] = []
        self.stopped: list[BaseException] = []
        self.fails, self.seconds = fails, seconds

    def __call__(self, item: int) -> int:
        self.began.append(item)
        time.sleep(self.seconds)
        self.ended.append(item)
        if item in self.fails:
            raise ValueError(f"item {item}")
        return item * item

    async def acall(self, item: int) -> int:
        self.began.append(item)
        await asyncio.sleep(self.seconds)
        self.ended.append(item)
        if item in self.fails:
            raise ValueError(f"item {item}")
        return item * item

    def stop(self, error: BaseException) -> None:
        self.stopped.append(error)


def collect(work: Work, n: int, workers: int) -> list[int]:
    with map_ordered(work, range(n), workers, work.stop) as results:
        return list(results)


def acollect(work: Work, n: int, workers: int) -> list[int]:
    async def collected() -> list[int]:
        async with amap_ordered(work.acall, range(n), workers, work.stop) as results:
            return [result async for result in results]

    return asyncio.run(collected())


def interrupt_after_one(function: Callable[[int], object], workers: int, stop: OnStop) -> None:
    with map_ordered(function, range(100), workers, stop) as results:
        next(results)
        raise KeyboardInterrupt


Collected = Callable[[Work, int, int], list[int]]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(THREADS)]


@pytest.mark.parametrize("collected", [collect, acollect])
@pytest.mark.parametrize("workers", [1, 3, 40])
def test_results_come_in_the_order_of_the_items(collected: Collected, workers: int) -> None:
    work = Work()
    assert collected(work, 600, workers) == [item * item for item in range(600)]
    assert (work.stopped, threads()) == ([], [])


@pytest.mark.parametrize("collected", [collect, acollect])
def test_of_several_failures_the_first_in_time_is_raised(collected: Collected) -> None:
    class Uneven(Work):
        def __call__(self, item: int) -> int:
            if item == 0:
                time.sleep(0.2)
            return super().__call__(item)

        async def acall(self, item: int) -> int:
            if item == 0:
                await asyncio.sleep(0.2)
            return await super().acall(item)

    work = Uneven(fails=frozenset({0, 1}))
    with pytest.raises(ValueError, match="item 1"):
        collected(work, 5, 2)
    assert [str(error) for error in work.stopped[:2]] == ["item 1", "item 0"]


def test_an_error_where_results_are_used_waits_for_what_is_under_way() -> None:
    work = Work(seconds=0.05)
    with pytest.raises(KeyboardInterrupt):
        interrupt_after_one(work, 4, work.stop)
    assert sorted(work.began) == sorted(work.ended)
    assert len(work.began) <= 8
    assert [type(error) for error in work.stopped] == [KeyboardInterrupt]
    assert threads() == []


def test_an_interrupt_during_the_wait_abandons_what_is_under_way() -> None:
    release = threading.Event()

    def work(item: int) -> None:
        time.sleep(0.1)
        if item:
            release.wait(30)

    def stop(_: BaseException) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt_after_one(work, 2, stop)
    assert len(threads()) == 2
    release.set()
    while threads():
        time.sleep(0.01)


def test_a_cancelled_task_waits_for_what_is_under_way_and_a_second_time_abandons_it() -> None:
    async def interrupted(times: int) -> Work:
        work = Work(seconds=0.2)

        async def consume() -> None:
            async with amap_ordered(work.acall, range(100), 4, work.stop) as results:
                async for _ in results:
                    pass

        task = asyncio.create_task(consume())
        for _ in range(times):
            await asyncio.sleep(0.05)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [type(error) for error in work.stopped] == [asyncio.CancelledError]
        return work

    once, twice = asyncio.run(interrupted(1)), asyncio.run(interrupted(2))
    assert (sorted(once.ended), twice.ended) == ([0, 1, 2, 3], [])


def test_without_workers_the_items_are_worked_on_in_this_thread() -> None:
    work = Work(fails=frozenset({2}))
    here = threading.current_thread()
    with map_ordered(lambda _: threading.current_thread(), range(3), 0, work.stop) as found:
        assert set(found) == {here}
    with pytest.raises(ValueError, match="item 2"):
        collect(work, 4, 0)
    assert (work.ended, [str(error) for error in work.stopped]) == ([0, 1, 2], ["item 2"])


def test_no_more_than_a_window_of_items_is_taken_before_the_first_result_is_used() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(10_000):
            taken.append(item)
            yield item

    work = Work()
    with map_ordered(work, items(), 4, work.stop) as results:
        next(results)
        assert len(taken) <= window_of(4)


def test_the_callers_context_holds_in_every_thread() -> None:
    work = Work()
    with dspy.context(rollout=7), map_ordered(lambda _: dspy.settings.rollout, range(9), 3, work.stop) as found:
        assert set(found) == {7}
