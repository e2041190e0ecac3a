"""Typed answers: as the text of a candidate, and back in the type that the program declares."""

import json
import math
from contextlib import suppress
from decimal import Decimal
from enum import Enum
from typing import Any

import dspy
import numpy as np
from pydantic import BaseModel, PydanticUserError, TypeAdapter
from pydantic_core import to_jsonable_python

from eldgr_dspy.base.structured import Structure
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.lms.lms import sub_modules
from eldgr_dspy.text.numbers import parse_number


def as_candidate(value: Any) -> Any:
    """Return an answer as a candidate of a `Selector` has it: text, number, None or canonical JSON (`Structure`)."""
    value = _unboxed(value)
    if isinstance(value, dspy.Type) and {"value", "confidence"} <= type(value).model_fields.keys():
        value = value.__dict__["value"]  # of a decision of DSPy's, however sure it is
    if isinstance(value, bool):
        return str(value).lower()  # a word, so that a certificate is inapplicable to it
    if value is None or type(value) in (str, int, float, Decimal):
        return value
    try:
        plain = _plain(value)
        # An enum or a date is its text; a list, a set, an object, a model or a dataclass is JSON.
        return Structure(plain) if isinstance(plain, list | dict) else as_candidate(plain)
    except Exception as error:
        raise ArgumentError(
            f"An answer must be a text, a number, or a value that JSON can hold; got {value!r:.80} "
            f"({type(value).__name__})."
        ) from error


def _plain(value: Any) -> Any:
    """Return a value as JSON in which equal values are the same: 4.0 is 4, and sets are sorted."""
    value = _unboxed(value)
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value), key=json.dumps)
    if isinstance(value, dict):
        return {str(to_jsonable_python(name)): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 100:
        return int(value) if value == int(value) else f"{value:f}".rstrip("0")
    if value is None or isinstance(value, str | int | float):
        return to_jsonable_python(value)
    return _plain(to_jsonable_python(value))


def _unboxed(value: Any) -> Any:
    """Return a scalar of NumPy as Python's: a number of 32 bits by its own shortest text, all else unchanged."""
    if isinstance(value, np.floating):
        return float(str(value))
    return value.item() if isinstance(value, np.generic) else value


def type_of(value: Any) -> Any:
    """Return the type in which another answer comes back: of a scalar of NumPy or a kind of text, the plain one."""
    plain = _unboxed(value)
    return str if isinstance(plain, str) and not isinstance(plain, Enum) else type(plain)


def outputs(program: dspy.Module) -> dict[str, Any]:
    """Return the output fields of the program's predictors with their types. Of one name, the last predictor's."""
    fields: dict[str, Any] = {}
    for _, part in sub_modules(program, dspy.Predict):
        fields |= {name: field.annotation for name, field in part.signature.output_fields.items()}
    return fields


def as_type(text: str, kind: Any) -> Any:
    """Return a text, such as a span of the evidence, as a value of a type; raise a ValueError if it is not one."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
    except PydanticUserError as error:
        raise ValueError(f"{text!r:.80} is not a value of {kind}, which Pydantic cannot read") from error
    number, values = parse_number(text), list[Any]()
    for parse in (adapter.validate_python, adapter.validate_json):
        with suppress(ValueError):
            values.append(parse(text))
    if not values and number is not None and not number.percent:
        with suppress(OverflowError):
            plain = int(number.value) if number.value.denominator == 1 else float(number.value)
            values.append(adapter.validate_python(plain))
    # Pydantic reads a number as seconds since 1970, and "Infinity" as a number.
    value = values[0] if values else None
    is_time = number is not None and type(value).__module__ == "datetime"
    if not values or is_time or (isinstance(value, float | Decimal) and not math.isfinite(value)):
        raise ValueError(f"{text!r:.80} is not a value of {kind}")
    return value
