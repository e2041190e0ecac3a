"""LMs as a run calls them: each request is admitted, counted, and retried if that may help.

A metered LM is a copy whose call records go to the current consultation instead of DSPy's histories, so that a long run
keeps nothing in memory. It retries requests as DSPy would, but counts each one. The clients below it do not retry.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dspy

from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.programs.lms.consulting import is_several_answers, notice
from eldgr_dspy.programs.lms.lms import with_lms
from eldgr_dspy.programs.requests.connections import Lane, Numbers
from eldgr_dspy.programs.requests.metering import REQUEST, Entry, Meter, Request, current_meter, entry_of
from eldgr_dspy.programs.requests.retrying import Resending, Retries
from eldgr_dspy.programs.service.threads import in_thread

_UNSENT = (dspy.LMConfigurationError, dspy.LMUnsupportedFeatureError)
"""Failures before a request was sent."""


class _EchoError(dspy.LMTransportError):
    """A reply that may belong to another request."""


class _MeteredLM(Resending):
    """What a metered LM does differently; mixed into the class of the LM that it copies."""

    lane: Lane

    @property
    def _engine_store(self) -> dict[Any, Any]:
        """DSPy's own clients, with their connections: each thread has its own."""
        return self.lane.clients

    @_engine_store.setter
    def _engine_store(self, clients: dict[Any, Any]) -> None:
        """Keep the history, where DSPy makes a copy and would start with none."""

    def update_history(self, entry: dict[str, Any]) -> None:
        """Keep the record of a call for its meter, and nowhere else."""
        request = REQUEST.get()
        if request is not None:
            request.record = entry

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """Call as `__call__` does, without blocking.

        DSPy's own clients are called in a thread. If a server sends more than the answer, the blocking ones drop the
        connection, but the async ones read the rest as the answer to the next request.
        """
        if isinstance(getattr(self, "engine", None), str):
            return await in_thread(lambda: self(*args, **kwargs))
        return await super().acall(*args, **kwargs)

    def _waits(self) -> Iterator[float]:
        """Yield waits until the run admits a request."""
        return admission()

    @contextmanager
    def _sending(self) -> Iterator[None]:
        """Report to the meter the outcome of an admitted request."""
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
        if meter is not None:
            _report(meter, request)

    def _refuse_echo(self, request: Request) -> None:
        """Raise if this reply is an earlier one that was delivered again."""
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
        meter, left = current_meter(), again.pause_after(error)
        if left is None or not (meter is None or meter.spending.may_retry()):
            raise error
        while meter is None or not (meter.over or meter.stopped()):
            if left <= 0:
                return
            yield min(left, 0.1)
            left -= 0.1
        raise error


def _report(meter: Meter, request: Request) -> None:
    if request.record is None:  # the role has switched DSPy's records off
        meter.answer(Entry())
    elif request.fresh:
        meter.answer(entry_of(request.record))
    else:
        meter.answer_from_cache()


def admission() -> Iterator[float]:
    """Wait, in short waits, until a request may be sent.

    Raises:
        RunStoppedError: if a limit of the run does not allow it.
        dspy.LMTimeoutError: if the consultation was abandoned meanwhile.
    """
    meter = current_meter()
    while meter is not None:
        if meter.over:
            raise dspy.LMTimeoutError("The consultation that this request belongs to was abandoned.")
        if meter.admit():
            if meter.begin():
                return
        elif meter.stopped():
            raise RunStoppedError("The run was stopped.")
        since = time.monotonic()
        yield 0.02
        meter.hold(since)  # its clock does not run while others hold it back


def metered_lm(lm: Any) -> Any:
    """Return a copy of an LM whose requests, answered or failed, are counted by the meter."""
    twin = lm.copy()
    # Its class, because DSPy would not accept a wrapper as an LM, and DSPy does not report the requests it retries.
    twin.__class__ = type("MeteredLM", (_MeteredLM, type(lm)), {})
    twin.retries, twin.num_retries = lm.num_retries, 0
    twin.lane = Lane(Numbers())
    return twin


def with_meter(module: dspy.Module) -> dspy.Module:
    """Return a copy of a role module in which every LM that it holds is metered. See `with_lms` for those it finds."""
    twin: dspy.Module = with_lms(module, lambda lm: lm if isinstance(lm, _MeteredLM) else metered_lm(lm))
    return twin
