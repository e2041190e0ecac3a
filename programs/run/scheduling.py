"""Many rows at once, in order: the steps of a row in one thread, its calls in several threads.

A row is a generator: it yields each call that may take long, is sent what was kept of it, and returns its result. The
thread that made a call keeps its reply. A late call is abandoned: its thread is left behind, another takes its place,
and its late reply is not used.

The map is a context, so that the exit is the same however it ends early: an item that fails, an error where the results
are used, or ctrl-C. `on_stop` is called at once, calls that have not started are dropped, and those under way are
awaited. Only an interrupt during that wait abandons them.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeAlias, TypeVar

from eldgr_dspy.errors import brief
from eldgr_dspy.programs.service.threads import IDLE, start

T = TypeVar("T")
R = TypeVar("R")

OnStop: TypeAlias = Callable[[BaseException], None]
"""Called with what ends a map early: where the call that failed was made, and again on the way out."""

THREADS = "eldgr-asking"
"""The name of a thread that makes calls, unless it is idle or left behind."""

_TICK = 0.1  # seconds; how often a waiting thread looks for signals


class Call(Protocol):
    """An action that may take long: made until the deadline, then kept, once, however long keeping takes."""

    @property
    def wait(self) -> float:
        """How many seconds a limit has delayed it so far. Its deadline is that much later."""
        ...

    @property
    def failure(self) -> str | None:
        """Why its last request failed, or None if none did."""
        ...

    def make(self) -> Any:
        """Make the call in a thread, and return the reply or an error to be kept."""
        ...

    def keep(self, result: Any) -> Any:
        """Keep the reply, or that it is late, and return what its steps are sent."""
        ...


Steps: TypeAlias = Generator[Call, Any, R]
"""An item's steps: yields the calls that may take long, is sent what was kept of each, and returns its result."""


@contextmanager
def map_in_order(
    steps: Callable[[T], Steps[R]],
    items: Iterable[T],
    workers: int,
    seconds: float,
    on_stop: OnStop,
    look: Callable[[], None] = lambda: None,
) -> Iterator[Iterator[R]]:
    """Run a generator for each item in this thread; the context gives what they return, in the order of the items."""
    # `look` is called often, even during the waits, and ends the map by what it raises.
    calls = _Calls(workers, seconds, on_stop)
    try:
        yield _in_order(map(steps, items), calls, look)
    except BaseException as error:
        failures = list(calls.failures)  # without those caused by stopping
        calls.stop()
        on_stop(error)  # a second interrupt, here or in the next line, skips the wait
        calls.wait(look)
        if failures and isinstance(error, Exception) and error is not failures[0]:
            raise failures[0] from failures[0].__cause__  # the first of several
        raise
    calls.stop()
    calls.wait(look)


def window_of(workers: int) -> int:
    """Return how many items are under way or finished and waiting for their turn."""
    return max(256, 16 * workers)


def _in_order(rows: Iterable[Steps[R]], calls: "_Calls", look: Callable[[], None]) -> Iterator[R]:
    """Yield the result of each item in its turn. Calls come first, because others wait for them."""
    # More than are under way, so that no worker waits for the next call; a single worker takes row by row.
    most = 4 * calls.workers if calls.workers > 1 else 1
    items, window = iter(rows), window_of(calls.workers)
    waiting, results = dict[int, Steps[R]](), dict[int, R]()  # by the item's number: for a call, and for its turn
    starts = turn = 0
    more = True

    def is_blocked() -> bool:
        """Whether no further item may start."""
        full = len(waiting) >= most or starts - turn >= window
        return not more or full or (turn in results and not waiting)

    def send(number: int, value: object) -> None:
        """Take the next steps of an item: the first, or those after its call."""
        try:
            call = waiting[number].send(value)
        except StopIteration as stop:
            del waiting[number]
            results[number] = stop.value
        else:
            calls.give(number, call)

    while more or starts > turn:
        if not is_blocked():
            if (steps := next(items, None)) is None:
                more = False
                continue
            waiting[starts] = steps
            starts += 1
            send(starts - 1, None)
        look()
        waits = is_blocked()
        item = calls.get(wait=waits and turn not in results)
        if item is not None:
            send(*item)
        elif waits and turn in results:
            turn += 1
            yield results.pop(turn - 1)


@dataclass(slots=True, eq=False)
class _Worker:
    """A thread of the pool while it makes calls of this map."""

    thread: Any = None
    future: Any = None


@dataclass(slots=True, eq=False)
class _Job:
    """A call under its number, and its outcome."""

    number: int
    call: Call
    context: Context = field(default_factory=copy_context)  # so that `dspy.context` holds in the call
    worker: Any = None
    result: Any = None
    error: BaseException | None = None


