"""Check step by step whether a model can be the judge.

The judge is asked one easy question twice, as a `Selector` asks it, and the longest question of a pool. That decides.
The model is also asked under a schema that demands a word which the prompt does not have: a server that does not
constrain its output cannot give it.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import dspy
import httpx
from dspy.lm15 import Config, DataPart, Message, Request, Response, TextPart, ThinkingPart
from ollama import Client, ShowResponse

from eldgr_dspy.errors import brief
from eldgr_dspy.pools import Pool
from eldgr_dspy.programs.calls import Usage
from eldgr_dspy.programs.engines.json_objects import read_object
from eldgr_dspy.programs.engines.ollama import FAILURES as OF_OLLAMA
from eldgr_dspy.programs.engines.ollama import OllamaLM, fault_of
from eldgr_dspy.programs.engines.reply_forms import refuses_schema
from eldgr_dspy.programs.engines.strict import STRICT, ReplyFormat
from eldgr_dspy.programs.lms.consulting import FAILURES, RoleOutput, ask
from eldgr_dspy.programs.lms.credentials import remember_lm
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.redaction import remember_environment
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import inputs_of
from eldgr_dspy.rule.consultations import Abstention, Verdict
from eldgr_dspy.rule.replies import read_reply
from eldgr_dspy.showing import display_text
from eldgr_dspy.signatures import JudgeCandidates

_ASKED = {
    "question": "What is the capital of France?",
    "evidence": ["Berlin is the capital of Germany.", "Paris is the capital of France."],
    "candidates": ["Berlin", "Paris"],
}
_RIGHT = 1
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
_SLACK = 32  # tokens that a template may add to a reply
_SENDS: dict[ReplyFormat, str] = {
    "json_schema": "sends this model a JSON schema with each question",
    "json_object": "asks this model for JSON, without a schema",
    "": "sends this model no schema and no response_format",
}
"""What a `Selector` does, by the format in which it asks for a reply."""

Pull = Callable[[Client, str, float], None]
"""Makes a server pull a model; raises `TimeoutError` after so many seconds without progress."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check, as a sentence; if it did not pass, with what to do."""

    check: str
    ok: bool
    text: str


def diagnose(lm: dspy.LM, seconds: float, pull: Pull | None = None, pool: Pool | None = None) -> Iterator[Finding]:
    """Yield the findings about an LM, in order, up to the first failure that prevents all further checks.

    Each question to the server may take some `seconds`. The longest question of a `pool` is asked too.
    """
    remember_environment()
    remember_lm(lm)
    findings = _Ollama(lm, seconds).findings(pull, pool) if isinstance(lm, OllamaLM) else _answers(lm, seconds, pool)
    for finding in findings:
        yield replace(finding, text=display_text(finding.text))


class _Ollama:
    """The checks that only an Ollama server allows."""

    def __init__(self, lm: OllamaLM, seconds: float) -> None:
        options = lm.kwargs["metadata"]
        self.lm, self.seconds = lm, seconds
        self.model, self.host, self.num_ctx = lm.model.partition("/")[2], options["host"], options["num_ctx"]

    def findings(self, pull: Pull | None, pool: Pool | None) -> Iterator[Finding]:
        with Client(self.host, follow_redirects=False, timeout=self.seconds) as client:
            try:
                names = [_with_tag(entry.model) for entry in client.list().models if entry.model]
            except OF_OLLAMA as error:
                yield self._failed("server", error)
                return
            yield Finding("server", True, f"Ollama answers at {self.host}.")
            try:
                if pull is not None and _with_tag(self.model) not in names:
                    pull(client, self.model, self.seconds)
                details = client.show(self.model)
            except OF_OLLAMA as error:
                yield self._failed("model", error)
                return
        sizes = [details.details.parameter_size, details.details.quantization_level] if details.details else []
        yield Finding("model", True, f"{', '.join([self.model, *filter(None, sizes)])} is there.")
        yield self._window(details)
        yield from _answers(self.lm, self.seconds, pool)

    def _window(self, details: ShowResponse) -> Finding:
        sizes = [size for name, size in (details.modelinfo or {}).items() if name.endswith(".context_length")]
        size = next((size for size in sizes if isinstance(size, int)), None)
        if size is not None and size < self.num_ctx:
            text = f"The model reads at most {size} tokens, fewer than num_ctx={self.num_ctx}; give --num-ctx {size}."
            return Finding("context", False, text)
        most = "does not say how many it could have" if size is None else f"could have {size}"
        return Finding("context", True, f"It asks for {self.num_ctx} tokens; the model {most}.")

    def _failed(self, check: str, error: Exception) -> Finding:
        if _ran_out(error):
            late = f"{self.host} made no progress for {self.seconds:g} s; a larger --timeout waits longer."
            again = " The same command continues a pull." if check == "model" else ""
            return Finding(check, False, late + again)
        fault = fault_of(error, self.model, self.host, self.seconds)
        return Finding(check, False, fault.message.partition("\n")[0])


