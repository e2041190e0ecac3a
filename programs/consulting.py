"""One role, asked once: the call, what became of it, and whose fault it was.

What is a verdict, an abstention or a failure of the infrastructure is decided here and nowhere else:

* An abstention: a reply that cannot be parsed, that was cut or withheld, or that is one of several; a prompt that is
  too long for the LM. The LM could not say anything on this question, and could not if it were asked again.
* A failure: a call that did not come through. It is never a verdict, and asked again: at once where it is transient,
  else when the run goes on. It is fatal where it can only repeat itself on every question (no credentials, no money, no
  such model, no such address).
* A bug in a role module is neither: it is raised.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.utils import BaseCallback
from dspy.utils.exceptions import is_retryable_lm_error

from eldgr_dspy.errors import ArgumentError, ReplyError, brief, settled
from eldgr_dspy.programs.engines.strict import STRICT, reason_of
from eldgr_dspy.programs.plain_values import UnwritableError, plain

FAILURES = (dspy.LMError, ConnectionError, TimeoutError)
"""What a call raises when it did not come through."""

FATAL = (
    dspy.LMAuthError,
    dspy.LMBillingError,
    dspy.LMConfigurationError,
    dspy.LMUnsupportedFeatureError,
    dspy.LMUnsupportedModelError,
)
"""Failures that would only repeat themselves on every question; `is_fatal` knows those that have no class besides."""

_NOT_FOUND, _FIRST_REFUSAL = 404, 300
_ENDS = {
    "length": "cut off: the LM reached its limit of output tokens; give it a larger max_tokens",
    "content_filter": "withheld: the server's content filter ended the reply",
}
"""Ends of a reply that is not whole, by DSPy's word for them, and the reason of the abstention."""
_OUTPUTS = {
    frozenset(("question", "evidence", "candidates")): ("judge", ("preferred",)),
    frozenset(("question", "evidence")): ("repairer", ("repaired_answer",)),
    frozenset(("question",)): ("deriver", ("derivation_steps", "derived_answer")),
}
"""The roles that decide, by what each is told, with the fields that it cannot do without."""
_NO_PROVIDER = "LLM Provider NOT provided"  # litellm's words for a model of nobody's, which has no status of its own


@dataclass(frozen=True, slots=True)
class Said:
    """What came of a call that came through: the fields that the role returned, or why it is an abstention.

    Attributes:
        content: The fields as plain JSON values; `{"abstained": reason}` where the role says that it has nothing to say
            or where its reply could not be parsed.
        error: The error that made it an abstention, for a caller that wants it raised.
    """

    content: Mapping[str, Any]
    error: Exception | None = None


class FlawedReplyError(ReplyError):
    """A reply came through and is none; `flaw` says why."""

    def __init__(self, flaw: str) -> None:
        super().__init__(f"The LM's reply is none: {flaw}.")
        self.flaw = flaw


class UnwritableReplyError(ReplyError):
    """A role returned a value that no journal can hold, in place of a reply."""


_UNSAID = (dspy.AdapterParseError, dspy.LMError, FlawedReplyError)
"""What may come of a call in place of fields: an abstention, or a failure."""


def is_fatal(error: Exception) -> bool:
    """Whether a failure would only repeat itself: one of `FATAL`, or no such model, address or provider."""
    unknown = isinstance(error, dspy.LMProviderError) and error.status == _NOT_FOUND
    return unknown or isinstance(error, FATAL) or (isinstance(error, dspy.LMError) and _NO_PROVIDER in str(error))


def is_transient(error: Exception) -> bool:
    """Whether a failure may pass: no connection, a busy server, or an answer that is not what the protocol says."""
    status = getattr(error, "status", None) if type(error) is dspy.LMProviderError else None
    return (
        (status is not None and status < _FIRST_REFUSAL)
        or is_retryable_lm_error(error)
        or isinstance(error, ConnectionError | TimeoutError)
    )


def is_several_answers(error: Exception) -> bool:
    """Whether a request was answered, and with more than the one answer that it asked for."""
    return isinstance(error, dspy.LMUnsupportedFeatureError) and "the body carries" in str(error)


def _flaw_of(record: Mapping[str, Any], lm: Any) -> str | None:
    """Why a reply that came through is none: cut, withheld, or one of several; None where it is one."""
    said = len(record.get("outputs") or ())
    if said > 1 and said > (wanted := record["kwargs"].get("n") or getattr(lm, "kwargs", {}).get("n") or 1):
        return f"several answers: {said} where {wanted} was asked for"
    return _ENDS.get(_end_of(record["response"]))


def _end_of(response: Any) -> Any:
    """Why an LM stopped: lm15 says so of a response, LiteLLM of its first choice."""
    choices = getattr(response, "choices", None)
    return getattr(choices[0] if choices else response, "finish_reason", None)


class _Last:
    """Why the last reply within one consultation is none. It stands among DSPy's calling modules, which get records."""

    def __init__(self) -> None:
        self.flaw: str | None = None

    @property
    def history(self) -> "_Last":
        return self

    def __len__(self) -> int:
        return 0

    def append(self, record: Mapping[str, Any]) -> None:
        self.take(record, getattr(dspy.settings.caller_modules[-1], "lm", None) or dspy.settings.lm)

    def take(self, record: Mapping[str, Any], lm: Any) -> None:
        self.flaw = _flaw_of(record, lm)

    def judged(self, said: Said) -> Said:
        """What was said, or the abstention that it is on account of the flaw."""
        if self.flaw is None:
            return said
        return Said({**said.content, "abstained": self.flaw}, FlawedReplyError(self.flaw))


