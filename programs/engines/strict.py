"""A JSON adapter that reads a reply exactly as written, or rejects it.

`dspy.JSONAdapter` repairs what it reads, and repair can make up a verdict: a draft inside a thinking block, a
truncated span, the last of two equal keys or `true` for 1 all pass there. Here a reply is exactly one JSON object of
exactly the signature's fields and types; everything else is a parse error with its reason. Meaning is not checked here:
`eldgr_dspy.rule.replies` checks ranges and membership.

One call is one request, since no LM is asked again after a parse error; but a server that refuses a JSON schema is.
"""

import inspect
import json
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Annotated, Any, Literal, TypeAlias, get_origin
from weakref import WeakKeyDictionary

import dspy
from dspy.adapters.base import Adapter
from pydantic import FailFast, TypeAdapter, ValidationError

from eldgr_dspy.programs.engines.json_objects import UnreadableError, read_object
from eldgr_dspy.programs.engines.reply_forms import (
    REFUSALS,
    counts_of,
    is_on_trial,
    lengths_of,
    limit,
    reply_form,
    schema_abilities,
    without_schema,
)
from eldgr_dspy.redaction import redact

ReplyFormat: TypeAlias = Literal["json_schema", "json_object", ""]
"""What a request says about the form of its reply, apart from its prompt."""

HINTS = frozenset({"assessments", "repair_passage", "derivation_steps", "derived_answer"})
"""The fields in which a model may write another type, as a number for a derived answer: `eldgr_dspy.rule.replies`
checks them, and remarks on what it cannot use. No rule needs the first two."""

# Derived from a signature's class alone, so shared by all adapters; dropped with the signature.
_CACHE: WeakKeyDictionary[type, dict[Hashable, Any]] = WeakKeyDictionary()
_ENCODER = json.JSONEncoder(ensure_ascii=False)


class ReplyRejectedError(dspy.AdapterParseError):
    """A reply that was rejected. `reason` is one sentence that says why; `lm_response` is the reply as it came."""

    def __init__(self, signature: Any, lm_response: str, reason: str) -> None:
        # No `parsed_result`: DSPy's trace capture (and so GEPA) divides two lists by each other if there is one.
        super().__init__("StrictJSONAdapter", signature, lm_response, message=reason)
        self.reason = reason


