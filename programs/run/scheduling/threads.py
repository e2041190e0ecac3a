"""Calls in threads, while one thread takes the steps.

What a call says is kept by the thread that made it. One that is late is given up instead: its thread is left behind,
another takes its place, and what it says late is not used.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from eldgr_dspy.programs.run.scheduling.order import Call, OnStop, Rows, Steps, late, raise_first
from eldgr_dspy.programs.run.scheduling.pool import IDLE, start

T = TypeVar("T")
R = TypeVar("R")

THREADS = "eldgr-asking"
"""The name of a thread that makes calls, unless it is idle or left behind."""

_TICK = 0.1  # seconds; whoever waits looks that often for signals


@contextmanager
def map_ordered(
    steps: Callable[[T], Steps[R]],
    items: Iterable[T],
    workers: int,
    seconds: float,
    on_stop: OnStop,
    look: Callable[[], None] = lambda: None,
) -> Iterator[Iterator[R]]:
    """Run a generator for each item in this thread; the context gives what they return, in the order of the items.

    Calls are made in `workers` threads, and each in a copy of this context, so that `dspy.context` holds in it; a late
    one is given up after `seconds`. Where several calls fail, the failure that came first is raised. `look` is called
    often also while this waits, and ends the map by what it raises.
    """
    calls = _Calls(workers, seconds, on_stop)
    try:
        yield _in_order(map(steps, items), calls, look)
    except BaseException as error:
        failures = list(calls.failures)  # not those that come of stopping
        calls.stop()
        on_stop(error)  # a second interrupt, here or in the next line, skips the wait
        calls.wait(look)
        raise_first(failures, error)
        raise
    calls.wait()


def _in_order(rows: Iterable[Steps[R]], calls: "_Calls", look: Callable[[], None]) -> Iterator[R]:
    under_way = Rows(rows, calls.workers, calls.give)
    while under_way.begin():
        look()
        found = calls.take(wait=under_way.waits)
        if found is not None:
            under_way.go_on(*found)
        elif under_way.due:
            yield under_way.use()


class _Job:
    """A call under its number, and what came of it."""

    __slots__ = ("call", "came", "context", "error", "number", "thread")

    def __init__(self, number: int, call: Call) -> None:
        self.number, self.call, self.context = number, call, copy_context()
        self.thread: threading.Thread | None = None
        self.came: Any = None
        self.error: BaseException | None = None


class _Calls:
    """Makes calls in threads, `workers` at once, each for at most `seconds`. For use by one thread."""

    def __init__(self, workers: int, seconds: float, on_stop: OnStop) -> None:
        self.workers = workers
        self.failures: list[Exception] = []
        self._seconds, self._on_stop = seconds, on_stop
        self._waiting = deque[_Job]()
        self._through = SimpleQueue[_Job]()
        self._begun = dict[_Job, float]()  # the earliest first; whoever takes a job out keeps what is said
        self._at_work = 0  # threads, but for those left behind
        self._ended = threading.Condition()

    def give(self, number: int, call: Call) -> None:
        """Have a call made in a copy of this context, as soon as a thread is free."""
        job = _Job(number, call)
        with self._ended:
            self._waiting.append(job)
            further = self._at_work < self.workers
            self._at_work += further
        if further:
            start(self._work)

    def take(self, *, wait: bool) -> tuple[int, Any] | None:
        """Return the number of a call that is through and what was kept of it; to wait takes at most a tick.

        Raises:
            BaseException: What the call failed with.
        """
        left = self._until_the_next_deadline() or self._give_up_late_ones()
        try:
            job = self._through.get(wait, left)
        except Empty:
            return None
        if job.error is not None:
            raise job.error
        return job.number, job.came

    def stop(self) -> None:
        """Drop the calls that have not begun."""
        with self._ended:
            self._waiting.clear()

    def wait(self, look: Callable[[], None] = lambda: None) -> None:
        """Wait, after `stop`, for the calls under way, unless what `look` finds abandons them."""
        while True:
            look()
            left = self._until_the_next_deadline() or self._give_up_late_ones()
            with self._ended:
                if not self._at_work:
                    return
                self._ended.wait(left)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            said, error = _made(job)
            if not self._claim(job):
                return
            self._keep(job, said, error)

    def _next(self) -> _Job | None:
        """The call that this thread makes next; None where it is at work no more."""
        thread = threading.current_thread()
        with self._ended:
            if not self._waiting:
                thread.name = IDLE
                self._at_work -= 1
                self._ended.notify_all()
                return None
            thread.name = THREADS
            job = self._waiting.popleft()
            job.thread = thread
            self._begun[job] = time.monotonic()
            return job

    def _claim(self, job: _Job) -> bool:
        """Take a job from those under way; the first to do so, its thread or the clock, keeps what is said."""
        with self._ended:
            return self._begun.pop(job, None) is not None

    def _keep(self, job: _Job, said: Any, error: BaseException | None = None) -> None:
        try:
            job.came, job.error = None if error else job.call.keep(said), error
        except BaseException as failure:  # noqa: BLE001 -- raised where the call is taken
            job.error = failure
        try:
            if isinstance(job.error, Exception):
                self.failures.append(job.error)
                self._on_stop(job.error)
        finally:
            self._through.put(job)

    def _until_the_next_deadline(self) -> float:
        """How long to wait, while no call can be late; the earliest may have been held, and be late only later."""
        now = time.monotonic()
        with self._ended:
            first = next(iter(self._begun.values()), now)
        return min(max(0.0, first + self._seconds - now), _TICK)

    def _give_up_late_ones(self) -> float:
        """Give up the calls that are late, and return how long to wait until one may be late again."""
        with self._ended:
            ends = {job: began + self._seconds + job.call.held for job, began in self._begun.items()}
        now, left = time.monotonic(), min(self._seconds, _TICK)
        for job, end in ends.items():
            if end > now:
                left = min(left, end - now)
            elif self._claim(job):
                self._leave_behind(job)
                self._keep(job, late(self._seconds))
        return left

    def _leave_behind(self, job: _Job) -> None:
        """Have another thread take the place of the one that made a late call."""
        if job.thread is not None:
            job.thread.name = "left behind"
        start(self._work)


def _made(job: _Job) -> tuple[Any, BaseException | None]:
    try:
        return job.context.run(job.call.make), None
    except BaseException as error:  # noqa: BLE001 -- raised where the call is taken
        return None, error
