"""Describe how two nested plain values differ, in readable lines."""

import json
from collections.abc import Iterator, Mapping
from itertools import takewhile, zip_longest
from typing import Any


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return one readable line for each detail that differs: its path, what it was, what it is."""
    return list(_compare(before, now, ""))


def _compare(old: Any, new: Any, path: str) -> Iterator[str]:
    """One line for each difference. A whole value that is missing on one side is one line."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted(old.keys() | new.keys()):
            yield from _compare(old.get(name), new.get(name), f"{path}.{name}" if path else str(name))
    elif isinstance(old, list) and isinstance(new, list):
        for index, (was, now) in enumerate(zip_longest(old, new)):
            before = {} if was is None and isinstance(now, Mapping) else was
            after = {} if now is None and isinstance(was, Mapping) else now
            yield from _compare(before, after, f"{path}[{index}]")
    elif old != new:
        texts = ["(absent)" if value is None else json.dumps(value, ensure_ascii=False) for value in (old, new)]
        yield f"{path}: {' -> '.join(around_difference(*texts))}"


def around_difference(*texts: str) -> list[str]:
    """Return two texts, a long one cut to the characters around their first difference."""
    first = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
    return [_around(text, first) for text in texts]


def _around(text: str, first: int) -> str:
    """A text. A long one is cut to the characters around its first difference."""
    if len(text) <= 120:
        return text
    start = max(0, min(first - 30, len(text) - 100))
    before, after = "..." * (start > 0), "..." * (start + 100 < len(text))
    return f"{before}{text[start : start + 100]}{after} ({len(text)} characters)"