class StrictJSONAdapter(dspy.JSONAdapter):
    """`dspy.JSONAdapter` with strict reading.

    A reply may start with one closed thinking block and may be in one fenced code block; the rest is one JSON object.
    Rejected, with `ReplyRejectedError`: an unclosed, orphan or nested thinking tag, text around the object, a second
    object, the same key twice, a missing or an additional field, NaN, Infinity, a number too large for a float, a
    boolean or a string instead of a number, a number instead of a string, a lone surrogate, and nesting too deep to
    read. Every output field must be there, even one with a default.

    DSPy's stream listeners know its own adapters by name and refuse this one; see `StrictStreamListener`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # JSONAdapter never falls back today; this forbids it, should that change.
        self.use_json_adapter_fallback = False

    def format(self, signature: Any, demos: Any, inputs: Any) -> Any:
        """Return the messages of a request, as `dspy.JSONAdapter` does."""
        # DSPy announces a method to its callbacks once for every class that inherits it: two spans there, one here.
        return Adapter.format(self, signature, demos, inputs)

    def format_system_message(self, signature: Any) -> str:
        """Return the instructions and the form of a reply, in about a third of the tokens of `dspy.JSONAdapter`."""
        key = ("system", type(self), signature.__doc__)  # its instructions, as they were written
        text: str = _once(
            signature, key, lambda: f"{inspect.cleandoc(signature.instructions)}\n\n{reply_form(signature)}"
        )
        return text

    def format_user_message_content(
        self, signature: Any, inputs: Any, prefix: str = "", suffix: str = "", main_request: bool = False
    ) -> str:
        """Return the user's message, as `dspy.JSONAdapter` does; plain texts without a serializer built for each."""
        fields = [(name, field, inputs[name]) for name, field in signature.input_fields.items() if name in inputs]
        if not all(_is_text(value) or _is_texts(field, value) for _, field, value in fields):
            return str(super().format_user_message_content(signature, inputs, prefix, suffix, main_request))
        texts = [(name, value if _is_text(value) else _ENCODER.encode(value)) for name, _, value in fields]
        blocks = [f"[[ ## {name} ## ]]\n{text}" for name, text in texts]
        requirements = [self.user_message_output_requirements(signature)] if main_request else []
        return "\n\n".join([prefix, *blocks, *requirements, suffix]).strip()

    def user_message_output_requirements(self, signature: Any) -> str:
        """Return the reminder of the output fields."""
        return f"Reply with one JSON object: {', '.join(signature.output_fields)}."

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        """Return the fields of a reply, typed as the signature says; raise `ReplyRejectedError` for anything else."""
        try:
            return self._fields(signature, self._read(redact(completion)))  # here, since a refusal quotes parts of it
        except UnreadableError as refusal:
            raise ReplyRejectedError(signature, completion, str(refusal)) from refusal

    def _read(self, reply: str) -> dict[str, Any]:
        return read_object(reply)

    def _fields(self, signature: Any, reply: dict[str, Any]) -> dict[str, Any]:
        """Return the reply's fields in the signature's order and types, or refuse."""
        fields = signature.output_fields
        if missing := [name for name in fields if name not in reply]:
            raise UnreadableError(f"The reply lacks {', '.join(missing)}.")
        if further := [name for name in reply if name not in fields]:
            raise UnreadableError(f"The reply has a field that was not asked for: {further[0]!r:.80}.")
        return {name: self._field(signature, name, field.annotation, reply[name]) for name, field in fields.items()}

    def _field(self, signature: Any, name: str, annotation: Any, raw: Any) -> Any:
        try:
            return typed_value(signature, name, annotation, raw)
        except UnreadableError:
            if name not in HINTS:
                raise
            return typed_value(signature, name, Any, raw)  # which is still refused if it nests too deeply

    def _call_preprocess(self, lm: Any, lm_kwargs: dict[str, Any], signature: Any, inputs: Any) -> Any:
        form, limits = lm_kwargs.get("response_format"), counts_of(signature, inputs) + lengths_of(signature, lm)
        if isinstance(form, type) and limits:
            lm_kwargs["response_format"] = _once(signature, ("limited", form, limits), lambda: limit(form, limits))
        return super()._call_preprocess(lm, lm_kwargs, signature, inputs)

    def _call_postprocess(
        self, processed_signature: Any, original_signature: Any, outputs: Any, lm: Any, lm_kwargs: Any
    ) -> Any:
        # DSPy makes an empty prediction of a response without any answer, and refuses an empty answer.
        return super()._call_postprocess(processed_signature, original_signature, outputs or [""], lm, lm_kwargs)

    def __call__(self, lm: Any, lm_kwargs: dict[str, Any], signature: Any, demos: Any, inputs: Any) -> Any:
        """Ask once; a second time without a schema, if the server refuses the one that it was sent on trial."""
        on_trial = is_on_trial(lm)  # before the request: another one may be refused while this one is under way
        try:
            return super().__call__(lm, dict(lm_kwargs), signature, demos, inputs)
        except REFUSALS as error:
            with without_schema(lm, error, on_trial):
                return super().__call__(lm, lm_kwargs, signature, demos, inputs)

    async def acall(self, lm: Any, lm_kwargs: dict[str, Any], signature: Any, demos: Any, inputs: Any) -> Any:
        """Do the same as `__call__`, without blocking."""
        on_trial = is_on_trial(lm)
        try:
            return await super().acall(lm, dict(lm_kwargs), signature, demos, inputs)
        except REFUSALS as error:
            with without_schema(lm, error, on_trial):
                return await super().acall(lm, lm_kwargs, signature, demos, inputs)

    def _prepare_response_format(self, lm: Any, lm_kwargs: dict[str, Any], signature: Any) -> None:
        # A schema depends on the signature and on these three answers; JSONAdapter rebuilds it for every request.
        able = schema_abilities(lm)
        key = ("format", self.use_native_function_calling, *able)
        lm_kwargs.update(_once(signature, key, lambda: self._response_format(able, signature)))

    def reply_format(self, lm: Any, signature: Any) -> ReplyFormat:
        """Return the format that a request asks for in addition to its prompt; empty for none."""
        options: dict[str, Any] = {}
        self._prepare_response_format(lm, options, signature)
        if "response_format" not in options:
            return ""
        return "json_object" if options["response_format"] == {"type": "json_object"} else "json_schema"

    def _response_format(self, able: tuple[bool, bool], signature: Any) -> dict[str, Any]:
        options: dict[str, Any] = {}
        lm = SimpleNamespace(
            supported_params={"response_format"} if able[0] else set(), supports_response_schema=able[1]
        )
        super()._prepare_response_format(lm, options, signature)
        return options


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_texts(field: Any, value: Any) -> bool:
    """Return whether a field's value is a list of texts shown as JSON; DSPy numbers the items of a text field."""
    return type(value) is list and field.annotation is not str and all(map(_is_text, value))