def notice(record: Mapping[str, Any], lm: Any) -> None:
    """Give the consultation that is under way the record of a call that DSPy is not given."""
    for owner in dspy.settings.caller_modules or ():
        if isinstance(owner, _Last):
            owner.take(record, lm)


def ask(module: dspy.Module, inputs: Mapping[str, object]) -> Said:
    """Ask a role. Raises one of `FAILURES` where the call did not come through, and what the module itself raises.

    How a reply ended is read from DSPy's record of the call. Where a caller has switched the records off, a reply that
    was cut is one that cannot be parsed, unless what came of it is whole.
    """
    last = _Last()
    try:
        with _reading(last):
            given = settled(
                module(**inputs),
                f"The role module {type(module).__name__}",
                "name its async method aforward and await the selector, or give it a forward that is not async",
            )
            said = last.judged(_said(module, given))
    except _UNSAID as error:
        return last.judged(_abstention(error))
    _require_outputs(inputs, said)
    return said


async def aask(module: dspy.Module, inputs: Mapping[str, object]) -> Said:
    """Ask a role as `ask` does, without blocking."""
    last = _Last()
    try:
        with _reading(last):
            said = last.judged(_said(module, await awaitable(module)(**inputs)))
    except _UNSAID as error:
        return last.judged(_abstention(error))
    _require_outputs(inputs, said)
    return said


class _Unread(BaseCallback):
    """Remembers the last reply that an adapter was given to read, and what it raised over one."""

    def __init__(self) -> None:
        self.adapter, self.reply = "", ""
        self.signature: Any = None
        self.error: BaseException | None = None

    def on_adapter_parse_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.adapter, self.signature, self.reply = type(instance).__name__, inputs["signature"], inputs["completion"]

    def on_adapter_parse_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        self.error = exception or self.error


@contextmanager
def _reading(last: _Last) -> Iterator[None]:
    """Read replies strictly, or with the adapter that the user has set; what that raises over one is a parse error.

    DSPy's own adapters let other errors through than the one that they document, such as `RecursionError` for a reply
    of many brackets.
    """
    # A judge that asks others judges their replies one by one, and none of them is its own.
    callers = [one for one in dspy.settings.caller_modules or () if not isinstance(one, _Last)]
    if dspy.settings.adapter is None:
        with dspy.context(adapter=STRICT, caller_modules=[*callers, last]):
            yield
        return
    unread = _Unread()
    with dspy.context(callbacks=[*dspy.settings.callbacks, unread], caller_modules=[*callers, last]):
        try:
            yield
        except Exception as error:
            if error is not unread.error or isinstance(error, dspy.AdapterParseError):
                raise
            said = f"{type(error).__name__}: {error}"
            raise dspy.AdapterParseError(unread.adapter, unread.signature, unread.reply, said) from error


def knows_async(program: object) -> bool:
    """Whether a program is a module that can be awaited as it is, without a thread."""
    return isinstance(program, dspy.Module) and hasattr(program, "aforward")


def awaitable(program: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return how a program is awaited: as it says itself, or in a thread where it knows no async."""
    found: Any = program
    if knows_async(program):
        known: Callable[..., Awaitable[Any]] = found.acall
        return known
    threaded = dspy.asyncify(found)

    async def call(*args: Any, **options: Any) -> Any:
        said = await threaded(*args, **options)
        return await said if inspect.isawaitable(said) else said

    return found if inspect.iscoroutinefunction(program) else call


def _said(module: dspy.Module, returned: Any) -> Said:
    if returned is None and type(module).__module__.startswith("dspy."):  # as of BestOfN and Refine
        return Said({"abstained": "unparsable: no attempt could be read"})
    if not isinstance(returned, dspy.Example | Mapping):
        raise ArgumentError(
            f"The role module {type(module).__name__} returned {brief(repr(returned), 80)} "
            f"({type(returned).__name__}); expected a dspy.Prediction with the fields of its role, or with "
            "abstained=REASON."
        )
    content: dict[str, Any] = {}
    for name, value in returned.items():
        try:
            content[str(name)] = plain(value)
        except UnwritableError as error:
            flaw = f"unreadable: {brief(name, 40)} holds {error}"
            return Said({"abstained": flaw}, UnwritableReplyError(f"The {type(module).__name__} abstains: {flaw}."))
    return Said(content)


def _require_outputs(inputs: Mapping[str, object], said: Said) -> None:
    """Refuse fields of which none is the role's: its module gives them other names.

    A reply without any field is what DSPy makes of a response without an answer, hence an abstention.

    Raises:
        ArgumentError: naming the role, the field that it lacks and those that it has.
    """
    role, outputs = _OUTPUTS.get(frozenset(inputs), ("", ()))
    if outputs and said.content and said.content.keys().isdisjoint((*outputs, "abstained")):
        found = ", ".join(map(repr, said.content))
        raise ArgumentError(
            f"The {role} returned no {outputs[0]!r}; it has {brief(found)}. Return {' and '.join(outputs)}, or "
            "abstained=REASON where there is nothing to say."
        )


def _abstention(error: Exception) -> Said:
    """Return the abstention that an error is; raise one that is a failure."""
    if isinstance(error, FlawedReplyError):
        reason = error.flaw
    elif isinstance(error, dspy.AdapterParseError):
        reason = f"unparsable: {brief(reason_of(error))}"
    elif isinstance(error, dspy.ContextWindowExceededError):
        reason = f"prompt too long: {brief(_first_line(error))}"
    elif is_several_answers(error):
        reason = f"several answers: {brief(_first_line(error))}"
    else:
        raise error
    return Said({"abstained": reason}, error)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].strip()
