"""The calls about one question, within its deadline. One that does not come through is raised, or counts as silence."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager
from threading import TIMEOUT_MAX
from time import monotonic
from typing import Any, Literal, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import dspy
from dspy.utils.usage_tracker import UsageTracker

from eldgr_dspy.answer_types.comparing import Comparisons
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.engines.usage import is_count
from eldgr_dspy.programs.lms.consulting import FAILURES, RoleOutput, aask, ask
from eldgr_dspy.programs.lms.lms import holds_lm, view
from eldgr_dspy.programs.lms.rollouts import keep_trace, own_trace
from eldgr_dspy.programs.requests.retrying import Limit, with_limit
from eldgr_dspy.programs.service.threads import start
from eldgr_dspy.rule.consultations import Abstention
from eldgr_dspy.words import CONSULTED

T = TypeVar("T")

OnFailure = Literal["raise", "abstain"]

SCORER = "scorer"

_ROUNDING = 1e-6  # seconds


def require_timeout(timeout: object, name: str = "timeout") -> None:
    """Raise an `ArgumentError` unless a timeout is a number of seconds that a clock can count, or None."""
    if timeout is not None and (
        not isinstance(timeout, float | int) or type(timeout) is bool or not 0 < timeout <= TIMEOUT_MAX
    ):
        raise ArgumentError(
            f"{name} must be a number of seconds above 0 and at most {TIMEOUT_MAX:g}, or None for no limit; got "
            f"{timeout!r:.80}."
        )


def role_timeouts_of(timeouts: object) -> dict[str, float | None]:
    """Return timeouts by role, certificate or `scorer`; raise an `ArgumentError` for another name or value."""
    if timeouts is None:
        return {}
    names = ", ".join(map(repr, (*CONSULTED, SCORER)))
    if not isinstance(timeouts, Mapping) or not timeouts.keys() <= {*CONSULTED, SCORER}:
        raise ArgumentError(f"role_timeouts must map {names} to seconds; got {timeouts!r:.80}. Name those to limit.")
    for name, seconds in timeouts.items():
        require_timeout(seconds, f"role_timeouts[{name!r}]")
    return dict(timeouts)


class Calls:
    """The calls about one question.

    Attributes:
        abstentions: Why a call failed, by role.
        seconds: How long calls took, by role.
        comparisons: Comparisons of the question's answers, which end with its timeout. None without a timeout.
        unasked: The roles that were not called because no time was left.
    """

    def __init__(
        self,
        on_failure: OnFailure,
        timeout: float | None,
        role_timeouts: Mapping[str, float | None] | None = None,
        scorers: int = 0,
    ) -> None:
        """Start the clock of the timeout of all calls. `scorers` is how many scorers are called after all others."""
        self.abstentions: dict[str, Abstention] = {}
        self.seconds = dict[str, float]()
        self.unasked = set[str]()
        self._on_failure, self._timeout, self._timeouts = on_failure, timeout, role_timeouts or {}
        self._scorers = scorers
        self._ends = None if timeout is None else monotonic() + timeout
        self.comparisons = None if timeout is None else Comparisons(ends=self._ends)

    def ask(
        self, who: str, module: dspy.Module, inputs: Mapping[str, object], later: Sequence[str]
    ) -> RoleOutput | Abstention:
        """Ask a role or a certificate. `later` are those that may be called after it; so may scorers."""
        try:
            return self.within(who, lambda role: ask(role, inputs, who), module, later)
        except FAILURES as error:
            return self._failure(who, error)

    async def aask(
        self, who: str, module: dspy.Module, inputs: Mapping[str, object], later: Sequence[str]
    ) -> RoleOutput | Abstention:
        """Do the same, awaiting it."""
        try:
            return await self.awithin(who, lambda role: aask(role, inputs, who), module, later)
        except FAILURES as error:
            return self._failure(who, error)

    def within(self, who: str, call: Callable[[Any], T], module: Any, later: Sequence[str] = ()) -> T:
        """Return what `call` returns. It is given `module`, or a scorer, with LMs that keep to the limit.

        A late call is left behind in its thread, without its trace and its usage.

        Raises:
            TimeoutError: The call is late, or no time was left for it.
            dspy.LMError: It is late because its requests failed and were sent again.
        """
        limit = self._limit(who, later)
        if limit is None:
            with self._time(who):
                return call(module)
        records = _Records(module, limit)

        def record() -> T:
            with records.context():
                return call(records.module)

        with self._time(who) as since:
            future = call_within(record, limit.ends - since)
        if not future.done():
            records.usage.is_late = True
            raise limit.error or self._late(who, limit)
        records.hand_over()
        return future.result()

    async def awithin(self, who: str, call: Callable[[Any], Awaitable[T]], module: Any, later: Sequence[str] = ()) -> T:
        """Do the same, awaiting it. A call that is late is cancelled, and not waited for."""
        limit = self._limit(who, later)
        if limit is None:
            with self._time(who):
                return await call(module)
        records = _Records(module, limit)

        async def record() -> T:
            with records.context():
                return await call(records.module)

        task = asyncio.ensure_future(record())
        with self._time(who) as since:
            try:
                ready, _ = await asyncio.wait([task], timeout=limit.ends - since)
            finally:
                task.cancel()  # without effect on one that is done
        if not ready:
            records.usage.is_late = True
            task.add_done_callback(lambda late: late.cancelled() or late.exception())  # nobody else looks at it
            raise limit.error or self._late(who, limit)
        records.hand_over()
        return task.result()

    @contextmanager
    def _time(self, who: str) -> Iterator[float]:
        since = monotonic()
        try:
            yield since
        finally:
            self.seconds[who] = self.seconds.get(who, 0.0) + monotonic() - since

    def _limit(self, who: str, later: Sequence[str]) -> Limit | None:
        """Return when a call must end, None if it has no limit; raise a TimeoutError if no time is left."""
        now, own = monotonic(), self._timeouts.get(who)
        self._scorers -= who == SCORER
        if self._ends is None or self._timeout is None:
            return None if own is None else Limit(now + own, own)
        rest = self._ends - now
        if rest <= 0:
            self.unasked.add(who)
            slowest = max(self.seconds, key=self.seconds.__getitem__, default=None)
            raise TimeoutError(
                f"the {who} was not asked, because {f'the {slowest}' if slowest else 'the rule'} used up the question's"
                f" timeout of {self._timeout:g} s"
            )
        if own is None:
            others = [self._timeouts.get(name) for name in (*later, *[SCORER] * self._scorers)]
            others = others if self._on_failure == "abstain" else []  # after a failure that is raised nobody is called
            share = sum(seconds for seconds in others if seconds is not None)
            own = max(rest - share, 0.0) / (1 + others.count(None)) or rest / (1 + len(others))
        return Limit(now + min(own, rest), min(self._timeouts.get(who) or self._timeout, self._timeout))

    def _late(self, who: str, limit: Limit) -> TimeoutError:
        whole, own = self._ends is not None and limit.ends > self._ends - _ROUNDING, self._timeouts.get(who)
        if own is not None and not whole:
            return TimeoutError(f"the {who} did not answer within its timeout of {own:g} s")
        share = "" if whole else "its share of "
        return TimeoutError(f"the {who} did not answer within {share}the question's timeout of {self._timeout:g} s")

    def _failure(self, who: str, error: Exception) -> Abstention:
        if self._on_failure == "raise":
            raise error
        failure = Abstention.failure(error)
        self.abstentions[who] = failure
        return failure

    @property
    def failures(self) -> dict[str, str]:
        """Why a call failed, by role."""
        return {who: why.text for who, why in self.abstentions.items()}


class Usage(UsageTracker):
    """Tokens as servers report them, which the caller's tracker is given too, unless the call `is_late`."""

    def __init__(self) -> None:
        super().__init__()
        self.caller, self.is_late = dspy.settings.usage_tracker, False

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        """Add what an LM reported, and give it to the caller's tracker at once: a run's counts requests by it."""
        super().add_usage(lm, usage_entry)
        if self.caller is not None and not self.is_late:
            self.caller.add_usage(lm, usage_entry)

    def total(self, name: str) -> int | None:
        """Return the sum of the tokens of a name, or None if a report lacks it, or if there is no report."""
        counts = [report.get(name) for reports in self.usage_data.values() for report in reports]
        return sum(counts) if counts and all(map(is_count, counts)) else None