def reason_of(error: dspy.AdapterParseError) -> str:
    """Return why a reply was rejected, in a sentence: the first line of what any adapter says."""
    return str(error.reason if isinstance(error, ReplyRejectedError) else error).partition("\n")[0].strip()


def typed_value(signature: Any, name: str, annotation: Any, raw: Any) -> Any:
    """Return one field's value in its type, by Pydantic's strict JSON rules: only int is converted, to float."""
    read = _once(signature, ("type", name, annotation is Any), lambda: _type_adapter(annotation))
    try:
        value = read.validate_json(json.dumps(raw), strict=True)
    except (ValidationError, RecursionError) as error:
        raise UnreadableError(f"The reply's {name} is not as asked: {_complaint(error)}.") from error
    # Pydantic accepts true for a Literal[1] all the same.
    if (booleans := _booleans(raw)) and booleans > _booleans(read.dump_python(value, mode="json")):
        raise UnreadableError(f"The reply's {name} holds a boolean where a number is expected.")
    return value


def _type_adapter(annotation: Any) -> TypeAdapter[Any]:
    """Return a type's adapter. In a list it stops at the first fault: one is reported, and thousands take long."""
    special_form: Any = Annotated  # for pyright: its argument is known only now
    return TypeAdapter(special_form[annotation, FailFast()] if get_origin(annotation) is list else annotation)


def _complaint(error: ValidationError | RecursionError) -> str:
    first = None if isinstance(error, RecursionError) else error.errors(include_url=False, include_context=False)[0]
    if first is None or first["type"] == "json_invalid":
        return "it nests too deeply, or holds half of a surrogate pair"
    place = ".".join(map(str, first["loc"]))
    return f"{place!r:.80}: {first['msg']}" if place else first["msg"]


def _booleans(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_booleans, value.values()))
    return sum(map(_booleans, value)) if isinstance(value, list) else isinstance(value, bool)


def _once(signature: Any, key: Hashable, make: Callable[[], Any]) -> Any:
    cache = _CACHE.setdefault(signature, {})
    if key not in cache:
        cache[key] = make()
    return cache[key]


STRICT = StrictJSONAdapter()
"""The one instance that parses the roles' replies, unless a user has set an adapter."""


def strict_parsing() -> AbstractContextManager[None]:
    """Parse replies strictly inside the block, unless the user has set an adapter of their own."""
    return dspy.context(adapter=STRICT) if dspy.settings.adapter is None else nullcontext()


class StrictStreamListener(dspy.streaming.StreamListener):
    """A stream listener for a field of a role, with the arguments of `dspy.streaming.StreamListener`.

    DSPy's own listener reads the stream with the adapter of the settings, and hears nothing if the adapter was set
    inside the program. This one listens with the adapter that parses the roles' replies: the user's own if one is set,
    else the strict one.

        listener = StrictStreamListener("judge_rationale", predict=select.judge.predict)
        stream = dspy.streamify(select, stream_listeners=[listener])

    It hears the field as the model writes it, in pieces. Under a JSON adapter the pieces are JSON: a text has its
    quotes and escapes, and the last piece may run into the next field, so `json.JSONDecoder().raw_decode` reads the
    value of all of them. The prediction comes last.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in ("StrictJSONAdapter", "LenientJSONAdapter"):
            self.adapter_identifiers[name] = self.adapter_identifiers["JSONAdapter"]

    def receive(self, chunk: Any) -> Any:
        """Return a piece of the field if the chunk completes one, else None."""
        with strict_parsing():
            return super().receive(chunk)

    def finalize(self) -> Any:
        """Return the rest of the field at the end of the stream, else None."""
        with strict_parsing():
            return super().finalize()
