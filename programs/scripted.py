"""A scripted LM: replies written beforehand replace a model's, through all of DSPy's own machinery.

It is an engine for `dspy.LM`, not a subclass with a `forward` of its own, so it works sync and async, under threads,
with streaming, usage and callbacks, and without a deprecation warning.
"""

import asyncio
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import dspy
from dspy.lm15 import Message, Request, Response, TextPart, Usage, response_to_events

from eldgr_dspy.errors import ArgumentError, result_of
from eldgr_dspy.programs.engines.reply_forms import FORM
from eldgr_dspy.rule.consultations import Derivation, Repair, Reply, Verdict
from eldgr_dspy.signatures import ASPECTS, DeriveAnswer, JudgeCandidates, RepairAnswer
from eldgr_dspy.words import ROLES, Role

if TYPE_CHECKING:
    from eldgr_dspy.laws.trials import Trial


@dataclass(frozen=True, slots=True)
class Line:
    """A scripted reply: text, or a mapping that is sent as JSON; if `cut`, the response says that it was cut off."""

    text: str | Mapping[str, Any] = ""
    cut: bool = False


ScriptedReply: TypeAlias = "str | Mapping[str, Any] | Line | Response | Exception"
Script: TypeAlias = "Callable[[Request], ScriptedReply] | Sequence[ScriptedReply]"

_OUTPUTS = re.compile(
    r"^Your output(?: fields are|s must contain):\n(.*?)^(?:All interactions will be|You should lay out)", re.M | re.S
)
_LIST_ITEM = re.compile(r"^\d+\. `(\w+)` \(", re.M)
_FORM_FIELD = re.compile(r'^"(\w+)": ', re.M)
_SIGNATURES: dict[Role, Any] = {"judge": JudgeCandidates, "deriver": DeriveAnswer, "repairer": RepairAnswer}
ALONE: Mapping[str, Any] = {"trace": None, "track_usage": False, "usage_tracker": None, "disable_history": True}
"""Settings of DSPy under which calls leave nothing behind."""


