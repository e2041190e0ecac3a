"""Calls in threads, while one thread takes the steps.

The thread that made a call keeps its reply. A late call is abandoned: its thread is left behind, another takes its
place, and its late reply is not used.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from eldgr_dspy.programs.run.scheduling.order import Call, OnStop, Rows, Steps, late, noted, raise_first
from eldgr_dspy.programs.threads import IDLE, start

T = TypeVar("T")
R = TypeVar("R")

THREADS = "eldgr-asking"
"""The name of a thread that makes calls, unless it is idle or left behind."""

_TICK = 0.1  # seconds; how often a waiting thread looks for signals


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
    one is abandoned after `seconds`. If several calls fail, the first failure is raised. `look` is called often, even
    while this waits, and ends the map by what it raises.
    """
    calls = _Calls(workers, seconds, on_stop)
    try:
        yield _in_order(map(steps, items), calls, look)
    except BaseException as error:
        failures = list(calls.failures)  # without those caused by stopping
        calls.stop()
        on_stop(error)  # a second interrupt, here or in the next line, skips the wait
        calls.wait(look)
        raise_first(failures, error)
        raise
    calls.stop()
    calls.wait(look)


def _in_order(rows: Iterable[Steps[R]], calls: "_Calls", look: Callable[[], None]) -> Iterator[R]:
    under_way = Rows(rows, calls.workers, calls.give)
    while under_way.begin():
        look()
        finished = calls.get(wait=under_way.waits)
        if finished is not None:
            under_way.go_on(*finished)
        elif under_way.due:
            yield under_way.use()


class _Worker:
    """A thread of the pool while it makes calls of this map."""

    __slots__ = ("future", "thread")

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None
        self.future: Future[None] | None = None


class _Job:
    """A call under its number, and its outcome."""

    __slots__ = ("call", "came", "context", "error", "number", "worker")

    def __init__(self, number: int, call: Call) -> None:
        self.number, self.call, self.context = number, call, copy_context()
        self.worker: _Worker | None = None
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
        self._started = dict[_Job, float]()  # the earliest first; the one that removes a job keeps the reply
        self._at_work = set[_Worker]()  # without those left behind
        self._not_ended = set[Future[None]]()
        self._lock = threading.Lock()

    def give(self, number: int, call: Call) -> None:
        """Get a call made in a copy of this context, as soon as a thread is free."""
        job = _Job(number, call)
        with self._lock:
            self._waiting.append(job)
            further = len(self._at_work) < self.workers
        if further:
            self._start()

    def get(self, *, wait: bool) -> tuple[int, Any] | None:
        """Return the number of a finished call and what was kept of it; it waits at most one tick.

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
        """Drop the calls that have not started."""
        with self._lock:
            self._waiting.clear()

    def wait(self, look: Callable[[], None] = lambda: None) -> None:
        """Wait, after `stop`, for the calls under way, unless what `look` finds abandons them."""
        while self._not_ended:
            look()
            left = self._until_the_next_deadline() or self._give_up_late_ones()
            wait(set(self._not_ended), left)

    def _start(self) -> None:
        worker = _Worker()
        self._at_work.add(worker)
        try:
            worker.future = future = start(partial(self._work, worker))
        except BaseException:  # no thread can be started, or an interrupt
            self._at_work.discard(worker)
            raise
        self._not_ended.add(future)
        future.add_done_callback(self._not_ended.discard)

    def _work(self, worker: _Worker) -> None:
        worker.thread = threading.current_thread()
        worker.thread.name = THREADS
        while (job := self._next(worker)) is not None:
            said, error = _made(job)
            if not self._claim(job):
                break
            self._keep(job, said, error)
        worker.thread.name = IDLE

    def _next(self, worker: _Worker) -> _Job | None:
        """Return the call that a thread makes next; None if it is no longer at work."""
        with self._lock:
            if not self._waiting:
                self._at_work.discard(worker)
                return None
            job = self._waiting.popleft()
            job.worker = worker
            self._started[job] = time.monotonic()
            return job

    def _claim(self, job: _Job, *, late: bool = False) -> bool:
        """Remove a job from those under way; the first to do so, its thread or the clock, keeps the reply."""
        with self._lock:
            mine = self._started.pop(job, None) is not None
            if mine and late and job.worker is not None and job.worker.thread is not None:
                job.worker.thread.name = "left behind"
            return mine

    def _keep(self, job: _Job, said: Any, error: BaseException | None = None) -> None:
        try:
            job.came, job.error = None if error else job.call.keep(said), error
        except BaseException as failure:  # noqa: BLE001 -- raised where the call is taken
            job.error = failure
        if job.error is not None:
            job.error = noted(job.error, self.failures, self._on_stop)
        self._through.put(job)

    def _until_the_next_deadline(self) -> float:
        """How long to wait, while no call can be late; the earliest may have been held, and be late only later."""
        now = time.monotonic()
        with self._lock:
            first = next(iter(self._started.values()), now)
        return min(max(0.0, first + self._seconds - now), _TICK)

    def _give_up_late_ones(self) -> float:
        """Abandon the late calls, and return how long to wait until one may be late again."""
        with self._lock:
            ends = {job: began + self._seconds + job.call.held for job, began in self._started.items()}
        now, left = time.monotonic(), min(self._seconds, _TICK)
        for job, end in ends.items():
            if end > now:
                left = min(left, end - now)
            elif self._claim(job, late=True):
                self._keep(job, late(self._seconds, job.call))
                self._leave_behind(job.worker)
        return left

    def _leave_behind(self, worker: _Worker | None) -> None:
        """Replace the thread that made a late call."""
        if worker is not None and worker.future is not None:
            self._not_ended.discard(worker.future)
        with self._lock:
            self._at_work.discard(worker)
            further = bool(self._waiting)
        if further:
            self._start()


def _made(job: _Job) -> tuple[Any, BaseException | None]:
    try:
        return job.context.run(job.call.make), None
    except BaseException as error:  # noqa: BLE001 -- raised where the call is taken
        return None, error
