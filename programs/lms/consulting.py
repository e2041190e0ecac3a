"""One role, asked once: the call, its outcome, and whose fault a failure was.

Only this module decides what is a verdict, an abstention or a failure of the infrastructure:

* An abstention: a reply that cannot be parsed, that was cut or withheld, or that is one of several. A prompt that is
  too long for the LM. A reply that is one whole JSON object was not cut, though the LM may have reached its limit
  after it. The LM could not answer this question, and could not if it were asked again.
* A failure: a call that did not come through. It never counts as a verdict, and is asked again: at once if it is
  transient, else when the run is resumed. It is fatal if it can only repeat itself on every question (no credentials,
  no money, no such model, no such address).
* A bug in a role module is neither: it is raised.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio.to_thread
import dspy
from dspy.utils import BaseCallback
from dspy.utils.exceptions import is_retryable_lm_error

from eldgr_dspy.errors import ArgumentError, ReplyError, brief, result_of
from eldgr_dspy.programs.engines.json_objects import holds_object, is_whole
from eldgr_dspy.programs.engines.strict import STRICT, StrictJSONAdapter, reason_of
from eldgr_dspy.programs.engines.usage import ANY_USAGE
from eldgr_dspy.programs.lms.lms import numeric_temperatures
from eldgr_dspy.programs.lms.rollouts import roomy_stream
from eldgr_dspy.programs.plain_values import UnwritableError, plain
from eldgr_dspy.rule.consultations import OUTPUTS, Abstention
from eldgr_dspy.words import is_role

FAILURES = (dspy.LMError, ConnectionError, TimeoutError)
"""What a call raises if it did not come through."""

FATAL = (
    dspy.LMAuthError,
    dspy.LMBillingError,
    dspy.LMConfigurationError,
    dspy.LMUnsupportedFeatureError,
    dspy.LMUnsupportedModelError,
)
"""Failures that would repeat themselves on every question; `is_fatal` also knows those without a class of their own."""

_NOT_FOUND, _FIRST_REFUSAL = 404, 300
_ENDS = {
    "length": Abstention.of("cut off", "the LM reached its limit of output tokens; give it a larger max_tokens"),
    "content_filter": Abstention.of("withheld", "the server's content filter ended the reply"),
}
"""Ends of an incomplete reply, by DSPy's word for them."""
_BLANK = Abstention.of(
    "cut off",
    "the LM wrote endless white space up to its limit of output tokens, where a larger max_tokens is no help; "
    "raise its repetition penalty, or forbid white space between values in the server's JSON mode",
)
_TOO_LONG = re.compile(r"(?:context|model) (?:size|length|window)", re.IGNORECASE)
_ENDLESS = 16
"""How many characters of white space at the end of a cut reply are endless: more than an indentation has."""
_FIELDS = {"thinking": "reasoning_content", "tool_call": "tool_calls", "refusal": "refusal"}
"""The fields of a message that hold no reply, by the name of the part of a message in lm15."""
_NO_PROVIDER = "LLM Provider NOT provided"  # litellm's words for a model of no known provider, which has no status


@dataclass(frozen=True, slots=True)
class RoleOutput:
    """The outcome of a call that came through: the fields that the role returned, or why it is an abstention.

    Attributes:
        content: The fields as plain JSON values, with `abstained` and perhaps `kind` for an abstention.
        error: The error that made it an abstention, for a caller that wants it raised.
    """

    content: Mapping[str, Any]
    error: Exception | None = None


class FlawedReplyError(ReplyError):
    """A reply came through and cannot be used; `flaw` says why."""

    def __init__(self, flaw: Abstention) -> None:
        super().__init__(f"The LM's reply cannot be used: {flaw.reason}.")
        self.flaw = flaw


class UnwritableReplyError(ReplyError):
    """A role returned a value that no journal can hold."""


_NO_FIELDS = (dspy.AdapterParseError, dspy.LMError, FlawedReplyError)
"""What a call may return in place of fields: an abstention, or a failure."""


def is_failed_call(error: Exception) -> bool:
    """Return whether an error means that a call did not come through, and not that its reply cannot be used."""
    return isinstance(error, FAILURES) and not is_too_long(error) and not is_several_answers(error)


def is_too_long(error: BaseException) -> bool:
    """Return whether a prompt was refused because it is too long; llama.cpp and vLLM say so in words alone."""
    in_words = isinstance(error, dspy.LMInvalidRequestError) and _TOO_LONG.search(str(error)) is not None
    return in_words or isinstance(error, dspy.ContextWindowExceededError)


def is_fatal(error: Exception) -> bool:
    """Return whether a failure would only repeat itself: one of `FATAL`, or no such model, address or provider."""
    absent = isinstance(error, dspy.LMProviderError) and error.status == _NOT_FOUND
    return absent or isinstance(error, FATAL) or (isinstance(error, dspy.LMError) and _NO_PROVIDER in str(error))