class ScriptedEngine:
    """Answers each request from a script and keeps it in `requests`, in order of arrival."""

    supports_response_schema = True
    supported_params = frozenset({"temperature", "max_tokens", "top_p", "response_format"})

    def __init__(self, script: Script, delay: float = 0.0) -> None:
        self.requests, self.delay = list[Request](), delay
        self._script, self._lock = script, threading.Lock()

    def complete(self, request: Request) -> Response:
        """Keep the request; return the scripted response after the delay, or raise the scripted exception."""
        try:
            return self.answer(request)
        finally:
            if self.delay:  # sleep(0) would still give up the processor
                time.sleep(self.delay)

    def stream(self, request: Request) -> Iterator[Any]:
        """Yield the scripted response as events, its text a few characters at a time."""
        return _events(self.complete(request))

    def answer(self, request: Request) -> Response:
        """Keep the request; return the scripted response at once, or raise the scripted exception."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
        if not callable(self._script) and number >= len(self._script):
            raise ArgumentError(
                f"The script has {number} replies and this is request {number + 1}; "
                "give one reply a request, or a callable that answers every request."
            )
        reply = self._script(request) if callable(self._script) else self._script[number]
        reply = result_of(reply, "reply", "give a callable that is not")
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Response):
            return reply
        line = reply if isinstance(reply, Line) else Line(reply)
        text = line.text if isinstance(line.text, str) else json.dumps(line.text)
        prompt, completion = len(text_of(request)) // 4, len(text) // 4  # roughly four characters a token
        usage = Usage(input_tokens=prompt, output_tokens=completion, total_tokens=prompt + completion)
        message, end = Message.assistant([TextPart(text)]), "length" if line.cut else "stop"
        return Response(id=None, model=request.model, message=message, finish_reason=end, usage=usage)

    def __deepcopy__(self, memo: dict[int, Any]) -> "ScriptedEngine":
        return self  # Copies of an LM share a connection: they share one script.


class _AsyncEngine:
    """The same script for `await`. It does not block the event loop."""

    def __init__(self, engine: ScriptedEngine) -> None:
        self.engine = engine

    async def complete(self, request: Request) -> Response:
        try:
            return self.engine.answer(request)
        finally:
            await asyncio.sleep(self.engine.delay)

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        for event in _events(await self.complete(request)):
            yield event


class ScriptedLM(dspy.LM):
    """A `dspy.LM` whose replies come from a script. See `scripted_lm`."""

    @property
    def script(self) -> ScriptedEngine:
        """The engine that holds the script, shared by the copies of this LM."""
        return cast(ScriptedEngine, self.engine)

    @property
    def requests(self) -> list[Request]:
        """Every request that reached the script, in order of arrival."""
        return self.script.requests


def scripted_lm(reply: Script, *, model: str = "scripted/lm", delay: float = 0.0, **kwargs: Any) -> ScriptedLM:
    """Return an LM that answers from a script.

    Args:
        reply: A callable from a `dspy.lm15.Request` to a reply, or a sequence of replies used in order of arrival. A
            reply is text, a mapping (sent as JSON), an exception (raised), a `Line` (cut off), or a whole
            `dspy.lm15.Response`.
        model: The name under which usage is counted; give the roles different names to tell them apart.
        delay: Seconds that each request takes.
        kwargs: Further arguments of `dspy.LM`. Caching and retries are off unless asked for.
    """
    if isinstance(reply, str | Mapping):
        raise ArgumentError(f"reply must be a callable or a sequence; got {reply!r:.80}. Wrap one reply in a list.")
    engine = ScriptedEngine(reply, delay)
    options = {"cache": False, "num_retries": 0, **kwargs}
    return ScriptedLM(model, engine=engine, async_engine=_AsyncEngine(engine), **options)


def text_of(request: Request) -> str:
    """Return all text that the LM would read: the system message, then each message."""
    return "\n\n".join([_opening(request), *(message.text or "" for message in request.messages)])


def role_of(request: Request) -> Role | None:
    """Return the role whose outputs a request asks for, or None. A prompt that quotes their list asks no role."""
    schema, opening = _schema_of(request), _opening(request)
    _, ours, form = opening.rpartition(FORM)
    outputs = _OUTPUTS.search(opening)
    listing = _FORM_FIELD.findall(form) if ours else _LIST_ITEM.findall(outputs[1] if outputs else "")
    names = schema.get("properties", ()) if schema else listing  # in the form of our adapters, or as DSPy's list them
    return next((role for role in ROLES if {*_SIGNATURES[role].output_fields} <= {*names}), None)


def _schema_of(request: Request) -> Mapping[str, Any]:
    response_format: Any = request.config.response_format
    return (response_format or {}).get("schema") or {}


def _opening(request: Request) -> str:
    system = request.system
    return system if isinstance(system, str) else "".join(getattr(part, "text", "") for part in system or ())


def _events(response: Response) -> Iterator[Any]:
    """Yield events, the text in pieces, as a server sends it: a listener does not hear a field that comes whole."""
    for event in cast(Iterator[Any], response_to_events(response)):
        text = getattr(getattr(event, "delta", None), "text", "")
        for at in range(0, len(text), 4):
            yield replace(event, delta=replace(event.delta, text=text[at : at + 4]))
        if not text:
            yield event


def reply_to(request: Request, trial: "Trial") -> ScriptedReply:
    """Return a trial's reply to a request; further fields of a user's own module have the number of the preference."""
    role, schema = role_of(request), _schema_of(request)
    fields = _fields_of(role, trial.reply(role)) if role else {}
    if not isinstance(fields, Mapping):
        return fields
    verdict, defs = _fields_of("judge", trial.reply("judge")), schema.get("$defs", {})
    number = verdict.get("preferred", 0) if isinstance(verdict, Mapping) else 0
    return {**{name: value_of(kind, "", number, defs) for name, kind in schema.get("properties", {}).items()}, **fields}


def _fields_of(role: Role, reply: "Reply | ScriptedReply") -> ScriptedReply:
    """The fields in which an LM gives a reply; for an abstention, those that say nothing. A raw reply as it is."""
    if not isinstance(reply, Reply):
        return reply
    if role == "judge":
        preferred, scores = (reply.preferred, reply.scores) if isinstance(reply, Verdict) else (-1, None)
        assessments = [{**dict.fromkeys(ASPECTS, 0.5), "scalar": score} for score in scores or ()]
        return {"judge_rationale": "", "assessments": assessments, "preferred": preferred}
    if role == "repairer":
        return {"repair_passage": -1, "repaired_answer": reply.answer if isinstance(reply, Repair) else ""}
    derivation = reply if isinstance(reply, Derivation) else Derivation((), "")
    steps = [asdict(step) for step in derivation.steps]
    return {"derivation_steps": steps, "derived_answer": derivation.answer, "consistency_check": derivation.check}


def value_of(schema: Mapping[str, Any], word: str, number: int, defs: Mapping[str, Any]) -> Any:
    """Return a value of an output's declared type, by its JSON schema, made of a word and a number."""
    schema = defs[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if choices := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        return choices[number % len(choices)]
    if several := schema.get("anyOf"):  # an object that may be absent is: it could hold itself
        absent = "$ref" in several[0] and {"type": "null"} in several
        return None if absent else value_of(several[0], word, number, defs)
    if schema.get("type") == "object":
        return {name: value_of(part, word, number, defs) for name, part in schema.get("properties", {}).items()}
    whole = int(word) if word.isdecimal() else number
    whole = min(max(whole, schema.get("minimum", whole)), schema.get("maximum", whole))
    values = {"integer": whole, "number": float(whole), "boolean": number % 2 == 1, "null": None, "array": []}
    values |= {"date": "2000-01-02", "date-time": "2000-01-02T03:04:05", "time": "03:04:05"}
    return values.get(schema.get("format", ""), values.get(schema.get("type", ""), word))
