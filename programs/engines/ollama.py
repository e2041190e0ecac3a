"""Ollama through its own interface, as an engine of `dspy.LM`: `ollama("deepseek-r1:7b")` is an LM like any other.

Its client talks. Ours are a deadline for a call, a limit on a response's bytes, and an error if a prompt was cut.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import dspy
import httpx
from anyio.from_thread import start_blocking_portal
from dspy import lm15
from dspy.lm15 import Message, Request, Response, TextPart, ThinkingPart, Usage
from ollama import AsyncClient, Options, ResponseError

from eldgr_dspy.errors import ArgumentError, brief
from eldgr_dspy.programs.engines.usage import without_false_counts
from eldgr_dspy.redaction import redact_message, remember
from eldgr_dspy.text.thinking import split_thinking

ADDRESS, CONTEXT, MOST_MIB = "http://127.0.0.1:11434", 8192, 32  # tokens of context by default; MiB of a response
COMMON = frozenset({"temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty"})
OWN = frozenset({"host", "think", "keep_alive", *Options.model_fields}) - COMMON - {"num_predict", "stop"}
"""The options that DSPy has no name for; `COMMON` are those that DSPy and Ollama call alike."""
FAILURES = (ResponseError, httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, TypeError, RecursionError)

_KINDS = {401: lm15.AuthError, 402: lm15.BillingError, 403: lm15.AuthError, 429: lm15.RateLimitError}
_REMEDY = "raise num_ctx= (--set num_ctx=), or update an Ollama that does not count cached tokens (0.30, or before 0.4)"
_HOST = re.compile(r"(https?://)?(\[[\da-f:.]+\]|[\w.-]*)(:\d{1,5})?(/[\w.-]+)*", re.IGNORECASE)


@dataclass(frozen=True)
class OllamaEngine:
    """Carries one request to Ollama and its reply back within `timeout` seconds. It keeps no connection."""

    timeout: float
    supports_response_schema: ClassVar = True
    supported_params: ClassVar = COMMON | {"max_tokens", "stop", "response_format"}

    def complete(self, request: Request) -> Any:
        """Return the reply, or raise an error of `dspy.lm15`. A prompt that was cut is such an error."""
        with start_blocking_portal() as portal:  # a loop in a thread: only a task can be cancelled wherever it stands
            return portal.call(_ask, request, self.timeout)

    def stream(self, request: Request) -> Any:
        """Return the events of a reply that is complete: only then is the thinking told from the answer."""
        return lm15.response_to_events(self.complete(request))

    def dump_state(self) -> dict[str, Any]:
        """Return the arguments of the engine. They hold no secret."""
        return asdict(self)

    @classmethod
    def load_state(cls, state: Mapping[str, Any]) -> "OllamaEngine":
        """Return an engine as it was dumped."""
        return cls(**state)


class AsyncOllamaEngine(OllamaEngine):
    """The same engine for `await`."""

    async def complete(self, request: Request) -> Response:
        """Return the reply, or raise what `OllamaEngine.complete` raises."""
        return await _ask(request, self.timeout)

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        """Yield the events of a reply that is complete."""
        for event in lm15.response_to_events(await self.complete(request)):
            yield event


class OllamaLM(dspy.LM):
    """A `dspy.LM` whose requests carry Ollama's options, those in canonical form too."""

    def __call__(self, prompt: Any = None, **kwargs: Any) -> Any:
        """Ask as `dspy.LM` does."""
        return super().__call__(self._with_options(prompt), **kwargs)

    async def acall(self, prompt: Any = None, **kwargs: Any) -> Any:
        """Do the same as `__call__`, without blocking."""
        return await super().acall(self._with_options(prompt), **kwargs)

    def _with_options(self, prompt: Any) -> Any:
        if not isinstance(prompt, Request):
            return prompt
        extensions = {**(prompt.config.extensions or {}), "metadata": self.kwargs["metadata"]}
        return replace(prompt, config=replace(prompt.config, extensions=extensions))


def ollama(
    model: str, *, host: str | None = None, num_ctx: int = CONTEXT, timeout: float = 300.0, **options: Any
) -> OllamaLM:
    """Return an LM that runs on an Ollama server.

    Args:
        model: Its name there, such as `deepseek-r1:7b`.
        host: Address of the server. By default `OLLAMA_HOST`, else this machine. It may have no password in it, because
            addresses are written to files: a key is read from `OLLAMA_API_KEY`.
        num_ctx: Tokens that prompt and reply may have together. A prompt that did not fit is an error of the call
            (`dspy.ContextWindowExceededError`) and never a reply.
        timeout: Seconds that a call may take from start to end (`dspy.LMTimeoutError`).
        options: Options of `dspy.LM`, and of Ollama, such as `keep_alive`. `think` is whether the model thinks first
            (True, False, "low", "medium", "high"), by default not. Its thinking is kept out of the reply.

    Raises:
        ArgumentError: An argument has a wrong type or value.
    """
    address = (host or os.environ.get("OLLAMA_HOST") or ADDRESS).strip(" \"'\n").rstrip("/").removesuffix("/v1")
    own = {"think": False, **{n: options.pop(n) for n in OWN & options.keys()}, "host": address, "num_ctx": num_ctx}
    for name, value, valid, what in (
        ("timeout", timeout, 0 < timeout < float("inf"), "a finite number of seconds above 0"),
        ("num_ctx", num_ctx, type(num_ctx) is int and num_ctx > 0, "a whole number of tokens above 0"),
        ("host", address.rpartition("@")[2], _HOST.fullmatch(address), f"an address like {ADDRESS}, without password"),
        ("OLLAMA_API_KEY", "***", re.fullmatch(r"[!-~]*", os.environ.get("OLLAMA_API_KEY", "")), "one word of ASCII"),
    ):
        if not valid:
            raise ArgumentError(f"{name} must be {what}; got {value!r:.200}.")
    engines = {"engine": OllamaEngine(timeout), "async_engine": AsyncOllamaEngine(timeout)}
    return OllamaLM(f"ollama/{model.strip()}", **engines, **options, metadata=own)


