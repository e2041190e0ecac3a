"""Calls in tasks of the running event loop, where the steps are also taken unless they may take long."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from functools import partial
from typing import Any, TypeVar

from eldgr_dspy.programs.run.scheduling.order import Call, OnStop, Rows, Steps, late, noted, raise_first
from eldgr_dspy.programs.threads import Taking, at_once

T = TypeVar("T")
R = TypeVar("R")


@asynccontextmanager
async def amap_ordered(
    steps: Callable[[T], Steps[R]],
    items: Iterable[T],
    workers: int,
    seconds: float,
    on_stop: OnStop,
    taking: Taking = at_once,
) -> AsyncIterator[AsyncIterator[R]]:
    """Run a generator for each item as `map_ordered` does, with its calls in tasks.

    The steps between its calls are taken on the event loop, or in a thread if `taking` is `in_thread`.
    """
    calls = _Tasks(workers, seconds, on_stop)
    try:
        yield _in_order(map(steps, items), calls, taking)
    except BaseException as error:
        failures = list(calls.failures)  # without those caused by stopping
        on_stop(error)
        raise_first(failures, error)
        raise
    finally:
        await calls.end()


async def _in_order(rows: Iterable[Steps[R]], calls: "_Tasks", taking: Taking) -> AsyncIterator[R]:
    under_way = Rows(rows, calls.workers, calls.give)
    while await taking(under_way.begin):
        finished = await calls.get(wait=under_way.waits)
        if finished is not None:
            await taking(partial(under_way.go_on, *finished))
        elif under_way.due:
            yield under_way.use()


class _Tasks:
    """Makes calls in tasks, `workers` at once, each for at most `seconds`."""

    def __init__(self, workers: int, seconds: float, on_stop: OnStop) -> None:
        self.workers = workers
        self.failures: list[Exception] = []
        self._seconds, self._on_stop = seconds, on_stop
        self._waiting = deque[tuple[int, Call, Context]]()
        self._through = deque[tuple[int, Any, BaseException | None]]()
        self._came = asyncio.Event()
        self._tasks = set[asyncio.Task[None]]()
        self._loop = asyncio.get_running_loop()

    def give(self, number: int, call: Call) -> None:
        """Get a call made in a copy of this context, as soon as fewer than `workers` are under way."""
        self._waiting.append((number, call, copy_context()))
        self._loop.call_soon_threadsafe(self._start)

    def _start(self) -> None:
        if self._waiting and len(self._tasks) < self.workers:
            task = self._loop.create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def get(self, *, wait: bool) -> tuple[int, Any] | None:
        """Return the number of a finished call and what was kept of it; None if none is finished or awaited.

        Raises:
            BaseException: What the call failed with.
        """
        if wait and not self._through:
            self._came.clear()
            await self._came.wait()
        elif not self._through:
            await asyncio.sleep(0)
        if not self._through:
            return None
        number, came, error = self._through.popleft()
        if error is not None:
            raise error
        return number, came

    async def end(self) -> None:
        """Drop the calls that have not started, and wait for those under way."""
        self._waiting.clear()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._make(*self._waiting.popleft())
        finally:  # at once, so that the next call finds the place free
            self._tasks.discard(_this_task())

    async def _make(self, number: int, call: Call, context: Context) -> None:
        came: Any = None
        error: BaseException | None = None
        try:
            came = call.keep(await self._said(call, context))
            await call.akept()
        except BaseException as failure:
            error = noted(failure, self.failures, self._on_stop)
            if _this_task().cancelling():
                raise
        finally:
            self._through.append((number, came, error))
            self._came.set()

    async def _said(self, call: Call, context: Context) -> Any:
        try:
            return await _within(self._seconds, call, context)
        except TimeoutError as error:
            return error


def _this_task() -> "asyncio.Task[Any]":
    task = asyncio.current_task()
    assert task is not None
    return task


async def _within(seconds: float, call: Call, context: Context) -> Any:
    """Return what a call returns.

    The timeouts of an HTTP client restart with each byte that arrives, so a reply that drips never ends; this clock
    runs once.

    Raises:
        TimeoutError: After `seconds`, not counting those for which it was held; it is cancelled and not waited for.
    """
    task = asyncio.create_task(call.amake(), context=context)
    end = time.monotonic() + seconds
    try:
        while (left := end + call.held - time.monotonic()) > 0:
            if (await asyncio.wait([task], timeout=left))[0]:
                return task.result()
    except BaseException:
        task.cancel()
        raise
    task.cancel()
    task.add_done_callback(_forget)
    raise late(seconds, call)


def _forget(task: "asyncio.Task[Any]") -> None:
    """Retrieve what a late task raises: asyncio reports errors that nobody retrieved."""
    if not task.cancelled():
        task.exception()
