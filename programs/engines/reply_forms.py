"""The form of a reply: how a prompt describes it, and whether a request carries a JSON schema of it as well."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dspy
from pydantic import BaseModel, TypeAdapter, create_model

FORM = "Reply with one JSON object and nothing else:\n"
"""What stands before the form of a reply, at the end of the system message."""

_ITEMS = {"passed": "checks"} | dict.fromkeys(("assessments", "preferred", "better"), "candidates")
"""The input whose items an output lists or numbers; `..._scores` lists steps."""

_LONGEST_REASON = 600  # characters, by the schema; those of a usable reply have 148 (median)
_REFUSING = set[tuple[Any, Any] | None]()
"""The servers, with their models, that refused a JSON schema: each is asked without from then on, in this process."""
REFUSALS = (dspy.LMInvalidRequestError, dspy.LMServerError)  # by which a server may refuse a schema
_ABOUT_SCHEMA = re.compile(r"response_?format|schema|grammar|structured", re.IGNORECASE)


def reply_form(signature: Any) -> str:
    """Return what a reply looks like: its fields in order, each with its type and its description, if it has one."""
    fields = []
    for name, field in signature.output_fields.items():
        form, meaning = _form(TypeAdapter(field.annotation).json_schema()), field.json_schema_extra["desc"]
        fields.append(f'"{name}": {form}' + ("" if meaning == f"${{{name}}}" else f" ({meaning})"))
    return f"{FORM}{{\n" + ",\n".join(fields) + "\n}"


def _form(schema: Mapping[str, Any], outer: Mapping[str, Any] | None = None) -> str:
    """Return a JSON schema as a person would write it: `[[integer 0-10, 8 of them], ...]`."""
    definitions: Mapping[str, Any] = schema.get("$defs", {}) if outer is None else outer
    if "$ref" in schema:
        return _form(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return " or ".join(_form(part, definitions) for part in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(map(json.dumps, schema["enum"]))
    if schema.get("type") == "array":
        number = f"{schema['minItems']} of them" if schema.get("minItems") == schema.get("maxItems", "") else "..."
        return f"[{_form(schema['items'], definitions)}, {number}]"
    if schema.get("type") == "object":
        inner = (f'"{name}": {_form(part, definitions)}' for name, part in schema.get("properties", {}).items())
        return "{" + ", ".join(inner) + "}"
    bounds = f" {schema['minimum']:g} to {schema['maximum']:g}" if {"minimum", "maximum"} <= schema.keys() else ""
    return f"{schema.get('type', 'value')}{bounds}"


def counts_of(signature: Any, inputs: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Return the outputs that list or number the items of an input, each with how many items there are."""
    of = {name: _ITEMS.get(name, "steps" if name.endswith("_scores") else "") for name in signature.output_fields}
    return tuple((name, len(inputs[its])) for name, its in of.items() if isinstance(inputs.get(its), list))


def lengths_of(signature: Any, lm: Any) -> tuple[tuple[str, int], ...]:
    """Return the reasons of a reply, each with its most characters; providers refuse a schema that has them."""
    outputs = signature.output_fields.items() if _server(lm) else ()
    reasons = (name for name, field in outputs if name.endswith("_rationale") and field.annotation is str)
    return tuple((name, _LONGEST_REASON) for name in reasons)


def limit(form: type[BaseModel], limits: tuple[tuple[str, int], ...]) -> type[BaseModel]:
    """Return a response format whose lists have a row for each item, and whose numbers and reasons have limits."""
    schema = form.model_json_schema()
    properties = {**schema["properties"]}
    for name, count in limits:
        of_type: dict[str, dict[str, int]] = {
            "array": {"minItems": count, "maxItems": count},
            "integer": {"minimum": 0, "maximum": count - 1},
            "string": {"maxLength": count} if name.endswith("_rationale") else {},
        }
        properties[name] = {**properties[name], **of_type.get(properties[name].get("type", ""), {})}
    exact: Any = create_model(form.__name__, __base__=form)
    exact.model_json_schema = lambda *_, **__: {**schema, "properties": properties}
    narrower: type[BaseModel] = exact
    return narrower


def schema_abilities(lm: Any) -> tuple[bool, bool]:
    """Return whether an LM is sent a response format, and whether that is a JSON schema."""
    # With `auto`, DSPy's list of models decides for a provider that it knows. A server at an address of the user's, of
    # which DSPy knows nothing, is sent a schema until it refuses one.
    wish, server = getattr(lm, "structured", "auto"), _server(lm)
    if wish == "auto" and server is None:
        return ("response_format" in lm.supported_params, lm.supports_response_schema)
    sends = wish == "on" or (wish == "auto" and server not in _REFUSING)
    return (sends, sends)


def _server(lm: Any) -> tuple[Any, Any] | None:
    """Return an LM's address, of the user's own, and its model, or None if DSPy knows the provider's."""
    address = (getattr(lm, "kwargs", None) or {}).get("api_base")
    return (address, lm.model) if isinstance(address, str) else None


def refuses_schema(lm: Any) -> bool:
    """Return whether the server of an LM has refused a JSON schema in this process."""
    return _server(lm) in _REFUSING


def is_on_trial(lm: Any) -> bool:
    """Return whether the next request to an LM has a JSON schema that its server may refuse."""
    server = _server(lm)
    return getattr(lm, "structured", "auto") == "auto" and server is not None and server not in _REFUSING


@contextmanager
def without_schema(lm: Any, error: Exception, on_trial: bool) -> Iterator[None]:
    """Let the caller ask again without a schema, or raise `error` if it is not about a schema sent on trial."""
    server = _server(lm)
    if not (on_trial and _ABOUT_SCHEMA.search(str(error))):
        raise error
    _REFUSING.add(server)  # for later requests too, unless this one gets no reply either
    try:
        yield
    except dspy.LMError:
        _REFUSING.discard(server)  # perhaps the schema was not the reason, so it stays on trial
        raise