def is_transient(error: Exception) -> bool:
    """Return whether a failure may pass: no connection, a busy server, or an answer that breaks the protocol."""
    status = getattr(error, "status", None) if type(error) is dspy.LMProviderError else None
    return (
        (status is not None and status < _FIRST_REFUSAL)
        or is_retryable_lm_error(error)
        or isinstance(error, ConnectionError | TimeoutError)
    )


def is_several_answers(error: Exception) -> bool:
    """Return whether a request was answered with more answers than the one it asked for."""
    return isinstance(error, dspy.LMUnsupportedFeatureError) and "the body carries" in str(error)


def _flaw_of(record: Mapping[str, Any], lm: Any) -> Abstention | None:
    """Return why a reply that came through cannot be used: cut, withheld, or one of several, or None if it can."""
    count = len(record.get("outputs") or ())
    if count > 1 and count > (n := record["kwargs"].get("n") or getattr(lm, "kwargs", {}).get("n") or 1):
        return Abstention.of("several answers", f"{count} where {n} was asked for")
    output = (record.get("outputs") or [""])[0]
    text = str((output.get("text") if isinstance(output, Mapping) else output) or "")
    end: Any = getattr(_first(record["response"]), "finish_reason", None)
    if end == "length" and is_whole(text):
        return None
    is_blank = end == "length" and len(text) - len(text.rstrip()) >= _ENDLESS
    return _BLANK if is_blank else _ENDS.get(end)


def _first(response: Any) -> Any:
    """Return what states why an LM stopped, and its message: of lm15 the response, of LiteLLM the first choice."""
    choices = getattr(response, "choices", None)
    return choices[0] if choices else response


def _elsewhere(response: Any) -> str:
    """Return in which other fields of the message there is JSON, as the end of a reason. Empty for none."""
    message = getattr(_first(response), "message", None)
    fields: list[tuple[str, Any]] = [(name, getattr(message, name, None)) for name in _FIELDS.values()]
    fields += [(_FIELDS.get(part.type, ""), getattr(part, "text", part)) for part in getattr(message, "parts", ())]
    names = dict.fromkeys(
        name for name, value in fields if name and value and (not isinstance(value, str) or holds_object(value))
    )
    where = " and ".join(names)
    return f"; there is JSON in {where}, which is not read: have the server put it in content" if where else ""


class _Last:
    """Why the last reply within one consultation cannot be used. DSPy sees it as a calling module and records calls."""

    def __init__(self) -> None:
        self.flaw: Abstention | None = None
        self._elsewhere = ""

    @property
    def history(self) -> "_Last":
        return self

    def __len__(self) -> int:
        return 0

    def append(self, record: Mapping[str, Any]) -> None:
        self.note(record, getattr(dspy.settings.caller_modules[-1], "lm", None) or dspy.settings.lm)

    def note(self, record: Mapping[str, Any], lm: Any) -> None:
        self.flaw, self._elsewhere = _flaw_of(record, lm), _elsewhere(record["response"])

    def apply_flaw(self, reply: RoleOutput) -> RoleOutput:
        """Return the reply, or the abstention that the flaw makes of it. Its reason names JSON that was not read."""
        if self.flaw is None and not isinstance(reply.error, dspy.AdapterParseError):
            return reply
        why = self.flaw or Abstention(reply.content["abstained"], reply.content["kind"])
        if self._elsewhere:
            why = replace(why, reason=f"{why.reason.removesuffix('.')}{self._elsewhere}")
        return RoleOutput({**reply.content, **why.fields}, reply.error if self.flaw is None else FlawedReplyError(why))


def notice(record: Mapping[str, Any], lm: Any) -> None:
    """Give the current consultation the record of a call that DSPy does not record."""
    for owner in dspy.settings.caller_modules or ():
        if isinstance(owner, _Last):
            owner.note(record, lm)


def ask(module: dspy.Module, inputs: Mapping[str, object], role: str | None = None) -> RoleOutput:
    """Ask a module. Raises one of `FAILURES` if the call did not come through, and whatever the module itself raises.

    If the module plays a `role`, its reply must have one of the role's fields. How a reply ended is read from DSPy's
    record of the call, if there is one.
    """
    last = _Last()
    try:
        with _reading(last), numeric_temperatures(module):
            result = result_of(
                callable_of(module)(**inputs),
                f"The role module {type(module).__name__}",
                "name its async method aforward and await the selector, or give it a forward that is not async",
            )
            reply = last.apply_flaw(_reply_of(module, result))
    except _NO_FIELDS as error:
        return last.apply_flaw(_abstention(error))
    _require_outputs(role, reply)
    return reply


def ask_without_lm(module: dspy.Module, inputs: Mapping[str, object], role: str | None = None) -> RoleOutput:
    """Ask a role that has no LM as `ask` does, without the settings by which an LM's replies are read."""
    reply = _reply_of(module, module(**inputs))
    _require_outputs(role, reply)
    return reply


async def aask(module: dspy.Module, inputs: Mapping[str, object], role: str | None = None) -> RoleOutput:
    """Ask a module as `ask` does, without blocking."""
    last = _Last()
    try:
        async with roomy_stream():
            with _reading(last), numeric_temperatures(module):
                reply = last.apply_flaw(_reply_of(module, await awaitable(module)(**inputs)))
    except _NO_FIELDS as error:
        return last.apply_flaw(_abstention(error))
    _require_outputs(role, reply)
    return reply


