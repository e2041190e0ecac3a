"""Decide shards in this process, or in several processes of this machine, by the same function."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing.synchronize import Event

from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.programs.shards.deciding import Decided, Task, decide_shard

_AHEAD = 3  # shards for each process that are under way, wait for it, or wait to be copied
_PAUSE = 0.1  # seconds between two looks for a signal

_stopped = list[Event]()  # in a process that decides shards, what says that it should stop


@contextmanager
def deciding(tasks: Sequence[Task], processes: int, look: Callable[[], None]) -> Iterator[Iterator[Decided]]:
    """Yield the counts of the tasks, in order; a few tasks are decided ahead.

    Other processes end with this one, however that ends. An error in one of them is raised here, with its own class.

    Args:
        tasks: What to decide. processes: how many processes decide; 1 for this one.
        look: Called now and then while a task is waited for; it may raise.

    Raises:
        RunStoppedError: a process has ended, such as for lack of memory.
    """
    if processes == 1:
        yield (decide_shard(task, look) for task in tasks)
        return
    context = multiprocessing.get_context("spawn")
    stopped = context.Event()
    executor = ProcessPoolExecutor(processes, context, _begin, (stopped,))
    try:
        yield _in_order(executor, tasks, _AHEAD * processes, look)
    except BrokenProcessPool as error:
        raise RunStoppedError(
            "A process that decided shards has ended, perhaps for lack of memory. Merge again, with fewer processes."
        ) from error
    finally:
        stopped.set()
        executor.shutdown(cancel_futures=True)


def _in_order(
    executor: ProcessPoolExecutor, tasks: Sequence[Task], ahead: int, look: Callable[[], None]
) -> Iterator[Decided]:
    """Yield the counts of the tasks, of which `ahead` are under way or wait to be taken."""
    left, under_way = iter(tasks), deque[Future[Decided]]()
    while True:
        with _interrupts_held():
            under_way.extend(executor.submit(_decide, task) for task in islice(left, ahead - len(under_way)))
        if not under_way:
            return
        first = under_way.popleft()
        while not wait([first], _PAUSE).done:
            look()
        yield first.result()


def _decide(task: Task) -> Decided:
    return decide_shard(task, _require_wanted)


def _require_wanted() -> None:
    if _stopped[0].is_set():
        raise RunStoppedError("The merge was stopped.")


def _begin(stopped: Event) -> None:
    """Make a new process end with its parent, and leave ctrl-C to that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _stopped.append(stopped)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let the processes that are started inside the block ignore ctrl-C from their first moment, where that works."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