def _answers(lm: dspy.LM, seconds: float, pool: Pool | None) -> Iterator[Finding]:
    """The results of three calls, the first two made as a `Selector` makes them; and of one about a pool's question."""
    judge = Judge()
    judge.set_lm(lm)
    try:
        _, waited, _ = _meter(judge, _ASKED)
        reply, took, tokens = _meter(judge, _ASKED)
        form = STRICT.reply_format(lm, JudgeCandidates)  # afterwards: a server may have refused a schema
    except FAILURES as error:
        yield Finding("call", False, f"{_cause(error, seconds)}.")
        return
    response: Any = None
    try:
        config = Config(response_format={"type": "json_schema", "name": "verdict", "schema": _SCHEMA})
        response = lm(Request(model=lm.model, messages=(Message.user(_PROMPT),), config=config))
        result = f": {_obeys(response)}"
    except FAILURES as error:
        result = f", and failed: {_cause(error, seconds)}"
    reads = f"The Selector {_SENDS[form]}, and abstains if a reply is not exactly as asked."
    yield Finding("structured output", True, f"A JSON schema was tried{result}. {reads}")
    if refuses_schema(lm):
        without = "It is asked without one from its second call on; --structured off spares the first refusal."
        yield Finding("schema", True, f"The server refuses the JSON schema of the judge's reply. {without}")
    yield _verdict(reply, form)
    if isinstance(lm, OllamaLM) and response is not None:
        yield _thinking(response, asked_for=bool(lm.kwargs["metadata"]["think"]))
        served, model = response.model, lm.model.partition("/")[2]
        same = _with_tag(served) == _with_tag(model)
        other = f", but {model} was asked; check which model this address serves"
        yield Finding("model served", same, f"{served} answers{'' if same else other}.")
    yield Finding("speed", True, f"{took:.1f} seconds a call and {tokens}; the first took {waited:.1f}.")
    if pool is not None:
        yield _longest(judge, seconds, pool)


def _longest(judge: Judge, seconds: float, pool: Pool) -> Finding:
    def inputs(case: Case) -> Mapping[str, object]:
        return inputs_of(case, "judge", {}, judge)

    case = max((Case(row.to_question()) for row in pool.rows()), key=lambda one: len(str(inputs(one))))
    question = f"The longest question of {pool.name}, {brief(repr(case.question.text), 80)}"
    try:
        output, took, tokens = _meter(judge, inputs(case))
    except FAILURES as error:
        return Finding("your question", False, f"{question}, failed: {_cause(error, seconds)}.")
    reply = read_reply("judge", output.content, case.question.answers, len(case.question.passages))
    if isinstance(reply, Abstention) and reply.unusable:
        return Finding("your question", False, f"{question}: the Selector would abstain: {reply.reason}")
    return Finding("your question", True, f"{question}, took {took:.1f} seconds and {tokens}.")


