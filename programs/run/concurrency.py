"""Many rows at once, in order: bounded maps over threads and over coroutines.

Results come in the order of the items whatever order they finish in; a fixed window of items is under way or waiting
for its turn, so that memory does not grow with their number and one slow item does not stop the others at once.

Each map is a context, so that the way out of it is the same whatever ends it early, be it an item that fails, an error
where the results are used, or ctrl-C: `on_stop` is called at once, what has not begun is dropped, and what is under way
is waited for. Only an interrupt during that wait abandons it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from contextvars import copy_context
from threading import Semaphore
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

OnStop = Callable[[BaseException], None]
"""Told what ends a map early: in the thread of the item that failed, and again on the way out."""

THREADS = "eldgr-row"
"""What the names of the threads begin with."""


def window_of(workers: int) -> int:
    """Return how many items are under way or finished and waiting for their turn."""
    return max(256, 8 * workers)


@contextmanager
def map_ordered(function: Callable[[T], R], items: Iterable[T], workers: int, on_stop: OnStop) -> Iterator[Iterator[R]]:
    """Map a function over items in `workers` threads; the context gives the results, in the order of the items.

    With 0 workers this thread does it itself: a third of a millisecond an item is saved, and an interrupt breaks into
    what is under way. Else each call runs in a copy of the caller's context, so that `dspy.context` holds in it, and
    where several items fail, the failure that came first is raised.
    """
    if not workers:
        try:
            yield map(function, items)
        except BaseException as error:
            on_stop(error)
            raise
        return
    failures: list[Exception] = []

    def attempt(item: T) -> R:
        try:
            return function(item)
        except Exception as error:
            failures.append(error)
            on_stop(error)
            raise

    pool = ThreadPoolExecutor(workers, thread_name_prefix=THREADS)
    try:
        yield _in_order(lambda item: pool.submit(copy_context().run, attempt, item), items, workers)
    except BaseException as error:
        pool.shutdown(wait=False, cancel_futures=True)
        on_stop(error)  # a second interrupt, here or in the next line, skips the wait; the pool as a context would not
        pool.shutdown()
        _raise_first(failures, error)
        raise
    pool.shutdown()


def _in_order(submit: Callable[[T], "Future[R]"], items: Iterable[T], workers: int) -> Iterator[R]:
    pending, window = deque[Future[R]](), window_of(workers)
    slots = Semaphore(2 * workers)  # one under way and one next: what is read long before its turn is only in the way
    for item in items:
        slots.acquire()
        pending.append(submit(item))
        pending[-1].add_done_callback(lambda _: slots.release())
        while pending and (len(pending) >= window or pending[0].done()):
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


@asynccontextmanager
async def amap_ordered(
    function: Callable[[T], Awaitable[R]], items: Iterable[T], workers: int, on_stop: OnStop
) -> AsyncIterator[AsyncIterator[R]]:
    """Map a coroutine function over items as `map_ordered` does, in tasks of the running event loop."""
    slots, failures = asyncio.Semaphore(workers), list[Exception]()
    under_way, pending = set[object](), deque[asyncio.Task[R]]()

    async def attempt(item: T) -> R:
        under_way.add(asyncio.current_task())
        try:
            return await function(item)
        except Exception as error:
            failures.append(error)
            on_stop(error)
            raise
        finally:
            under_way.discard(asyncio.current_task())
            slots.release()

    try:
        yield _ain_order(lambda item: asyncio.create_task(attempt(item)), items, slots, window_of(workers), pending)
    except BaseException as error:
        on_stop(error)
        _raise_first(failures, error)
        raise
    finally:
        for task in pending:
            if task not in under_way:
                task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


async def _ain_order(
    submit: Callable[[T], "asyncio.Task[R]"],
    items: Iterable[T],
    slots: asyncio.Semaphore,
    window: int,
    pending: "deque[asyncio.Task[R]]",
) -> AsyncIterator[R]:
    for item in items:
        await slots.acquire()
        pending.append(submit(item))
        while pending and (len(pending) >= window or pending[0].done()):
            yield await _first_of(pending)
    while pending:
        yield await _first_of(pending)


async def _first_of(pending: "deque[asyncio.Task[R]]") -> R:
    if not pending[0].done():
        await asyncio.wait([pending[0]])  # unlike awaiting the task, being cancelled here does not cancel it
    return pending.popleft().result()


def _raise_first(failures: Sequence[Exception], error: BaseException) -> None:
    """Raise the first failure of an item where `error` is a later one; an interrupt is never a failure."""
    if failures and isinstance(error, Exception) and error is not failures[0]:
        raise failures[0] from failures[0].__cause__
