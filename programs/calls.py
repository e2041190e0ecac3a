"""The calls about one question, within its deadline; one that does not come through is raised, or counts as silence."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from threading import TIMEOUT_MAX
from time import monotonic
from typing import Any, Literal, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import dspy
from dspy.utils.usage_tracker import UsageTracker

from eldgr_dspy.answer_types.mathematics.comparing import Comparisons
from eldgr_dspy.errors import ArgumentError, describe_failure
from eldgr_dspy.programs.consulting import FAILURES
from eldgr_dspy.programs.threads import start

T = TypeVar("T")

OnFailure = Literal["raise", "abstain"]


def require_timeout(timeout: object) -> None:
    """Raise an `ArgumentError` unless a timeout is a number of seconds that a clock can count, or None."""
    if timeout is not None and (
        not isinstance(timeout, float | int) or type(timeout) is bool or not 0 < timeout <= TIMEOUT_MAX
    ):
        raise ArgumentError(
            f"timeout must be a number of seconds above 0 and at most {TIMEOUT_MAX:g}, or None for no limit; got "
            f"{timeout!r:.80}."
        )


class Calls:
    """The calls about one question.

    Attributes:
        failures: Why a call did not come through, by who was called.
        comparisons: Those of the question's answers, which end with its time; None without a timeout.
    """

    def __init__(self, on_failure: OnFailure, timeout: float | None) -> None:
        """Start the clock.

        Args:
            on_failure: `raise` what a call raises, or return None for it. timeout: for all calls together, in seconds.
        """
        self.failures: dict[str, str] = {}
        self._on_failure, self._timeout = on_failure, timeout
        self._ends = None if timeout is None else monotonic() + timeout
        self.comparisons = None if timeout is None else Comparisons(ends=self._ends)

    def make(self, who: str, call: Callable[[], T]) -> T | None:
        """Return what a call returns; None if it failed."""
        try:
            return self.within(who, call)
        except FAILURES as error:
            self._fail(who, error)
            return None

    async def amake(self, who: str, call: Callable[[], Awaitable[T]]) -> T | None:
        """Do the same, awaiting it."""
        try:
            return await self.awithin(who, call)
        except FAILURES as error:
            self._fail(who, error)
            return None

    def within(self, who: str, call: Callable[[], T]) -> T:
        """Return what a call returns. One that is late is left behind in its thread, without its trace and its usage.

        Raises:
            TimeoutError: It is late.
        """
        if self._ends is None:
            return call()
        left, records = self._left(who), _Records()
        future = _made_within(lambda: records.kept(call), left)
        if not future.done():
            raise self._late(who)
        records.hand_over()
        return future.result()

    async def awithin(self, who: str, call: Callable[[], Awaitable[T]]) -> T:
        """Do the same, awaiting it; a call that is late is cancelled, and not waited for."""
        if self._ends is None:
            return await call()
        left, task = self._left(who), asyncio.ensure_future(call())
        try:
            done, _ = await asyncio.wait([task], timeout=left)
        finally:
            task.cancel()  # without effect on one that is done
        if not done:
            task.add_done_callback(lambda late: late.cancelled() or late.exception())  # nobody else looks at it
            raise self._late(who)
        return task.result()

    def _left(self, who: str) -> float:
        left = (self._ends or 0.0) - monotonic()
        if left <= 0:
            raise self._late(who)
        return left

    def _late(self, who: str) -> TimeoutError:
        return TimeoutError(f"the {who} did not answer within the question's timeout of {self._timeout:g} s")

    def _fail(self, who: str, error: Exception) -> None:
        if self._on_failure == "raise":
            raise error
        self.failures[who] = describe_failure(error)


class _Records:
    """The trace and the usage of one call, apart from those of its caller, who may read them while it is late."""

    def __init__(self) -> None:
        self._trace, self._usage = dspy.settings.trace, dspy.settings.usage_tracker
        self._own_trace: list[Any] = []
        self._own_usage: Any = UsageTracker()

    def kept(self, call: Callable[[], T]) -> T:
        """Return what a call returns, and keep its records here."""
        own = {"trace": (self._trace, self._own_trace), "usage_tracker": (self._usage, self._own_usage)}
        settings: AbstractContextManager[None] = dspy.context(
            **{name: new for name, (old, new) in own.items() if old is not None}
        )
        with settings:
            return call()

    def hand_over(self) -> None:
        """Add the records to those of the caller."""
        if self._trace is not None:
            self._trace.extend(self._own_trace)
        for lm, entries in self._own_usage.usage_data.items():
            self._usage.usage_data[lm].extend(entries)


def _made_within(call: Callable[[], T], seconds: float) -> "Future[T]":
    """Make a call in a thread of its own, and return its future once it is done or late."""
    if dspy.settings.send_stream is None or not _is_anyio_thread():
        future = start(call)
        wait([future], seconds)
        return future
    future = Future[T]()

    def job() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 -- raised where the result is taken
            future.set_exception(error)

    async def bounded() -> None:
        with anyio.move_on_after(seconds):
            await anyio.to_thread.run_sync(job, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))

    anyio.from_thread.run(bounded)
    return future


def _is_anyio_thread() -> bool:
    """Whether this thread is one of AnyIO's: DSPy streams from such a thread alone, if a program is not async."""
    try:
        anyio.from_thread.check_cancelled()
    except RuntimeError:
        return False
    return True
