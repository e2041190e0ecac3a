"""Calls that may take long, made in threads while one thread does all the rest.

What a call comes to is kept by the thread that made it. One that is late is given up instead: a thread cannot be
stopped, so it is left behind with the connection that it waits on, another takes its place, and what it says late is
not used. Threads are daemons, so that the end of the process waits for none that was left behind.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from eldgr_dspy.programs.run.deadlines import late

OnStop = Callable[[BaseException], None]
"""Told what ends a map early: in the thread of the call that failed, and again on the way out."""

THREADS = "eldgr-asking"
"""What the names of the threads begin with, but for those left behind."""

_TICK = 0.1  # seconds; whoever waits looks that often for signals


class Call(Protocol):
    """What is called in a thread: `make` until the deadline, then `keep`, once, however long that takes."""

    @property
    def held(self) -> float:
        """For how many seconds it was kept from going on, so far; its deadline is that much later."""
        ...

    def make(self) -> Any:
        """Make the call, and return what is said or an error to be kept."""

    def keep(self, said: Any) -> Any:
        """Keep what was said, or that it is late, and return what came of it."""


class _Job:
    """A call that the threads were given, under its number, and what came of it."""

    __slots__ = ("call", "came", "context", "error", "number", "thread")

    def __init__(self, number: int, call: Call) -> None:
        self.number, self.call, self.context = number, call, copy_context()
        self.thread: threading.Thread | None = None
        self.came: Any = None
        self.error: BaseException | None = None


class Callers:
    """Makes calls in threads, `workers` at once, each for at most `seconds`. For use by one thread."""

    def __init__(self, workers: int, seconds: float, on_stop: OnStop) -> None:
        """Begin without any thread; each starts when there is a call for it."""
        self.workers = workers
        self.failures: list[Exception] = []
        self._seconds, self._on_stop = seconds, on_stop
        self._threads = set[threading.Thread]()
        self._jobs = SimpleQueue[_Job | None]()
        self._through = SimpleQueue[_Job]()
        self._begun = dict[_Job, float]()  # the earliest first; whoever takes a job out keeps what is said
        self._lock = threading.Lock()

    def give(self, number: int, call: Call) -> None:
        """Have a call made in a copy of this context, as soon as a thread is free."""
        self._jobs.put(_Job(number, call))
        if len(self._threads) < self.workers:
            self._start()

    def take(self, seconds: float) -> tuple[int, Any] | None:
        """Wait at most a tick, and so long, until a call is through; return its number and what came of it, or None.

        Raises:
            BaseException: what the call failed with.
        """
        left = self._until_the_next_deadline() or self._give_up_late_ones()
        try:
            job = self._through.get(timeout=min(seconds, left))
        except Empty:
            return None
        if job.error is not None:
            raise job.error
        return job.number, job.came

    def stop(self) -> None:
        """Drop the calls that have not begun, and let each thread end once it is through."""
        with suppress(Empty):
            while True:
                self._jobs.get_nowait()
        for _ in self._threads:
            self._jobs.put(None)

    def wait(self, look: Callable[[], None] = lambda: None) -> None:
        """Wait, after `stop`, for the calls under way, unless what `look` finds abandons them."""
        while self._threads:
            look()
            left = self._until_the_next_deadline() or self._give_up_late_ones()
            thread = next(iter(self._threads))
            thread.join(left)
            if not thread.is_alive():
                self._threads.discard(thread)

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name=THREADS, daemon=True)
        self._threads.add(thread)
        thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.thread = threading.current_thread()
            with self._lock:
                self._begun[job] = time.monotonic()
            said, error = _made(job)
            if not self._claim(job):
                return
            self._keep(job, said, error)

    def _claim(self, job: _Job) -> bool:
        """Take a job from those under way; the first to do so, its thread or the clock, keeps what is said."""
        with self._lock:
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
        with self._lock:
            first = next(iter(self._begun.values()), now)
        return min(max(0.0, first + self._seconds - now), _TICK)

    def _give_up_late_ones(self) -> float:
        """Give up the calls that are late, and return how long to wait until one may be late again."""
        with self._lock:
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
        if job.thread is not None:
            job.thread.name = "left behind"
            self._threads.discard(job.thread)
            self._start()


def _made(job: _Job) -> tuple[Any, BaseException | None]:
    try:
        return job.context.run(job.call.make), None
    except BaseException as error:  # noqa: BLE001 -- raised where the call is taken
        return None, error
