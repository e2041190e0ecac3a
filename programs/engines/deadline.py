"""A deadline for a call as a whole, which the timeouts of an HTTP client are not.

A client's timeout begins anew with each byte that arrives, so a reply that drips goes on for ever. Here the clock runs
once from beginning to end, through connecting, sending and every pause; when it runs out, the call is cancelled where
it stands and its connection is closed.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_LOCK = threading.Lock()
_LOOPS: dict[int, asyncio.AbstractEventLoop] = {}
"""The event loop that blocking calls run in, by process: a fork inherits no threads."""


async def within(seconds: float | None, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await a call. Raises the builtin `TimeoutError` when it has not ended after `seconds`; None sets no limit."""
    async with asyncio.timeout(seconds):
        return await call()


def run_within(seconds: float | None, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do as `within` and block meanwhile; from any thread, also one whose own event loop is running.

    An exception that reaches the waiting thread from outside, such as `KeyboardInterrupt`, cancels the call.
    """
    future = asyncio.run_coroutine_threadsafe(within(seconds, call), _loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _loop() -> asyncio.AbstractEventLoop:
    process = os.getpid()
    if process not in _LOOPS:  # a fork while the lock is held would leave it so; it is held once a process
        with _LOCK:
            if process not in _LOOPS:
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, name="eldgr-calls", daemon=True).start()
                _LOOPS[process] = loop
    return _LOOPS[process]
