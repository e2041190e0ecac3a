"""Many rows at once, in order: bounded maps over threads and over coroutines.

Results come in the order of the items whatever order they finish in; a fixed window of items is under way or waiting
for its turn, so that memory does not grow with their number and one slow item does not stop the others at once.

Each map is a context, so that the way out of it is the same whatever ends it early, be it an item that fails, an error
where the results are used, or ctrl-C: `on_stop` is called at once, what has not begun is dropped, and what is under way
is waited for. Only an interrupt during that wait abandons it.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Generic, TypeAlias, TypeVar

from eldgr_dspy.programs.run.calling import THREADS as THREADS
from eldgr_dspy.programs.run.calling import Call, Callers, OnStop

_MOMENT = 0.001  # seconds; long beside what a thread does between two calls, and short beside a call

T = TypeVar("T")
R = TypeVar("R")

Steps: TypeAlias = Generator[Call, Any, R]
"""An item's steps: yields the calls that may take long, is sent what came of each, and returns the item's result."""


def window_of(workers: int) -> int:
    """Return how many items are under way or finished and waiting for their turn."""
    return max(256, 16 * workers)


@contextmanager
def map_ordered(
    steps: Callable[[T], Steps[R]],
    items: Iterable[T],
    workers: int,
    seconds: float,
    on_stop: OnStop,
) -> Iterator[Iterator[R]]:
    """Run a generator for each item in this thread; the context gives what they return, in the order of the items.

    A generator yields each call that may take long, and is sent what came of it. Calls are made in `workers` threads,
    and each in a copy of this context, so that `dspy.context` holds in it; a late one is given up after `seconds`.
    Where several calls fail, the failure that came first is raised.
    """
    callers = Callers(workers, seconds, on_stop)
    try:
        yield _in_order(steps, items, callers)
    except BaseException as error:
        failures = list(callers.failures)  # not those that come of stopping
        callers.stop()
        on_stop(error)  # a second interrupt, here or in the next line, skips the wait
        callers.wait()
        _raise_first(failures, error)
        raise
    callers.stop()
    callers.wait()


def _in_order(steps: Callable[[T], Steps[R]], items: Iterable[T], callers: Callers) -> Iterator[R]:
    rows = _UnderWay[R](callers)
    for item in items:
        rows.begin(steps(item))
        while rows.take(0.0):
            pass
        while rows.full:
            yield from rows.go_on()
    while rows.left:
        yield from rows.go_on()


class _UnderWay(Generic[R]):
    """The items that wait for a call, by their number, and the results that wait for their turn.

    Calls come first: as long as one comes through every moment, the steps behind it are taken and results are kept,
    because what is done with a result takes the processor from the calls. Only where the window is full do they wait.
    """

    def __init__(self, callers: Callers) -> None:
        self._callers = callers
        # Some more than are under way, so that no thread waits for the next; a single worker takes row by row.
        self._most = 4 * callers.workers if callers.workers > 1 else 1
        self._window = window_of(callers.workers)
        self._steps = dict[int, Steps[R]]()
        self._results = dict[int, R]()
        self._begun = self._turn = 0

    @property
    def left(self) -> int:
        """How many items have begun whose result was not used yet."""
        return self._begun - self._turn

    @property
    def full(self) -> bool:
        """Whether to go on before another item is begun."""
        return len(self._steps) >= self._most or self.left >= self._window or (self._due and not self._steps)

    @property
    def _due(self) -> bool:
        return self._turn in self._results

    def begin(self, steps: Steps[R]) -> None:
        """Take an item's first steps."""
        self._begun += 1
        self._send(self._begun - 1, steps, None)

    def go_on(self) -> Iterator[R]:
        """Take the next steps of an item, or yield the result whose turn has come where no call is through."""
        if not self._due:
            self.take(math.inf)
        elif not self._steps or self.left >= self._window or not self.take(_MOMENT):
            self._turn += 1
            yield self._results.pop(self._turn - 1)

    def take(self, seconds: float) -> bool:
        """Take the next steps of an item whose call comes through within so long; return whether one did."""
        found = self._callers.take(seconds) if self._steps else None
        if found is not None:
            number, came = found
            self._send(number, self._steps.pop(number), came)
        return found is not None

    def _send(self, number: int, steps: Steps[R], came: object) -> None:
        try:
            call = steps.send(came)
        except StopIteration as stop:
            self._results[number] = stop.value
        else:
            self._steps[number] = steps
            self._callers.give(number, call)


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
        yield _ain_order(lambda item: asyncio.create_task(attempt(item)), items, slots, workers, pending)
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
    workers: int,
    pending: "deque[asyncio.Task[R]]",
) -> AsyncIterator[R]:
    window = window_of(workers)
    for item in items:
        async for result in _in_pauses(slots, pending):
            yield result
        await slots.acquire()
        pending.append(submit(item))
        while len(pending) >= window:
            yield await _first_of(pending)
    for _ in range(workers):  # until none is under way
        async for result in _in_pauses(slots, pending, last=True):
            yield result
        await slots.acquire()
    while pending:
        yield await _first_of(pending)


async def _in_pauses(
    slots: asyncio.Semaphore, pending: "deque[asyncio.Task[R]]", last: bool = False
) -> AsyncIterator[R]:
    """Yield results as long as no slot is free and the event loop has nothing else to do: calls come first.

    Where the last calls are under way no further one waits for a slot, so that a busy moment is waited out.
    """
    while slots.locked() and pending and pending[0].done():
        if await _is_idle():
            yield await _first_of(pending)
        elif not last:
            return


async def _is_idle() -> bool:
    """Whether a moment in the event loop takes no longer than a moment."""
    began = time.monotonic()
    await asyncio.sleep(_MOMENT)
    return time.monotonic() - began < 2 * _MOMENT


async def _first_of(pending: "deque[asyncio.Task[R]]") -> R:
    if not pending[0].done():
        await asyncio.wait([pending[0]])  # unlike awaiting the task, being cancelled here does not cancel it
    return pending.popleft().result()


def _raise_first(failures: Sequence[Exception], error: BaseException) -> None:
    """Raise the first failure of an item where `error` is a later one; an interrupt is never a failure."""
    if failures and isinstance(error, Exception) and error is not failures[0]:
        raise failures[0] from failures[0].__cause__
