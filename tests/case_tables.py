"""Tables of cases in the file `cases.json` of a folder: what a test is called with, and what it expects."""

import json
from collections.abc import Callable
from functools import cache
from operator import mul
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import example

Test = TypeVar("Test", bound=Callable[..., None])
Words = dict[str, Callable[..., Any]]
TEXTS: Words = {"times": mul, "join": lambda *parts: "".join(parts)}
"""Words that every table has, for long texts."""


@cache
def tables_of(folder: str) -> dict[str, Any]:
    text = (Path(__file__).with_name(folder) / "cases.json").read_text("utf-8")
    return json.loads(text)  # type: ignore[no-any-return]


def build(value: Any, words: Words) -> Any:
    """A value of a case, in which a mapping of a word alone is what the word's function makes of its arguments."""
    if isinstance(value, list):
        return [build(one, words) for one in value]
    if not isinstance(value, dict):
        return value
    inner = {name: build(one, words) for name, one in value.items()}
    word = words.get(next(iter(inner))) if len(inner) == 1 else None
    if word is None:
        return inner
    (arguments,) = inner.values()
    if isinstance(arguments, dict):
        return word(**arguments)
    return word(*arguments) if isinstance(arguments, list) else word(arguments)


def title(case: Any) -> str:
    """The id of a case without a name: its texts first, since the sentence that it expects tells most of it."""
    parts = sorted(case, key=lambda part: not isinstance(part, str)) if isinstance(case, list) else [case]
    return ", ".join(map(str, parts))[:100]


def each_case(folder: str, table: str, **words: Callable[..., Any]) -> pytest.MarkDecorator:
    """Parametrize a test by a table; its cases are lists of arguments, or values of one, and may have names."""
    arguments, cases = (tables_of(folder)[table][name] for name in ("arguments", "cases"))
    ids = [*cases] if isinstance(cases, dict) else [*map(title, cases)]
    values = [build(case, TEXTS | words) for case in (cases.values() if isinstance(cases, dict) else cases)]
    return pytest.mark.parametrize(arguments, values, ids=ids)


def each_example(folder: str, table: str, **words: Callable[..., Any]) -> Callable[[Test], Test]:
    """Have Hypothesis try the cases of a table first; each is a list of arguments."""

    def decorate(test: Test) -> Test:
        cases = tables_of(folder)[table]["cases"]
        for case in build([*(cases.values() if isinstance(cases, dict) else cases)], TEXTS | words):
            test = example(*case)(test)
        return test

    return decorate


def agrees(result: Any, expected: Any) -> bool:
    """Whether a result is what a case expects: any sequence as a list, and floats but for rounding."""
    if isinstance(expected, list) and not isinstance(result, str):
        return len(result) == len(expected) and all(map(agrees, result, expected))
    return bool(result == (pytest.approx(expected) if type(expected) is float else expected))