class _LastParse(BaseCallback):
    """Remembers the last reply that an adapter was given to read, and the error it raised."""

    def __init__(self) -> None:
        self.adapter, self.reply = "", ""
        self.signature: Any = None
        self.error: BaseException | None = None

    def on_adapter_parse_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        if "signature" in inputs:  # DSPy calls back twice for an inherited method; the first call has no names
            self.adapter, self.reply = type(instance).__name__, inputs["completion"]
            self.signature = inputs["signature"]

    def on_adapter_parse_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        self.error = exception or self.error


@contextmanager
def _reading(last: _Last) -> Iterator[None]:
    """Read replies strictly, or with the adapter that the user has set. An error while reading is a parse error."""
    # A judge that asks others judges their replies one by one; they are not its own.
    callers = [caller for caller in dspy.settings.caller_modules or () if not isinstance(caller, _Last)]
    parse, own = _LastParse(), {"adapter": dspy.settings.adapter or STRICT}
    if not isinstance(own["adapter"], StrictJSONAdapter):
        own = {"callbacks": [*dspy.settings.callbacks, parse]}
    with dspy.context(**own, caller_modules=[*callers, last], **ANY_USAGE):
        try:
            yield
        except Exception as error:  # DSPy's own adapters also raise others, such as a RecursionError for many brackets
            if error is not parse.error or isinstance(error, dspy.AdapterParseError):
                raise
            text = f"{type(error).__name__}: {error}"
            raise dspy.AdapterParseError(parse.adapter, parse.signature, parse.reply, text) from error


def callable_of(module: Any) -> Callable[..., Any]:
    """Return what makes a call of a module: a coroutine for one that has `aforward` alone."""
    has_forward = hasattr(type(module), "forward") or "forward" in vars(module)  # DSPy warns of `module.forward`
    call: Callable[..., Any] = module.acall if hasattr(module, "aforward") and not has_forward else module
    return call


def awaitable(program: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return how a program is awaited: as it says itself, or in a thread if it has no async."""
    dynamic: Any = program
    if isinstance(program, dspy.Module) and hasattr(program, "aforward"):
        acall: Callable[..., Awaitable[Any]] = dynamic.acall
        return acall

    # Not by `dspy.asyncify`: all event loops share its few threads, and calls that wait for one another hold them all.
    async def call(*args: Any, **options: Any) -> Any:
        job, limiter = partial(dynamic, *args, **options), anyio.CapacityLimiter(1)
        result = await anyio.to_thread.run_sync(job, abandon_on_cancel=True, limiter=limiter)
        return await result if inspect.isawaitable(result) else result

    return dynamic if inspect.iscoroutinefunction(program) else call


def _reply_of(module: dspy.Module, result: Any) -> RoleOutput:
    if result is None and isinstance(module, dspy.BestOfN | dspy.Refine):  # none of their attempts could be read
        return RoleOutput(Abstention("unparsable: no attempt could be read", "unreadable").fields)
    if not isinstance(result, dspy.Example | Mapping):
        raise ArgumentError(
            f"The role module {type(module).__name__} returned {brief(repr(result), 80)} "
            f"({type(result).__name__}); expected a dspy.Prediction with the fields of its role, or with "
            "abstained=REASON."
        )
    content: dict[str, Any] = {}
    for name, value in result.items():
        try:
            content[str(name)] = plain(value)
        except UnwritableError as error:
            flaw = Abstention.of("unreadable", f"{brief(name, 40)} holds {error}")
            return RoleOutput(
                flaw.fields, UnwritableReplyError(f"The {type(module).__name__} abstains: {flaw.reason}.")
            )
    return RoleOutput(content)


def _require_outputs(role: str | None, reply: RoleOutput) -> None:
    """Refuse fields if none is the role's: its module uses other names."""
    outputs = OUTPUTS[role] if is_role(role) else ()
    # DSPy makes an empty reply of a response without an answer: an abstention.
    if outputs and reply.content and reply.content.keys().isdisjoint((*outputs, "abstained")):
        names = ", ".join(map(repr, reply.content))
        raise ArgumentError(
            f"The {role} returned no {outputs[0]!r}; it has {brief(names)}. Return {' and '.join(outputs)}, or "
            "abstained=REASON to abstain."
        )


def _abstention(error: Exception) -> RoleOutput:
    """Return the abstention for an error; raise a failure."""
    if isinstance(error, FlawedReplyError):
        why = error.flaw
    elif isinstance(error, dspy.AdapterParseError):
        why = Abstention(f"unparsable: {brief(reason_of(error))}", "unreadable")
    elif is_too_long(error):
        why = Abstention.of("prompt too long", brief(_first_line(error)))
    elif is_several_answers(error):
        why = Abstention.of("several answers", brief(_first_line(error)))
    else:
        raise error
    return RoleOutput(why.fields, error)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].strip()
