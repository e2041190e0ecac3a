"""Resend a failed request as often and after as long as DSPy does, within the time limit of a call."""

import asyncio
import math
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, is_dataclass
from typing import Any

import dspy

from eldgr_dspy.programs.lms.consulting import is_transient
from eldgr_dspy.programs.lms.lms import twin_of

_LONGEST_PAUSE = 60.0  # seconds, even if a server asks for more


class Retries:
    """The requests that a call may still send."""

    def __init__(self, retries: int) -> None:
        self._most, self._repeats = retries, 0

    def pause_after(self, error: Exception) -> float | None:
        """Return the seconds before the request is sent again, and count it, or None if it is not sent again."""
        if self._repeats >= self._most or not is_transient(error):
            return None
        self._repeats += 1
        return min(_asked_pause(error, 2.0 ** (self._repeats - 1)), _LONGEST_PAUSE)


@dataclass(slots=True)
class Limit:
    """When a call must end (`ends`, monotonic clock), and the timeout of requests whose LM has none of its own.

    `error` is why the last request that was sent again failed, unless by a timeout. The timeout is the same for all
    calls of a role, because DSPy keeps connections apart by timeout.
    """

    ends: float
    seconds: float
    error: dspy.LMError | None = None


class Resending:
    """How an LM sends a request again; mixed into the class of another LM."""

    resends = False
    retries: int

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        again = Retries(self.retries)
        while True:
            for seconds in self._waits():
                time.sleep(seconds)
            try:
                with self._sending():
                    return super().__call__(*args, **kwargs)  # type: ignore[misc]
            except dspy.LMError as error:
                for seconds in self._pauses(error, again):
                    time.sleep(seconds)

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        again = Retries(self.retries)
        while True:
            for seconds in self._waits():
                await asyncio.sleep(seconds)
            try:
                with self._sending():
                    return await super().acall(*args, **kwargs)  # type: ignore[misc]
            except dspy.LMError as error:
                for seconds in self._pauses(error, again):
                    await asyncio.sleep(seconds)

    def _waits(self) -> Iterable[float]:
        """Yield waits before a request may be sent."""
        return ()

    def _sending(self) -> AbstractContextManager[None]:
        """Return the context that a request is sent in."""
        return nullcontext()

    def _pauses(self, error: dspy.LMError, again: Retries) -> Iterable[float]:
        """Yield waits before a request that failed is sent again; raise the failure if it is not."""
        raise error


class _LimitedLM(Resending):
    """What an LM within a limit does differently; mixed into the class of the LM whose state it shares."""

    limit: Limit

    def _pauses(self, error: dspy.LMError, again: Retries) -> Iterable[float]:
        pause = again.pause_after(error)
        if pause is None or time.monotonic() + pause >= self.limit.ends:
            raise error
        self.limit.error = None if isinstance(error, dspy.LMTimeoutError) else error
        return [pause]


def with_limit(lm: Any, limit: Limit) -> Any:
    """Return an LM that shares connections, history and callbacks with this one, and keeps to a limit."""
    is_ours = isinstance(lm, dspy.LM) and type(lm).forward is dspy.LM.forward
    # DSPy retries only for a `dspy.LM`. Where `resends` is false, somebody else sends its requests again.
    if not is_ours or not getattr(lm, "resends", True):
        return lm
    twin = twin_of(lm, _LimitedLM)
    if isinstance(lm._engine_spec, str) and lm.kwargs.get("timeout") is None:
        twin.kwargs = {**lm.kwargs, "timeout": limit.seconds}
    # An engine of the user's own keeps to the limit if it is a dataclass with a `timeout` in seconds.
    for name in ("_engine_spec", "_async_engine_spec"):
        engine = getattr(lm, name)
        if is_dataclass(engine) and isinstance(seconds := getattr(engine, "timeout", None), int | float):
            engine = copy(engine)
            object.__setattr__(engine, "timeout", min(seconds, limit.seconds))  # it may be frozen
            setattr(twin, name, engine)
    twin.retries, twin.num_retries, twin.limit = lm.num_retries, 0, limit
    return twin


def _asked_pause(error: BaseException, otherwise: float) -> float:
    """Return how many seconds a server asks to wait; LiteLLM has it in the headers of what it raised."""
    hint = getattr(error, "retry_after", None)
    hint = _header(error) if hint is None else hint
    return float(hint) if isinstance(hint, int | float) and 0 <= hint < math.inf else otherwise


def _header(error: BaseException | None) -> float | None:
    """Return the seconds of a `Retry-After` header. A date there is ignored."""
    while error is not None:
        headers = getattr(error, "litellm_response_headers", None)
        if headers is not None:
            value = next((str(headers[name]) for name in headers if str(name).lower() == "retry-after"), "")
            return float(value) if value.replace(".", "", 1).isdecimal() else None
        error = error.__cause__
    return None