def _meter(judge: Judge, inputs: Mapping[str, object]) -> tuple[RoleOutput, float, str]:
    """Return the outcome of a call, its seconds, and its tokens as a message has them."""
    began, usage = time.monotonic(), Usage()
    with dspy.context(usage_tracker=usage):
        reply = ask(judge, inputs, "judge")
    took, (prompt, completion) = time.monotonic() - began, map(usage.total, ("prompt_tokens", "completion_tokens"))
    complete = prompt is not None and completion is not None
    return reply, took, f"{prompt:,} tokens read, {completion:,} written" if complete else "an unknown number of tokens"


def _cause(error: Exception, seconds: float) -> str:
    """Return what went wrong in the words of the command. The client's own words name a Python argument."""
    if _ran_out(error):
        return f"The model had not answered in full after {seconds:g} s; use a larger --timeout to wait longer"
    message = error.message if isinstance(error, dspy.LMError) else str(error)
    return brief(message.partition("\n")[0]).removesuffix(".")


def _ran_out(error: BaseException | None) -> bool:
    """Return whether a call ran out of time; connecting has fewer seconds, which no option of the command sets."""
    if error is None or type(error).__name__ == "ConnectTimeout":
        return False
    return isinstance(error, dspy.LMTimeoutError | TimeoutError | httpx.TimeoutException) or _ran_out(error.__cause__)


def _obeys(response: Response) -> str:
    """Return whether a server held its model to the schema, the only place that has the seal."""
    text = _text_of(response)
    try:
        reply = read_object(text)
    except ValueError as error:
        reply = {"unread": str(error)}
    if reply.keys() == {"seal", "preferred"} and reply["seal"] == _SEAL and reply["preferred"] in (0, 1):
        return "the reply is the one JSON object that it allows"
    return f"the server accepts it but does not hold the model to it, which wrote {brief(repr(text), 120)}"


def _verdict(output: RoleOutput, form: ReplyFormat) -> Finding:
    reply = read_reply("judge", output.content, _ASKED["candidates"], len(_ASKED["evidence"]))
    if isinstance(reply, Abstention):
        other = ", or a server that holds it to a JSON schema" if form == "json_schema" else ""
        advice = f" Use another model as judge{other}." if reply.kind == "unreadable" else ""
        return Finding("verdict", False, f"The Selector would abstain: {reply.reason.removesuffix('.')}.{advice}")
    right = isinstance(reply, Verdict) and reply.preferred == _RIGHT
    preferred = "Paris as the capital of France." if right else "Berlin as the capital of France; use another as judge."
    return Finding("verdict", right, f"The model prefers {preferred}")


def _text_of(response: Response) -> str:
    """Return the text of a reply; DSPy's own engine has already read some of it."""
    parts = [part for part in response.message.parts if isinstance(part, DataPart | TextPart)]
    return "".join(json.dumps(part.value) if isinstance(part, DataPart) else part.text for part in parts)


def _thinking(response: Response, *, asked_for: bool) -> Finding:
    thoughts = "".join(part.text for part in response.message.parts if isinstance(part, ThinkingPart))
    hidden = (response.usage.output_tokens or 0) > len(_text_of(response).encode()) + len(thoughts.encode()) + _SLACK
    if asked_for or not (thoughts or hidden):
        return Finding("thinking", True, "It is on, as requested." if asked_for else "It is off.")
    amount = f"{len(thoughts)} characters" if thoughts else f"{response.usage.output_tokens} tokens, most not shown,"
    text = f"It cannot be turned off: {amount} were written before the reply. They are kept out of it, but take time;"
    return Finding("thinking", True, f"{text} a model or an Ollama that can turn it off saves that time.")


def _with_tag(model: str) -> str:
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


def as_json(findings: list[Finding], model: str) -> str:
    """Return the findings as a JSON object."""
    rows = list(map(asdict, findings))
    return json.dumps({"judge": model, "ok": all(finding.ok for finding in findings), "findings": rows}, indent=2)
