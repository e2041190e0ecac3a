"""Answers that are lists or objects: they vote as canonical JSON, and are certified leaf by leaf."""

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Leaf: TypeAlias = "str | int | float | bool | None"


class Structure(str):
    """The canonical JSON of a list or an object: keys sorted, no white space. It is also a text, for those who ask."""

    __slots__ = ("value",)
    value: Any

    def __new__(cls, value: Any) -> "Structure":
        """Return the text of a JSON value; infinite numbers and NaN raise a ValueError."""
        text = super().__new__(cls, _canonical(value))
        text.value = value
        return text

    def __getnewargs__(self) -> tuple[Any]:
        return (self.value,)

    def leaves(self) -> Iterator[Leaf]:
        """Yield the leaves: texts, numbers, truth values and nulls. Keys are not leaves."""
        return _leaves(self.value)

    def key(self, of: Callable[[str], str]) -> str:
        """Return the canonical JSON with `of(text)` for each leaf that has a text."""
        return _canonical(_map(self.value, of))


def text_of_leaf(leaf: Leaf) -> str | None:
    """Return a leaf's text, a number's included, or None for a truth value and for null."""
    return None if leaf is None or isinstance(leaf, bool) else str(leaf)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _leaves(value: Any) -> Iterator[Leaf]:
    if isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _leaves(one)
    else:
        yield value


def _map(value: Any, of: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {name: _map(one, of) for name, one in value.items()}
    if isinstance(value, list):
        return [_map(one, of) for one in value]
    text = text_of_leaf(value)
    return value if text is None else of(text)
