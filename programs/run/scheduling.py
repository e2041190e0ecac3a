"""Many rows at once, in order: the steps of a row in one thread, its calls in several threads.

A row is a generator: it yields each call that may take long, is sent what was kept of it, and returns its result. The
results come in the order of the items, each as soon as its turn has come. A bounded number of items is under way or
waiting for its turn. The thread that made a call keeps its reply. A late call is abandoned: its thread is left behind,
another takes its place, and its late reply is not used.

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
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

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
        """Return how many seconds a limit has delayed it so far. Its deadline is that much later."""
        ...

    @property
    def failure(self) -> str | None:
        """Return why its last request failed, or None if none did."""
        ...

    def make(self) -> Any:
        """Make the call in a thread, and return the reply or an error to be kept."""

    def keep(self, result: Any) -> Any:
        """Keep the reply, or that it is late, and return what its steps are sent."""


Steps: TypeAlias = Generator[Call, Any, R]
"""An item's steps: yields the calls that may take long, is sent what was kept of each, and returns its result."""


@contextmanager
def map_ordered(
    steps: Callable[[T], Steps[R]],
    items: Iterable[T],
    workers: int,
    seconds: float,
    on_stop: OnStop,
    look: Callable[[], None] = lambda: None,
) -> Iterator[Iterator[R]]:
    """Run a generator for each item in this thread. The context gives what they return, in the order of the items.

    Calls are made in `workers` threads, and each in a copy of this context, so that `dspy.context` holds in it. A late
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
        if failures and isinstance(error, Exception) and error is not failures[0]:
            raise failures[0] from failures[0].__cause__
        raise
    calls.stop()
    calls.wait(look)


def _in_order(rows: Iterable[Steps[R]], calls: "_Calls", look: Callable[[], None]) -> Iterator[R]:
    under_way = _Rows(rows, calls.workers, calls.give)
    while under_way.begin():
        look()
        finished = calls.get(wait=under_way.waits)
        if finished is not None:
            under_way.go_on(*finished)
        elif under_way.due:
            yield under_way.use()


def window_of(workers: int) -> int:
    """Return how many items are under way or finished and waiting for their turn."""
    return max(256, 16 * workers)


class _Rows(Generic[R]):
    """The items that wait for a call, by their number, and the results that wait for their turn.

    Calls come first, because others wait for them: a result is used when no call is done and no item may start.
    """

    def __init__(self, rows: Iterable[Steps[R]], workers: int, give: Callable[[int, Call], None]) -> None:
        """Start with nothing under way; `give` gets the call of an item made."""
        self._rows, self._give = iter(rows), give
        # More than are under way, so that no worker waits for the next call; a single worker takes row by row.
        self._most = 4 * workers if workers > 1 else 1
        self._window = window_of(workers)
        self._steps = dict[int, Steps[R]]()
        self._results = dict[int, R]()
        self._begun = self._turn = 0
        self._more = True

    def begin(self) -> bool:
        """Take the first steps of the next item, if it may start; return whether anything is left to do."""
        if not self._blocked:
            steps = next(self._rows, None)
            if steps is None:
                self._more = False
            else:
                self._begun += 1
                self._send(self._begun - 1, steps, None)
        return self._more or self._begun > self._turn

    @property
    def waits(self) -> bool:
        """Whether nothing can be done before a call is done."""
        return self._blocked and self._turn not in self._results and self._begun > self._turn

    @property
    def due(self) -> bool:
        """Whether a result is to be used, if no call is done."""
        return self._blocked and self._turn in self._results

    def go_on(self, number: int, came: object) -> None:
        """Take the next steps of an item whose call is done."""
        self._send(number, self._steps.pop(number), came)

    def use(self) -> R:
        """Return the result that is due."""
        self._turn += 1
        return self._results.pop(self._turn - 1)

    @property
    def _blocked(self) -> bool:
        """Whether no further item may start."""
        full = len(self._steps) >= self._most or self._begun - self._turn >= self._window
        return not self._more or full or (self._turn in self._results and not self._steps)

    def _send(self, number: int, steps: Steps[R], came: object) -> None:
        try:
            call = steps.send(came)
        except StopIteration as stop:
            self._results[number] = stop.value
        else:
            self._steps[number] = steps
            self._give(number, call)


@dataclass(slots=True, eq=False)
class _Worker:
    """A thread of the pool while it makes calls of this map."""

    thread: threading.Thread | None = None
    future: Future[None] | None = None


@dataclass(slots=True, eq=False)
class _Job:
    """A call under its number, and its outcome."""

    number: int
    call: Call
    context: Context = field(default_factory=copy_context)
    worker: _Worker | None = None
    came: Any = None
    error: BaseException | None = None


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
        """Return the number of a finished call and what was kept of it. It waits at most one tick.

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
            self._started[job] = time.monotonic()
            return job

    def _claim(self, job: _Job, *, late: bool = False) -> bool:
        """Remove a job from those under way. The first to do so, its thread or the clock, keeps the reply."""
        with self._lock:
            mine = self._started.pop(job, None) is not None
            if mine and late and job.worker is not None and job.worker.thread is not None:
                job.worker.thread.name = "left behind"
            return mine

    def _keep(self, job: _Job, result: Any, error: BaseException | None = None) -> None:
        try:
            job.came, job.error = None if error else job.call.keep(result), error
        except BaseException as failure:  # noqa: BLE001 -- raised where the call is taken
            job.error = failure
        if isinstance(job.error, Exception):
            self.failures.append(job.error)
            try:
                self._on_stop(job.error)
            except BaseException as further:  # noqa: BLE001 -- raised where the call is taken
                job.error = further
        self._through.put(job)

    def _until_the_next_deadline(self) -> float:
        """How long to wait, while no call can be late. The earliest may have been held, and be late only later."""
        now = time.monotonic()
        with self._lock:
            first = next(iter(self._started.values()), now)
        return min(max(0.0, first + self._seconds - now), _TICK)

    def _give_up_late_ones(self) -> float:
        """Abandon the late calls, and return how long to wait until one may be late again."""
        with self._lock:
            ends = {job: began + self._seconds + job.call.wait for job, began in self._started.items()}
        now, left = time.monotonic(), min(self._seconds, _TICK)
        for job, end in ends.items():
            if end > now:
                left = min(left, end - now)
            elif self._claim(job, late=True):
                self._keep(job, _late(self._seconds, job.call))
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


def _late(seconds: float, call: Call) -> TimeoutError:
    """Return the failure of a call that is not done within `seconds`, with what the server did if it did anything."""
    fault = "nothing was said" if call.failure is None else "no reply could be used"
    why = "" if call.failure is None else f" (the last request failed: {brief(call.failure, 180)})"
    return TimeoutError(f"{fault} within {seconds:g} s; a longer --timeout waits longer{why}")
