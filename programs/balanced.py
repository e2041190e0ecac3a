"""One model on several servers: `BalancedLM` is a `dspy.LM` whose `api_base` is a list of addresses.

Each request goes to the server with the fewest under way. One that a server did not answer is sent to another. The
addresses do not identify a reply. Ours.
"""

import asyncio
import errno
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from typing import Any

import dspy
from dspy.lm15 import Request

from eldgr_dspy.errors import describe_failure
from eldgr_dspy.programs.consulting import is_transient
from eldgr_dspy.programs.engines.servers import Server, Servers
from eldgr_dspy.programs.retrying import Retries, send_elsewhere
from eldgr_dspy.programs.role_log import LOGGER
from eldgr_dspy.redaction import redacted_message

PATIENCE = "eldgr_patience"
"""A setting of DSPy's: the seconds that a server may take for a request, if the LM has no `timeout`."""

ADDRESS: ContextVar[str | None] = ContextVar("eldgr_address", default=None)
"""The address of the server that this thread or task asks."""

_PATIENCE = 200.0
_UNREACHABLE = frozenset((errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH))


class BalancedLM(dspy.LM):
    """A `dspy.LM` with several servers of the same model.

    A server fails a request if it refuses the connection, breaks it, does not answer in time or answers with a status
    of 500 or more. The request then goes to another server at once. `eldgr_dspy.programs.engines.servers` states for
    how long the failed one is passed over. If no server is well, the usual retries and pauses follow, and then the
    usual error.
    """

    resends = True
    """Whether a call sends a request again by itself; a run does that for its own LMs, because it counts requests."""

    def __init__(self, model: str, *, api_base: Sequence[str] | str, num_retries: int = 3, **options: Any) -> None:
        """Take a model and its servers.

        Args:
            model: As `dspy.LM` has it, such as `openai/Qwen/Qwen3-8B`.
            api_base: The addresses. Among servers that are equally busy the first is asked.
            num_retries: How often a request is sent again with pauses, where no server is well.
            options: Further options of `dspy.LM`, by name. `timeout` is how many seconds a server may take to send the
                next byte before the request goes to another server, by default 200, or a third of the time that a run
                allows.

        Raises:
            ArgumentError: There is no address, or one is given twice.
        """
        addresses = _listed(api_base)
        self.servers = Servers(addresses)
        super().__init__(model, api_base=addresses, num_retries=num_retries, **options)
        self.retries = num_retries
        self.num_retries = 0  # DSPy's own would go to the same server

    @property
    def spare(self) -> int:
        """How often a call may go to another server, in addition to its retries."""
        return len(self.servers.all) - 1

    def copy(self, **kwargs: Any) -> "BalancedLM":
        """Return a copy with other options, which may be other addresses."""
        if "num_retries" in kwargs:
            kwargs["retries"] = kwargs.pop("num_retries")
        twin: BalancedLM = super().copy(**kwargs)
        twin.kwargs["api_base"] = _listed(twin.kwargs["api_base"])
        twin.servers = Servers(twin.kwargs["api_base"])
        return twin

    def dump_state(self) -> dict[str, Any]:
        """Return the state that `load_state` takes, without credentials."""
        return {**super().dump_state(), "num_retries": self.retries}

    def __call__(self, prompt: Any = None, **kwargs: Any) -> Any:
        """Ask as `dspy.LM` does."""
        call = _Call(self)
        while True:
            try:
                with call.request() as address:
                    lm, options = self._at(address, prompt, kwargs)
                    return super(BalancedLM, lm).__call__(prompt, **options)
            except dspy.LMError as error:
                time.sleep(call.pause_after(error))

    async def acall(self, prompt: Any = None, **kwargs: Any) -> Any:
        """Ask as `dspy.LM` does, without blocking."""
        call = _Call(self)
        while True:
            try:
                with call.request() as address:
                    lm, options = self._at(address, prompt, kwargs)
                    return await super(BalancedLM, lm).acall(prompt, **options)
            except dspy.LMError as error:
                await asyncio.sleep(call.pause_after(error))

    def _at(self, address: str, prompt: Any, options: dict[str, Any]) -> tuple["BalancedLM", dict[str, Any]]:
        """Return the LM and the options with which a request goes to one server."""
        own = {"timeout": dspy.settings.get(PATIENCE, _PATIENCE), **self.kwargs, "api_base": address}
        if isinstance(prompt, Request):  # takes no options; the copy shares history and connections
            lm = copy(self)
            lm.kwargs = own
            return lm, options
        return self, {name: own[name] for name in ("timeout", "api_base")} | options


class _Call:
    """A call, and the requests that it takes."""

    def __init__(self, lm: BalancedLM) -> None:
        self._servers = lm.servers
        self._again = Retries(lm.retries, lm.spare) if lm.resends else Retries(0)
        self._refused = set[Server]()
        self._handled = sys.exception()  # by the caller: its connection was another one

    @contextmanager
    def request(self) -> Iterator[str]:
        """Give the address for one request, and record how it ends."""
        server = self._servers.take(self._refused)
        token = ADDRESS.set(server.address)
        try:
            yield server.address
        except dspy.LMError as error:
            self._record(server, error)
            raise
        except BaseException:
            self._servers.leave(server)
            raise
        else:
            self._servers.answer(server)
        finally:
            ADDRESS.reset(token)

    def _record(self, server: Server, error: dspy.LMError) -> None:
        if isinstance(error, dspy.LMConfigurationError | dspy.LMUnsupportedFeatureError):
            self._servers.leave(server)  # nothing was sent
        elif not is_transient(error) or isinstance(error, dspy.LMRateLimitError):
            self._servers.answer(server)
        else:
            if self._servers.fail(server, describe_failure(error)):
                LOGGER.warning(
                    "The server %s failed %d times in a row and is passed over: %s. Further failures are not logged.",
                    redacted_message(server.address),
                    server.in_a_row,
                    server.reason.rstrip("."),
                )
            if self._was_refused(error):
                self._refused.add(server)
            if self._servers.one_is_well:
                send_elsewhere(error)

    def pause_after(self, error: dspy.LMError) -> float:
        """Return the seconds before the request is sent again; raise the failure if it is not.

        A refused connection has not reached the model. So the call tries every server, even without retries.
        """
        if self._was_refused(error) and len(self._refused) < len(self._servers.all):
            return 0.0
        pause = self._again.pause_after(error)
        if pause is None:
            raise error
        self._refused.clear()
        return pause

    def _was_refused(self, error: BaseException | None) -> bool:
        """Return whether no connection was made, so that the request did not reach the model."""
        while error is not None and error is not self._handled:
            if isinstance(error, socket.gaierror) or (isinstance(error, OSError) and error.errno in _UNREACHABLE):
                return True
            error = error.__cause__ or error.__context__
        return False


def _listed(api_base: Sequence[str] | str) -> list[str]:
    return [api_base] if isinstance(api_base, str) else list(api_base)
