"""A role's output as plain JSON: it is journaled so, and read back unchanged."""

import math
from collections.abc import Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from pydantic import BaseModel

from eldgr_dspy.showing import encodable

_DEEPEST = 32
_TOO_LONG = 10**999


class UnwritableError(Exception):
    """A value that a journal cannot hold. The message names it."""


def plain(value: Any) -> Any:
    """Return a value as plain JSON: models as objects, tuples as lists, numbers of NumPy and decimals as numbers.

    An object of any other type becomes its `repr`, and half of a surrogate pair U+FFFD. It raises `UnwritableError`.
    """
    try:
        return _plain(value, 0)
    except UnwritableError:
        raise
    except Exception as error:
        raise UnwritableError(f"a {type(value).__name__} that cannot be written") from error


def _plain(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise UnwritableError(f"lists or objects more than {_DEEPEST} deep")
    if value is None or isinstance(value, bool):
        return value
    if type(value) is float:
        return _number(value)
    if isinstance(value, str):
        return encodable(str.__str__(value))
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {str(_plain(key, depth + 1)): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, BaseModel):
        _plain(value.model_dump(), depth)  # its JSON would turn NaN into null
        return _plain(value.model_dump(mode="json"), depth)
    return _number(value) if isinstance(value, Real | Decimal) else encodable(repr(value))


def _number(value: Any) -> int | float:
    if type(value) is not float and isinstance(value, Integral):
        whole = int(value)
        if abs(whole) >= _TOO_LONG:
            raise UnwritableError("a number of 1,000 digits or more")
        return whole
    number = float(value)
    if not math.isfinite(number):
        raise UnwritableError(f"the number {number}")
    return number
