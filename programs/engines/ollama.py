"""Ollama through its own interface, as an engine of `dspy.LM`: `ollama("deepseek-r1:7b")` is an LM like any other.

Ollama's OpenAI-compatible address can set neither the size of the context nor whether a model thinks. Here both are
set, the adapter's JSON schema constrains the output, and each call has its own deadline. Nothing is retried here: DSPy
does that.

Every option travels in the request under `metadata`, the one field of DSPy's that lets them through. DSPy's cache is
keyed by the request, so an answer under one option is never used for another.
"""

import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

import dspy
from dspy import lm15
from dspy.lm15 import Request, Response

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.engines.deadline import run_within, within
from eldgr_dspy.programs.engines.wire import CARRIED, DEFAULTS, OWN, Exchange, own_options

TIMEOUT = 300.0
"""Seconds that a call may take, by default."""

_PORT = 11434
_FORBIDDEN = re.compile(r"""[\s"'<>\x00-\x1f\x7f]""")
"""Characters that an address of a server cannot have; each call would refuse them."""


class _Engine:
    """The parts that both engines share.

    Attributes:
        timeout: Seconds that a call may take from start to end.
    """

    supports_function_calling = False
    supports_reasoning = False
    supports_response_schema = True
    supported_params = frozenset({*CARRIED, "stop", "response_format"})

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self.timeout = timeout

    def dump_state(self) -> dict[str, Any]:
        """Return the settings of the engine; they hold no secret."""
        return {"timeout": self.timeout}

    @classmethod
    def load_state(cls, state: Mapping[str, Any]) -> "_Engine":
        """Return an engine as it was dumped."""
        return cls(**state)


class OllamaEngine(_Engine):
    """Carries one request to Ollama and its reply back; see `ollama`. It keeps no connection between calls."""

    def complete(self, request: Request) -> Response:
        """Return the reply, or raise an error of `dspy.lm15`; a prompt that was cut is such an error."""
        exchange = Exchange.of(request, self.timeout)
        with exchange.faults():
            return run_within(self.timeout, exchange.run)

    def stream(self, request: Request) -> Iterator[Any]:
        """Yield the reply as events once it is complete: only then is the thinking told from the answer."""
        yield from lm15.response_to_events(self.complete(request))

    def close(self) -> None:
        """Do nothing; there is no connection."""


class AsyncOllamaEngine(_Engine):
    """The same engine for `await`."""

    async def complete(self, request: Request) -> Response:
        """Return the reply, or raise what `OllamaEngine.complete` raises."""
        exchange = Exchange.of(request, self.timeout)
        with exchange.faults():
            return await within(self.timeout, exchange.run)

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        """Yield the reply as events once it is whole."""
        for event in lm15.response_to_events(await self.complete(request)):
            yield event

    async def aclose(self) -> None:
        """Do nothing; there is no connection."""


