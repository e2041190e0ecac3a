"""The one JSON object of a reply, read exactly as written: nothing is repaired, and each refusal says why."""

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from eldgr_dspy.text.thinking import is_unopened

_THOUGHT = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_NO_OPENING = (
    "The reply is not exactly one JSON object: it has a closing thinking tag without an opening one. Let the server "
    "split thinking off: --reasoning-parser in vLLM or SGLang, --reasoning-format in llama.cpp, think=True in ollama()."
)
_OPENING = re.compile(r'\{\s*"')
_CODE_BLOCK = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
_JSON_NAMES = {list: "array", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


class UnreadableError(ValueError):
    """Why a reply is rejected, as a sentence."""


def read_object(reply: str) -> dict[str, Any]:
    """Return the one JSON object of a reply. Each refusal is a `ValueError` that says why."""
    text = without_thought(reply.strip())
    block = _CODE_BLOCK.fullmatch(text)
    whole = block[1].strip() if block else text
    if is_unopened(whole.partition("{")[0]):
        raise UnreadableError(_NO_OPENING)
    value, end = decoded_start(whole)
    if is_unopened(whole[end:]):
        raise UnreadableError(_NO_OPENING)
    if end < len(whole):
        raise UnreadableError(f"The reply is not exactly one JSON object: Extra data at character {end}.")
    if not isinstance(value, dict):
        raise UnreadableError(f"The reply is a JSON {_JSON_NAMES[type(value)]}, not an object.")
    return value


def is_whole(reply: str) -> bool:
    """Return whether a reply is exactly one JSON object, perhaps after a closed thinking block, then white space."""
    try:
        text = without_thought(reply.strip())
        value, end = decoded_start(text)
    except UnreadableError:
        return False
    return isinstance(value, dict) and end == len(text)


def holds_object(text: str) -> bool:
    """Return whether a text has a JSON object in it, at the first brace that a name in quotes follows."""
    start = _OPENING.search(text)
    try:
        return start is not None and isinstance(decoded_start(text[start.start() :])[0], dict)
    except UnreadableError:
        return False


def decoded_start(text: str) -> tuple[Any, int]:
    """Return the JSON value at the start of a text, and where it ends without the white space behind it."""
    try:
        value, end = _DECODER.raw_decode(text)
    except RecursionError as error:
        raise UnreadableError("The reply nests too deeply to be read.") from error
    except json.JSONDecodeError as error:
        raise UnreadableError(
            f"The reply is not exactly one JSON object: {error.msg} at character {error.pos}."
        ) from error
    return value, len(text) - len(text[end:].lstrip())


def without_thought(text: str) -> str:
    """Return the text after one closed thinking block at its start. A reply without one is returned whole."""
    if not text.startswith("<think>"):
        return text
    thought = _THOUGHT.match(text)
    if thought is None:
        raise UnreadableError("The reply begins with a <think> tag that is never closed.")
    if "<think>" in thought[1]:
        raise UnreadableError("The reply has a <think> tag inside a thinking block; where it ends is unclear.")
    return text[thought.end() :].strip()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise UnreadableError(f"The reply gives {name!r:.80} more than once; one value a key is expected.")
        fields[name] = value
    return fields


def _finite(parse: Callable[[str], int | float]) -> Callable[[str], int | float]:
    def number(literal: str) -> int | float:
        if not math.isfinite(float(literal)):
            raise UnreadableError(f"The reply holds {literal:.40}, a number too large for a float.")
        return parse(literal)

    return number


def _no_constant(name: str) -> NoReturn:
    raise UnreadableError(f"The reply holds {name}, which is not a JSON number.")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite(float), parse_int=_finite(int), parse_constant=_no_constant
)
