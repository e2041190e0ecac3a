"""Whether a model can be the judge: what stands between a name and a verdict, looked at piece by piece.

The model is asked one easy question twice, under a schema that demands a word which the prompt does not have: a server
that does not constrain what is written cannot give it. This says whether a judge can be asked, not how well it judges.
"""

import json
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

import dspy
import httpx
from dspy.lm15 import Config, DataPart, LM15Error, Message, Request, Response, TextPart, ThinkingPart
from ollama import ResponseError, ShowResponse

from eldgr_dspy.programs.engines.deadline import run_within
from eldgr_dspy.programs.engines.faults import fault_of
from eldgr_dspy.programs.engines.ollama import OllamaLM
from eldgr_dspy.programs.engines.strict import read_object
from eldgr_dspy.programs.engines.window import counts_everything
from eldgr_dspy.programs.engines.wire import client_at, version_of
from eldgr_dspy.programs.run.fingerprints import redacted

_PROMPT = (
    "Question: what is the capital of France?\nCandidate 0: Berlin\nCandidate 1: Paris\n"
    "Reply with a JSON object whose key preferred holds the number of the right candidate."
)
_SEAL = "amber-otter-49"
_SCHEMA = {
    "type": "object",
    "properties": {"seal": {"type": "string", "enum": [_SEAL]}, "preferred": {"type": "integer", "enum": [0, 1]}},
    "required": ["seal", "preferred"],
    "additionalProperties": False,
}
_FAILURES = (
    *(LM15Error, ResponseError, httpx.HTTPError),
    *(OSError, ValueError, TypeError, AttributeError, RecursionError),
)
_SLACK = 32  # tokens that a template may add to a reply

Pull = Callable[[str, str, float], None]
"""Has a server (its address) pull a model (its name); raises `TimeoutError` after seconds without progress."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        check: What was looked at.
        ok: Whether it is as it should be.
        text: What was found, as a sentence; where it is not ok, with what to do.
    """

    check: str
    ok: bool
    text: str


def diagnose(lm: dspy.LM, seconds: float, pull: Pull | None = None) -> Iterator[Finding]:
    """Yield what is found of an LM, in order, up to the first thing without which nothing else can be looked at.

    Args:
        lm: The LM; Ollama's are looked at more closely.
        seconds: How long each question to the server may take.
        pull: What to do where an Ollama server lacks the model; None leaves it.
    """
    if isinstance(lm, OllamaLM):
        yield from _Ollama(lm, seconds).findings(pull)
    else:
        yield from _answers(lm)


class _Ollama:
    """The checks that only an Ollama server can be put to."""

    def __init__(self, lm: OllamaLM, seconds: float) -> None:
        options = lm.kwargs["metadata"]
        self.lm, self.seconds = lm, seconds
        self.model, self.host, self.num_ctx = lm.model.partition("/")[2], options["host"], options["num_ctx"]

    def findings(self, pull: Pull | None) -> Iterator[Finding]:
        try:
            names = run_within(self.seconds, self._listed)
            version = run_within(self.seconds, lambda: version_of(self.host))
        except _FAILURES as error:
            yield self._failed("server", error)
            return
        yield Finding("server", True, f"Ollama {version or 'of unknown version'} answers at {self.host}.")
        shown = yield from self._present(names, pull)
        if shown is not None:
            yield self._window(shown, unseen=not counts_everything(version))
            yield from _answers(self.lm)

    def _present(self, names: list[str], pull: Pull | None) -> Generator[Finding, None, ShowResponse | None]:
        try:
            if pull is not None and _tagged(self.model) not in names:
                pull(self.host, self.model, self.seconds)
        except TimeoutError:
            yield Finding("model", False, self._stalled())
            return None
        except _FAILURES as error:
            yield self._failed("model", error)
            return None
        try:
            shown = run_within(self.seconds, self._shown)
        except _FAILURES as error:
            yield self._failed("model", error)
            return None
        details = shown.details
        known = [details.parameter_size, details.quantization_level] if details else []
        yield Finding("model", True, f"{', '.join([self.model, *filter(None, known)])}: it is there.")
        return shown

    def _stalled(self) -> str:
        return (
            f"{self.host} made no progress with pulling {self.model} for {self.seconds:g} s, and was left to it; "
            f"--pull again goes on from there, a longer --timeout waits longer, or try: ollama pull {self.model}"
        )

    def _window(self, shown: ShowResponse, *, unseen: bool) -> Finding:
        sizes = [size for name, size in (shown.modelinfo or {}).items() if name.endswith(".context_length")]
        size = next((size for size in sizes if isinstance(size, int)), None)
        if size is not None and size < self.num_ctx:
            text = f"The model reads {size} tokens at most, fewer than num_ctx={self.num_ctx}; give --num-ctx {size}."
            return Finding("context", False, text)
        most = "does not say how many it could have" if size is None else f"could have {size}"
        caution = " This version does not count cached tokens, so a prompt cut short may go unseen." if unseen else ""
        return Finding("context", True, f"{self.num_ctx} tokens are asked for; the model {most}.{caution}")

    async def _listed(self) -> list[str]:
        async with client_at(self.host) as client:
            return [_tagged(one.model) for one in (await client.list()).models if one.model]

    async def _shown(self) -> ShowResponse:
        async with client_at(self.host) as client:
            shown: ShowResponse = await client.show(self.model)
        return shown

    def _failed(self, check: str, error: Exception) -> Finding:
        fault = error if isinstance(error, LM15Error) else fault_of(error, self.model, self.host, self.seconds)
        return Finding(check, False, fault.message.partition("\n")[0])


