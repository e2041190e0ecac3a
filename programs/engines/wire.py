"""One exchange with Ollama: a request in DSPy's form becomes Ollama's, and the lines of the reply one response."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import cache
from ssl import SSLContext
from typing import Any

import httpx
from dspy import lm15
from dspy.lm15 import Message, Request, Response, TextPart, ThinkingPart, Usage
from ollama import AsyncClient, ChatResponse, Options, ResponseError

from eldgr_dspy.programs.engines.bounded import UNCOMPRESSED, bound
from eldgr_dspy.programs.engines.faults import cut_off, fault_of, unread, unsendable_key
from eldgr_dspy.programs.engines.window import counts_everything, overflow, shortfall, words_in
from eldgr_dspy.redaction import remember
from eldgr_dspy.thinking import split_thinking

CARRIED = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "seed": "seed",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "max_tokens": "num_predict",
}
"""The options that DSPy has names for, with Ollama's names for them."""

OWN = frozenset({"host", "think", "keep_alive", *Options.model_fields}) - {*CARRIED.values(), "stop"}
"""The options that DSPy does not know; they travel under `metadata`."""

DEFAULTS: Mapping[str, Any] = {"host": "http://127.0.0.1:11434", "num_ctx": 8192, "think": False}

_SENDABLE = re.compile(r"[\x21-\x7e]*")  # in a header of HTTP
_REFUSED = ("tool_choice", "reasoning", "logprobs", "probabilities")
_RAISED = (ResponseError, httpx.HTTPError, OSError, ValueError, TypeError, AttributeError, RecursionError)
"""The errors that the client raises; the last four for lines that are not JSON, or not the JSON it expects."""


@dataclass(frozen=True)
class Exchange:
    """One call: what is sent, and to which model.

    Attributes:
        model: The model's name at the server.
        options: The options of `OWN`.
        sent: The arguments of the client's `chat`.
        seconds: The deadline.
    """

    model: str
    options: Mapping[str, Any]
    sent: Mapping[str, Any]
    seconds: float

    @classmethod
    def of(cls, request: Request, seconds: float) -> "Exchange":
        """Return the exchange for a request. Raises `dspy.lm15.UnsupportedFeatureError` if it holds more than text."""
        model = request.model.partition("/")[2] or request.model
        options = {**DEFAULTS, **own_options(request)}
        sent = {
            "model": model,
            "messages": _messages(request),
            "format": _format(request.config.response_format),
            "think": options["think"],
            "keep_alive": options.get("keep_alive"),
            "options": _options(request.config, options),
        }
        return cls(model, options, sent, seconds)

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Raise what the client raises as the errors of `dspy.lm15`."""
        try:
            yield
        except lm15.LM15Error:
            raise
        except _RAISED as error:
            raise fault_of(error, self.model, self.options["host"], self.seconds) from error

    async def run(self) -> Response:
        """Ask, and return the response. Raises `dspy.lm15` errors where the prompt or the reply was cut off."""
        said, thought, last = list[str](), list[str](), None
        async with (
            client_at(self.options["host"]) as client,
            aclosing(await client.chat(**self.sent, stream=True)) as lines,
        ):
            async for line in lines:
                said.append(line.message.content or "")
                thought.append(line.message.thinking or "")
                if line.done:
                    last = line
                    break
        if last is None:
            raise cut_off(self.model, self.options["host"])
        await self._check(last)
        return self._response("".join(said), "".join(thought), last)

    async def _check(self, last: ChatResponse) -> None:
        """Raise if part of the prompt was not read."""
        words = words_in(message["content"] for message in self.sent["messages"])
        read, written = _count(last.prompt_eval_count) or None, _count(last.eval_count)
        reason = overflow(words, self.options["num_ctx"], read, written, self.model)
        if reason is None and (short := shortfall(words, read)):
            reason = short if counts_everything(await version_of(self.options["host"])) else None
        if reason is not None:
            raise unread(reason, self.model)

    def _response(self, said: str, thought: str, last: ChatResponse) -> Response:
        leaked, answer = split_thinking(said)
        thinking = "\n".join(text for text in (thought.strip(), leaked) if text)
        return Response(
            id=None,
            model=last.model or self.model,
            message=Message.assistant([*([ThinkingPart(thinking)] if thinking else ()), TextPart(answer)]),
            finish_reason="length" if last.done_reason == "length" else "stop",
            usage=Usage(input_tokens=_count(last.prompt_eval_count) or None, output_tokens=_count(last.eval_count)),
        )


def own_options(request: Request) -> dict[str, Any]:
    """Return the options of `OWN` that a request carries."""
    carried = (request.config.extensions or {}).get("metadata")
    return {name: value for name, value in carried.items() if name in OWN} if isinstance(carried, Mapping) else {}


def client_at(host: str) -> AsyncClient:
    """Return a client for one call. Raises `dspy.lm15.AuthError` if the key cannot be sent: httpx would quote it."""
    key = os.environ.get("OLLAMA_API_KEY", "")
    remember(key)
    if not _SENDABLE.fullmatch(key):
        raise unsendable_key()
    return AsyncClient(host, follow_redirects=False, **_bounded())


async def version_of(host: str) -> str | None:
    """Return the version that the server at an address states, None if it does not."""
    try:
        async with httpx.AsyncClient(base_url=host, timeout=None, **_bounded()) as client:
            said = (await client.get("/api/version")).raise_for_status().json()
    except (httpx.HTTPError, ValueError):
        return None
    version = said.get("version") if isinstance(said, dict) else None
    return version if isinstance(version, str) else None


def _bounded() -> dict[str, Any]:
    """Return the arguments of a client that reads within the limits."""
    return {"verify": _tls(), "event_hooks": {"response": [bound]}, "headers": UNCOMPRESSED}


@cache
def _tls() -> SSLContext:
    return httpx.create_ssl_context()  # takes thirty times as long as everything else that a client needs


def _messages(request: Request) -> list[dict[str, str]]:
    for name in _REFUSED:
        if getattr(request.config, name) is not None:
            raise _unsupported(f"config.{name}")
    if request.tools:
        raise _unsupported("tools")
    system = request.system
    opening = system if isinstance(system, str) else "".join(_text(part, "system") for part in system or ())
    said = [
        {"role": message.role, "content": "".join(_text(part, "messages") for part in message.parts)}
        for message in request.messages
    ]
    return [{"role": "system", "content": opening}, *said] if opening else said


def _text(part: Any, where: str) -> str:
    if not isinstance(part, TextPart):
        raise _unsupported(f"{where}: {part.type}")
    text: str = part.text
    return text


def _unsupported(feature: str) -> lm15.UnsupportedFeatureError:
    return lm15.UnsupportedFeatureError(
        f"The engine for Ollama supports text and a response format, not {feature}; leave it out, or use dspy.LM.",
        provider="ollama",
        feature=feature,
    )


def _format(response_format: Any) -> Any:
    if not response_format:
        return None
    return response_format["schema"] if response_format.get("type") == "json_schema" else "json"


def _options(config: Any, own: Mapping[str, Any]) -> dict[str, Any]:
    given = {theirs: getattr(config, ours) for ours, theirs in CARRIED.items()}
    given |= {"stop": list(config.stop) or None}
    given |= {name: value for name, value in own.items() if name in Options.model_fields}
    return {name: value for name, value in given.items() if value is not None}


def _count(number: int | None) -> int | None:
    return number if number is not None and number >= 0 else None