async def _ask(request: Request, seconds: float) -> Response:
    own: Any = (request.config.extensions or {})["metadata"]
    model, host, messages = request.model.partition("/")[2], own["host"], _messages(request)
    options = {name: getattr(request.config, name) for name in COMMON}
    options |= {"num_predict": request.config.max_tokens, "stop": list(request.config.stop) or None}
    options |= {name: own[name] for name in own.keys() & Options.model_fields.keys()}
    further = {name: own.get(name) for name in ("think", "keep_alive")}
    form = request.config.response_format and request.config.response_format.get("schema", "json")
    try:
        bounds = {"event_hooks": {"response": [_bound]}, "headers": {"Accept-Encoding": "identity"}}
        async with asyncio.timeout(seconds), AsyncClient(host, follow_redirects=False, **bounds) as client:
            reply = await client.chat(model, messages, format=form, options=Options(**options), **further)
    except FAILURES as error:
        raise fault_of(error, model, host, seconds) from error
    n_prompt, n_reply = (n if n and n > 0 else None for n in (reply.prompt_eval_count, reply.eval_count))
    words = sum(any(map(str.isalnum, word)) for one in messages for word in one["content"].split())
    if is_cut(words, own["num_ctx"], n_prompt, n_reply):
        problem = f"did not read the whole prompt ({words} words; {n_prompt} tokens read and {n_reply} written)"
        raise lm15.ContextLengthError(f"{model} at {host} {problem}; {_REMEDY}.")
    leak, answer = split_thinking(reply.message.content or "")
    thinking = [ThinkingPart(text) for text in ((reply.message.thinking or "").strip(), leak) if text]
    message = Message.assistant([*thinking, TextPart(answer)])
    usage = Usage(input_tokens=n_prompt, output_tokens=n_reply)
    end: Any = "length" if reply.done_reason == "length" else "stop"
    return Response(id=None, model=reply.model or model, message=message, finish_reason=end, usage=usage)


def _messages(request: Request) -> list[dict[str, str]]:
    """Return the messages as Ollama takes them; refuse what it has no word for."""
    system = (TextPart(request.system),) if isinstance(request.system, str) else request.system or ()
    turns = [("system", system), *((message.role, message.parts) for message in request.messages)]
    config, others = request.config, [part for _, parts in turns for part in parts if not isinstance(part, TextPart)]
    if others or request.tools or config.reasoning or config.logprobs or config.tool_choice:
        raise lm15.UnsupportedFeatureError("Ollama is sent text alone. Leave tools, images, reasoning, logprobs out.")
    return [{"role": role, "content": "".join(part.text for part in parts)} for role, parts in turns if parts]


async def _bound(response: httpx.Response) -> None:
    """Read a response up to its limit, as it comes: one that is compressed unasked could expand a thousandfold."""
    stream, body = response.stream, bytearray()
    response.headers.pop("Content-Encoding", None)
    async for chunk in stream:  # type: ignore[union-attr]  # the client is asynchronous
        body += chunk
        await asyncio.sleep(0)  # a stream that never pauses would not let its deadline pass
        if len(body) > MOST_MIB * 2**20:
            raise httpx.ReadError(f"more than {MOST_MIB} MiB in one response")
    response.stream = httpx.ByteStream(without_false_counts(bytes(body)))


def is_cut(words: int, num_ctx: int, n_prompt: int | None, n_reply: int | None) -> bool:
    """Return whether Ollama dropped part of a prompt, which it does not say, by signs that are certain.

    A word (a part with a letter or a digit) has at least one token. A server that read more than `num_ctx` tokens has
    a window of its own; padding makes one larger by up to 255 tokens, and for some models it has at least 8,192.
    """
    is_full = n_prompt is not None and num_ctx - 1 <= n_prompt <= num_ctx
    is_shifted = (n_prompt or num_ctx) <= num_ctx and (n_prompt or 0) + (n_reply or 0) > max(num_ctx + 255, 8192)
    return words > (n_prompt or num_ctx) or is_full or is_shifted


def fault_of(error: Exception, model: str, host: str, seconds: float) -> lm15.LM15Error:
    """Return DSPy's error for what the client raised in a call of so many seconds. Its message says what to do."""
    if isinstance(error, TimeoutError):
        return lm15.TimeoutError(f"{model} at {host} had not answered in full after {seconds:g} s; raise timeout=.")
    remember(os.environ.get("OLLAMA_API_KEY", ""))
    status, why = getattr(error, "status_code", None), brief(redact_message(str(getattr(error, "error", error))), 200)
    kind, advice = lm15.TransportError, "check that this is the address of `ollama serve`"
    if status == 404 and "model" in why:
        kind, advice = lm15.UnsupportedModelError, f"get the model with: ollama pull {model}"
    elif status == 400 and "context" in why:
        kind, advice = lm15.ContextLengthError, _REMEDY
    elif status is not None:
        kind = _KINDS.get(status, lm15.ServerError if status >= 500 or status == 408 else lm15.InvalidRequestError)
        advice = "check the address, and OLLAMA_API_KEY"
    return kind(f"{model} at {host}: no reply ({status or type(error).__name__}: {why}); {advice}.", status=status)