def _answers(lm: dspy.LM) -> Iterator[Finding]:
    """What two calls show."""
    try:
        _, waited = _asked(lm)
        response, seconds = _asked(lm)
    except dspy.LMError as error:
        yield Finding("call", False, redacted(error.message.partition("\n")[0]))
        return
    yield from _verdict(response)
    if isinstance(lm, OllamaLM):
        yield _thinking(response, asked_for=bool(lm.kwargs["metadata"]["think"]))
        yield _served(response.model, lm.model.partition("/")[2])
    yield Finding("speed", True, f"{seconds:.1f} seconds a call; the first took {waited:.1f}.")


def _asked(lm: dspy.LM) -> tuple[Response, float]:
    response_format = {"type": "json_schema", "name": "verdict", "schema": _SCHEMA}
    config = Config(response_format=response_format)
    request = Request(model=lm.model, messages=(Message.user(_PROMPT),), config=config)
    begun = time.monotonic()
    return lm(request), time.monotonic() - begun


def _verdict(response: Response) -> Iterator[Finding]:
    said = _said(response)
    try:
        reply = read_object(said)
    except ValueError as error:
        reply = {"unread": str(error)}
    honoured = reply.keys() == {"seal", "preferred"} and reply["seal"] == _SEAL and reply["preferred"] in (0, 1)
    if not honoured:
        text = f"The server does not hold the model to a JSON schema; it wrote {said!r:.120}. Use one that does."
        yield Finding("structured output", False, text)
        return
    yield Finding("structured output", True, "The reply is the one JSON object that the schema allows.")
    right = reply["preferred"] == 1
    found = (
        "The model prefers Paris as the capital of France."
        if right
        else ("The model prefers Berlin as the capital of France; use another model as judge.")
    )
    yield Finding("verdict", right, found)


def _said(response: Response) -> str:
    """The text of a reply; DSPy's own engine has read some of it already."""
    parts = [
        json.dumps(part.value) if isinstance(part, DataPart) else part.text
        for part in response.message.parts
        if isinstance(part, DataPart | TextPart)
    ]
    return "".join(parts)


def _thinking(response: Response, *, asked_for: bool) -> Finding:
    thoughts = "".join(part.text for part in response.message.parts if isinstance(part, ThinkingPart))
    hidden = (response.usage.output_tokens or 0) > len(_said(response).encode()) + len(thoughts.encode()) + _SLACK
    if asked_for or not (thoughts or hidden):
        return Finding("thinking", True, "It is on, as asked for." if asked_for else "It is off.")
    amount = f"{len(thoughts)} characters" if thoughts else f"{response.usage.output_tokens} tokens, most not shown,"
    text = f"It cannot be turned off: {amount} were written before the reply. They are kept out of it, and take time."
    return Finding("thinking", False, f"{text} Use a model or an Ollama that can.")


def _served(served: str, asked: str) -> Finding:
    if _tagged(served) == _tagged(asked):
        return Finding("model served", True, f"{served} answers.")
    return Finding(
        "model served", False, f"{served} answers where {asked} was asked; look at what serves this address."
    )


def _tagged(model: str) -> str:
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


def as_json(findings: list[Finding], model: str) -> str:
    """Return the findings as a JSON object."""
    listed = [{"check": one.check, "ok": one.ok, "text": one.text} for one in findings]
    return json.dumps({"judge": model, "ok": all(one.ok for one in findings), "findings": listed}, indent=2)
