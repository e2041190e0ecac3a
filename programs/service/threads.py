"""Daemon threads that make one call after another, shared by all calls in threads.

A thread that has finished makes the next call, because starting one takes a fifth of DSPy's own time for a call. It
ends if it has had no call for ten seconds. A thread cannot be stopped: one whose call is late is left behind with the
connection that it waits on. It is a daemon, so the end of the process does not wait for it.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

R = TypeVar("R")

IDLE = "eldgr-pool"
"""The name of a thread of the pool, unless a user of it sets another for a while."""


def in_thread(call: Callable[[], R]) -> "asyncio.Future[R]":
    """Return what `call` returns in a thread of its own, to be awaited; `asyncio.to_thread` has few threads."""
    return asyncio.wrap_future(start(call))


async def at_once(call: Callable[[], R]) -> R:
    """Return what `call` returns in this thread: for a call that does not take long."""
    return call()


def in_own_loop(coroutine: "Coroutine[Any, Any, R]") -> R:
    """Return what a coroutine returns in a loop and a thread of its own. The caller may be in another loop."""
    return start(lambda: asyncio.run(coroutine)).result()


_Job = Callable[[], Callable[[], None]]
"""Makes a call, and returns what delivers its result."""


class _Caller:
    """A thread that makes one call after another; None ends it."""

    def __init__(self, pool: "_Callers") -> None:
        self._pool = pool
        self.jobs = SimpleQueue[_Job | None]()
        self.thread = Thread(target=self._work, name=IDLE, daemon=True)
        self.thread.start()

    def _work(self) -> None:
        while True:
            try:
                job = self.jobs.get(timeout=10.0)
            except Empty:
                if self._pool.let_go(self):
                    return
                continue
            if job is None:
                return
            deliver = job()
            self._pool.take_back(self)
            deliver()  # last, so that the receiver of the result finds the thread among the idle ones


class _Callers:
    """The threads that have made a call and wait for the next."""

    def __init__(self) -> None:
        self._idle: list[_Caller] = []
        self._lock = Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def run(self, job: "_Job") -> None:
        """Run a job in the thread that was busy last, or in a new one."""
        with self._lock:
            caller = self._idle.pop() if self._idle else None
        (caller or _Caller(self)).jobs.put(job)

    def end_idle(self) -> None:
        """End the threads that wait, and wait for their ends."""
        with self._lock:
            idle, self._idle = self._idle, []
        for caller in idle:
            caller.jobs.put(None)
            caller.thread.join()

    def take_back(self, caller: _Caller) -> None:
        with self._lock:
            self._idle.append(caller)

    def let_go(self, caller: _Caller) -> bool:
        """Take a thread out of those that wait. Return False if it is about to get a job."""
        with self._lock:
            if caller not in self._idle:
                return False
            self._idle.remove(caller)
            return True

    def _forget(self) -> None:
        """Start anew in a forked process, which has none of the threads."""
        self._idle, self._lock = [], Lock()


_CALLERS = _Callers()


@contextmanager
def reused_threads() -> Iterator[None]:
    """End the threads that made calls inside the block and are now idle. A late one ends by itself."""
    try:
        yield
    finally:
        _CALLERS.end_idle()


def start(call: Callable[[], R]) -> "Future[R]":
    """Make a call in a thread of the pool, in a copy of this context."""
    future, context = Future[R](), copy_context()
    future.set_running_or_notify_cancel()

    def job() -> Callable[[], None]:
        try:
            return partial(future.set_result, context.run(call))
        except StopIteration as error:  # which no future of asyncio can hold
            failure = RuntimeError(f"StopIteration was raised: {error}")
            failure.__cause__ = error
            return partial(future.set_exception, failure)
        except BaseException as error:  # noqa: BLE001 -- raised where the call is waited for
            return partial(future.set_exception, error)

    _CALLERS.run(job)
    return future