class _Records:
    """A module whose LMs keep to a limit, and the trace and the usage of one call of it."""

    def __init__(self, module: Any, limit: Limit) -> None:
        self._own_trace, self.usage = own_trace(), Usage()  # the caller may read its trace while the call is late
        self._settings: dict[str, Any] = {"trace": self._own_trace}
        if self.usage.caller is not None:
            self._settings["usage_tracker"] = self.usage
        self.module, self._originals = module, dict[int, Any]()
        self._hand_back: Callable[[], None] = lambda: None
        if dspy.settings.send_stream is None:  # a listener knows its predictor; what was streamed is not sent again
            self._settings["lm"] = with_limit(dspy.settings.lm, limit)
            if isinstance(module, dspy.Module) and holds_lm(module):
                self.module, self._originals, self._hand_back = view(module, lambda lm: with_limit(lm, limit))

    def context(self) -> AbstractContextManager[None]:
        """Keep the records of the block here."""
        settings: AbstractContextManager[None] = dspy.context(**self._settings)
        return settings

    def hand_over(self) -> None:
        """Add the trace to that of the caller, and keep what the module's methods have set."""
        self._hand_back()
        keep_trace([(self._originals.get(id(one), one), *call) for one, *call in self._own_trace or ()])


def call_within(call: Callable[[], T], seconds: float | None) -> "Future[T]":
    """Make a call in another thread, and return its future once it is done or late."""
    if not is_streaming_thread():
        wait([future := start(call)], seconds)
        return future
    future = Future[T]()

    def job() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 -- raised where the result is taken
            future.set_exception(error)

    async def run() -> None:
        with anyio.move_on_after(seconds):
            await anyio.to_thread.run_sync(job, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))

    anyio.from_thread.run(run)
    return future


def is_streaming_thread() -> bool:
    """Return whether DSPy streams from this thread: one of AnyIO's, if a program is not async, and from no other."""
    if dspy.settings.send_stream is None:
        return False
    try:
        anyio.from_thread.check_cancelled()
    except RuntimeError:
        return False
    return True