class _Calls:
    """Makes calls in threads, `workers` at once, each for at most `seconds`. For use by one thread."""

    def __init__(self, workers: int, seconds: float, on_stop: OnStop) -> None:
        self.workers = workers
        self.failures: list[Exception] = []
        self._seconds, self._on_stop = seconds, on_stop
        self._waiting = deque[_Job]()
        self._through = SimpleQueue[_Job]()
        self._starts = dict[_Job, float]()  # the earliest first; the one that removes a job keeps the reply
        self._at_work = set[_Worker]()  # without those left behind
        self._alive = set[Future[None]]()
        self._lock = threading.Lock()

    def give(self, number: int, call: Call) -> None:
        """Get a call made in a copy of this context, as soon as a thread is free."""
        self._waiting.append(_Job(number, call))
        self._start()

    def get(self, *, wait: bool) -> tuple[int, Any] | None:
        """Return the number of a finished call and what was kept of it, or raise its error; wait for a tick at most."""
        try:
            job = self._through.get(wait, self._give_up_late_ones())
        except Empty:
            return None
        if job.error is not None:
            raise job.error
        return job.number, job.result

    def stop(self) -> None:
        """Drop the calls that have not started."""
        with self._lock:
            self._waiting.clear()

    def wait(self, look: Callable[[], None]) -> None:
        """Wait, after `stop`, for the calls under way, unless what `look` finds abandons them."""
        while self._alive:
            look()
            wait(set(self._alive), self._give_up_late_ones())

    def _start(self) -> None:
        """Start a thread if a call waits and fewer than `workers` threads are at work."""
        worker = _Worker()
        with self._lock:
            if not self._waiting or len(self._at_work) >= self.workers:
                return
            self._at_work.add(worker)
        try:
            worker.future = future = start(partial(self._work, worker))
        except BaseException:  # no thread can be started, or an interrupt
            self._at_work.discard(worker)
            raise
        self._alive.add(future)
        future.add_done_callback(self._alive.discard)

    def _work(self, worker: _Worker) -> None:
        worker.thread = threading.current_thread()
        worker.thread.name = THREADS
        while (job := self._next(worker)) is not None:
            result: Any = None
            error: BaseException | None = None
            try:
                result = job.context.run(job.call.make)
            except BaseException as failure:  # noqa: BLE001 -- raised where the call is taken
                error = failure
            if not self._claim(job):
                break
            self._keep(job, result, error)
        worker.thread.name = IDLE

    def _next(self, worker: _Worker) -> _Job | None:
        """Return the call that a thread makes next, or None if it is no longer at work."""
        with self._lock:
            if not self._waiting:
                self._at_work.discard(worker)
                return None
            job = self._waiting.popleft()
            job.worker = worker
            self._starts[job] = time.monotonic()
            return job

    def _claim(self, job: _Job, *, late: bool = False) -> bool:
        """Remove a job from those under way. The first to do so, its thread or the clock, keeps the reply."""
        with self._lock:
            mine = self._starts.pop(job, None) is not None
            if mine and late:
                job.worker.thread.name = "left behind"
            return mine

    def _keep(self, job: _Job, result: Any, error: BaseException | None = None) -> None:
        try:
            job.result, job.error = None if error else job.call.keep(result), error
        except BaseException as failure:  # noqa: BLE001 -- raised where the call is taken
            job.error = failure
        if isinstance(job.error, Exception):
            self.failures.append(job.error)
            try:
                self._on_stop(job.error)
            except BaseException as further:  # noqa: BLE001 -- raised where the call is taken
                job.error = further
        self._through.put(job)

    def _give_up_late_ones(self) -> float:
        """Abandon the late calls, and return how long to wait until one may be late again."""
        now, pause = time.monotonic(), min(self._seconds, _TICK)
        with self._lock:
            first = next(iter(self._starts.values()), now)
            if first + self._seconds > now:
                return min(first + self._seconds - now, _TICK)
            # A limit may have delayed the earliest call, so that it is late only later.
            ends = {job: since + self._seconds + job.call.wait for job, since in self._starts.items()}
        for job, end in ends.items():
            if end > now:
                pause = min(pause, end - now)
            elif self._claim(job, late=True):
                failure = job.call.failure  # what the server did, if it did anything
                fault = "nothing was said" if failure is None else "no reply could be used"
                why = "" if failure is None else f" (the last request failed: {brief(failure, 180)})"
                late = f"{fault} within {self._seconds:g} s; a longer --timeout waits longer{why}"
                self._keep(job, TimeoutError(late))
                self._alive.discard(job.worker.future)
                with self._lock:
                    self._at_work.discard(job.worker)
                self._start()  # another thread, in its place
        return pause
