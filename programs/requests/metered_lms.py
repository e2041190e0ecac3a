"""LMs as a run calls them: each request is admitted, counted, and retried if that may help.

A metered LM is a copy whose call records go to the current consultation instead of DSPy's histories, so that a long run
keeps nothing in memory. It retries requests as DSPy would, but counts each one. The clients below it do not retry.

A server, or a proxy before it, may deliver a reply twice on one connection. If the second copy is late, the client
reads it as the answer to the next request, and every later answer is shifted by one. So one request at a time uses a
connection, each reply is checked before the next one does, and after an echo the connection is dropped.
"""

import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local
from typing import Any

import dspy

from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.programs.lms.consulting import is_several_answers, notice
from eldgr_dspy.programs.lms.lms import with_lms
from eldgr_dspy.programs.requests.metering import REQUEST, Entry, Request, current_meter, entry_of
from eldgr_dspy.programs.requests.retrying import Resending, Retries
from eldgr_dspy.programs.service.threads import in_thread

_UNSENT = (dspy.LMConfigurationError, dspy.LMUnsupportedFeatureError)  # failures before a request was sent
_MEMORY = 1024  # numbers of replies


class _EchoError(dspy.LMTransportError):
    """A reply that may belong to another request."""


class _Lane(local):
    """A thread's own parts of an LM: its clients, and whether a reply can have been left on their connections."""

    # DSPy's native clients: LiteLLM always shares connections, and an engine object belongs to its maker.

    def __init__(self, numbers: "_Numbers") -> None:  # called in each thread, with the same object
        self.clients: dict[Any, Any] = {}
        self.fresh = True
        self._numbers = numbers

    def is_echo(self, number: str) -> bool:
        fresh, self.fresh = self.fresh, False
        return self._numbers.is_echo(number, fresh)

    def __deepcopy__(self, memo: object) -> "_Lane":
        return self  # the copies of an LM ask the same server


class _Numbers:
    """Recognises a reply that comes a second time, by the number that the server gave it."""

    def __init__(self) -> None:
        self._memory: OrderedDict[str, None] = OrderedDict()
        self._distinct = True
        self._lock = Lock()

    def is_echo(self, number: str, fresh: bool) -> bool:
        """Record the number of a reply, and return whether it is an earlier reply."""
        with self._lock:
            if number in self._memory:
                # A fresh connection holds no earlier reply. So a server that repeats a number there numbers nothing.
                self._distinct &= not fresh
                return self._distinct
            self._memory[number] = None
            if len(self._memory) > _MEMORY:
                self._memory.popitem(last=False)
            return False


class _MeteredLM(Resending):
    """What a metered LM does differently; mixed into the class of the LM that it copies."""

    lane: _Lane

    @property
    def _engine_store(self) -> dict[Any, Any]:
        """DSPy's own clients, with their connections: each thread has its own."""
        return self.lane.clients

    @_engine_store.setter
    def _engine_store(self, clients: dict[Any, Any]) -> None:
        """Keep the history, where DSPy makes a copy and would start with none."""

    def update_history(self, entry: dict[str, Any]) -> None:
        request = REQUEST.get()
        if request is not None:
            request.record = entry

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """Call as `__call__` does, without blocking."""
        # If a server sends more than the answer, DSPy's async clients read the rest as the answer to the next request.
        if isinstance(getattr(self, "engine", None), str):
            return await in_thread(lambda: self(*args, **kwargs))
        return await super().acall(*args, **kwargs)

    def _waits(self) -> Iterator[float]:
        return admission()

    @contextmanager
    def _sending(self) -> Iterator[None]:
        meter, request = current_meter(), Request()
        token = REQUEST.set(request)
        try:
            yield
            self._refuse_echo(request)
        except BaseException as error:
            if meter is not None:
                is_unsent = isinstance(error, _UNSENT) and not is_several_answers(error)
                meter.withdraw() if is_unsent else meter.fail(error)
            raise
        finally:
            REQUEST.reset(token)
        if request.record is not None:
            notice(request.record, self)
        if meter is not None and (request.record is None or request.fresh):  # a role may have switched records off
            meter.answer(Entry() if request.record is None else entry_of(request.record))
        elif meter is not None:
            meter.answer_from_cache()

    def _refuse_echo(self, request: Request) -> None:
        """Raise if the reply is an earlier one, delivered again."""
        record = request.record
        if record is not None and request.fresh:
            number = getattr(record["response"], "id", None)
            if isinstance(number, str) and number and self.lane.is_echo(number):
                raise _EchoError(f"The reply {number} was delivered before, to another request.")

    def _pauses(self, error: Any, again: Retries) -> Iterator[float]:
        """Yield the pause before a request is retried, in short waits; raise the failure if it is not retried."""
        if isinstance(error, _EchoError):  # at once, on another connection
            if isinstance(self, dspy.LM):
                self.close()
            self.lane.fresh = True
            return
        meter, pause = current_meter(), again.pause_after(error)
        if pause is None or not (meter is None or meter.spending.may_retry()):
            raise error
        while meter is None or not (meter.over or meter.is_stopped()):
            if pause <= 0:
                return
            yield min(pause, 0.1)
            pause -= 0.1
        raise error


def admission() -> Iterator[float]:
    """Yield short waits until a request may be sent; raise if the run was stopped or the consultation abandoned."""
    meter = current_meter()
    while meter is not None:
        if meter.over:
            raise dspy.LMTimeoutError("The consultation that this request belongs to was abandoned.")
        if meter.admit():
            if meter.begin():
                return
        elif meter.is_stopped():
            raise RunStoppedError("The run was stopped.")
        since = time.monotonic()
        yield 0.02
        meter.hold(since)  # its clock does not run while others hold it back


def metered_lm(lm: Any) -> Any:
    """Return a copy of an LM whose requests the meter of the consultation counts."""
    twin = lm.copy()
    # Its class, because DSPy would not accept a wrapper as an LM, and DSPy does not report the requests it retries.
    twin.__class__ = type("MeteredLM", (_MeteredLM, type(lm)), {})
    twin.retries, twin.num_retries = lm.num_retries, 0
    twin.lane = _Lane(_Numbers())
    return twin


def with_meter(module: dspy.Module) -> dspy.Module:
    """Return a copy of a role module in which every LM that it holds is metered. See `with_lms` for those it finds."""
    twin: dspy.Module = with_lms(module, lambda lm: lm if isinstance(lm, _MeteredLM) else metered_lm(lm))
    return twin
