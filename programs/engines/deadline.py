"""A deadline for a call as a whole, which the timeouts of an HTTP client are not.

A client's timeout restarts with each byte that arrives, so a reply that drips never ends. Here the clock runs once,
through connecting, sending and every pause. When it runs out, the call is cancelled and its connection is closed.
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
    """Await a call. Raises the builtin `TimeoutError` if it has not ended after `seconds`; None sets no limit."""
    async with asyncio.timeout(seconds):
        return await call()


def run_within(seconds: float | None, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do the same as `within` and block meanwhile; from any thread, even one with a running event loop.

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
    if process not in _LOOPS:  # a fork while the lock is held would leave it locked; it is held once a process
        with _LOCK:
            if process not in _LOOPS:
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, name="eldgr-calls", daemon=True).start()
                _LOOPS[process] = loop
    return _LOOPS[process]