class OllamaLM(dspy.LM):
    """A `dspy.LM` that takes Ollama's options where it takes DSPy's: when made, when copied, and in a call."""

    def __call__(self, prompt: Any = None, **kwargs: Any) -> Any:
        """Ask as `dspy.LM` does; `kwargs` may also hold Ollama's options."""
        return super().__call__(self._completed(prompt), **self._carried(kwargs))

    async def acall(self, prompt: Any = None, **kwargs: Any) -> Any:
        """Do the same as `__call__`, without blocking."""
        return await super().acall(self._completed(prompt), **self._carried(kwargs))

    def copy(self, **kwargs: Any) -> "OllamaLM":
        """Return a copy with other options, DSPy's or Ollama's."""
        twin: OllamaLM = super().copy(**self._carried(kwargs))
        return twin

    def _carried(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Move Ollama's options to `metadata`."""
        own, rest = _apart(kwargs)
        return {**rest, "metadata": {**self.kwargs.get("metadata", {}), **_checked(own)}} if own else rest

    def _completed(self, prompt: Any) -> Any:
        """Add the options of this LM to a request in canonical form, which DSPy sends as it is."""
        if not isinstance(prompt, Request):
            return prompt
        metadata = {**self.kwargs.get("metadata", {}), **own_options(prompt)}
        extensions = {**(prompt.config.extensions or {}), "metadata": metadata}
        return replace(prompt, config=replace(prompt.config, extensions=extensions))


def ollama(
    model: str,
    *,
    host: str | None = None,
    num_ctx: int = DEFAULTS["num_ctx"],
    think: bool | Literal["low", "medium", "high"] = False,
    keep_alive: str | float | None = None,
    timeout: float = TIMEOUT,
    **options: Any,
) -> OllamaLM:
    """Return an LM that runs on an Ollama server.

    Args:
        model: Its name there, such as `deepseek-r1:7b`.
        host: Address of the server; by default `OLLAMA_HOST`, else this machine. A key is read from `OLLAMA_API_KEY`
            at each call; an address with a password in it is refused, because addresses are written to files.
        num_ctx: Tokens that prompt and reply may have together. A prompt that did not fit is an error of the call
            (`dspy.ContextWindowExceededError`) and never a reply.
        think: Whether the model thinks before it answers. Its thinking is kept out of the reply in either case.
        keep_alive: How long the server keeps the model loaded, as Ollama writes it (`"10m"`).
        timeout: Seconds that a call may take from start to end (`dspy.LMTimeoutError`).
        options: Further options of `dspy.LM` (`temperature`, `max_tokens`, `cache`, `num_retries`, ...) or of Ollama
            (`repeat_penalty`, `num_gpu`, ...).

    Raises:
        ArgumentError: An argument has a wrong type or value.
    """
    if not model.strip():
        raise ArgumentError(f"model must name a model, such as 'deepseek-r1:7b'; got {model!r}.")
    if not (timeout > 0 and isfinite(timeout)):
        raise ArgumentError(f"timeout must be a finite number of seconds above 0; got {timeout!r}.")
    own, options = _apart(options)
    own |= {"host": host or os.environ.get("OLLAMA_HOST") or DEFAULTS["host"], "num_ctx": num_ctx, "think": think}
    own |= {} if keep_alive is None else {"keep_alive": keep_alive}
    engines = {"engine": OllamaEngine(timeout), "async_engine": AsyncOllamaEngine(timeout)}
    return OllamaLM(f"ollama/{model.strip()}", **engines, **options, metadata=_checked(own))


def _apart(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return Ollama's options, and the others."""
    if "metadata" in options:
        raise ArgumentError(
            "metadata= is reserved for Ollama's options; give each by its own name, as in num_ctx=4096."
        )
    rest = {name: value for name, value in options.items() if name not in OWN}
    return {name: options[name] for name in OWN & options.keys()}, rest


def _checked(own: dict[str, Any]) -> dict[str, Any]:
    """Return Ollama's options as they are sent, or refuse one."""
    if "num_ctx" in own and (type(own["num_ctx"]) is not int or own["num_ctx"] < 1):
        raise ArgumentError(f"num_ctx must be a whole number of tokens above 0; got {own['num_ctx']!r}.")
    if "think" in own and own["think"] not in (True, False, "low", "medium", "high"):
        raise ArgumentError(f"think must be True, False, 'low', 'medium' or 'high'; got {own['think']!r}.")
    return own | ({"host": address_of(own["host"])} if "host" in own else {})


def address_of(host: str) -> str:
    """Return a server's address in full, as Ollama's client completes it; `/v1`, OpenAI's part of it, is removed.

    White space and quotes around it are ignored, as Ollama does when it reads `OLLAMA_HOST`.

    Raises:
        ArgumentError: It is not an address, or has a user or a password in it.
    """
    host = host.strip().strip("\"'").strip()
    parts, port = _split(host)
    if parts is None or not (parts.hostname or port) or parts.scheme not in ("http", "https"):
        shown = host.rpartition("@")[2]  # the part before may be a password
        raise ArgumentError(f"host must be an address such as 'http://localhost:11434'; got {shown!r:.200}.")
    if parts.username is not None or parts.password is not None:
        raise ArgumentError(
            f"The address of the server {parts.hostname} has a user or a password in it, and addresses are written to "
            "files; leave it out, and set OLLAMA_API_KEY if the server wants a key."
        )
    default = _PORT if "://" not in host else {"http": 80, "https": 443}[parts.scheme]
    name = parts.hostname or "127.0.0.1"
    name = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{name}:{port or default}{parts.path.rstrip('/').removesuffix('/v1')}"


def _split(host: str) -> tuple[SplitResult | None, int | None]:
    if _FORBIDDEN.search(host):
        return None, None
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        return parts, parts.port
    except ValueError:
        return None, None
