"""Find a user's function by its name, `module:function`, and identify it. To find it runs the code of its module.

So the name must be one that the caller gave in this call. What a file states is compared with what was found, and never
looked up. This module uses only the standard library.
"""

import importlib
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from eldgr_dspy.errors import ArgumentError, EldgrError, describe_failure

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """A user's function, its name `module:function`, and a hash of its source, None if Python has none."""

    name: str
    source: str | None
    function: Callable[..., Any] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.name

    @property
    def module(self) -> str:
        return self.name.partition(":")[0]

    def to_json(self) -> dict[str, str | None]:
        return {"name": self.name, "source": self.source}


def is_dotted(name: str) -> bool:
    """Return whether a text has the form `module:object`."""
    return _PATH.fullmatch(name) is not None


def names_without_hash(value: object) -> Iterator[str]:
    """Yield the names that a file states, at any depth, with a `source` that is not the hash of one."""
    if isinstance(value, Mapping):
        if "name" in value and not isinstance(value.get("source", ""), str):
            yield str(value.get("name"))
        for inner in value.values():
            yield from names_without_hash(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from names_without_hash(inner)


@cache
def load_object(name: str, argument: str, example: str) -> Any:
    """Return the object `module:object` that a caller named. A name in a file must not come here.

    The module is looked for as Python looks for any, and then in the working directory. An object of Python's own,
    such as `eval`, is refused. The message names the argument and an example.
    """
    if not is_dotted(name):
        raise ArgumentError(
            f"{argument} must name a {argument.removesuffix('s')}; got {name!r}. Write MODULE:FUNCTION, such as "
            f"{example}."
        )
    module, _, function = name.partition(":")
    try:
        with _working_directory_last():
            value = getattr(importlib.import_module(module), function, None)
    except Exception as error:
        raise ArgumentError(
            f"{argument}={name!r}: the module {module!r} cannot be imported ({cause(error)}); check its name, and that "
            "it is in the working directory or is installed."
        ) from error
    if value is None:
        raise ArgumentError(f"{argument}={name!r}: the module {module!r} has no {function!r}; check the name.")
    if inspect.isbuiltin(value) or getattr(value, "__module__", None) == "builtins":
        raise ArgumentError(
            f"{argument}={name!r} must be of your own; {function!r} is a builtin. Name one, as {example}."
        )
    return value


@contextmanager
def _working_directory_last() -> Iterator[None]:
    """Let Python find modules in the working directory too, last, so that they never hide an installed one."""
    if (here := str(Path.cwd())) in sys.path:
        yield
        return
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)


def name_of(function: Any) -> str:
    """Return the name `module:function` of a function. Of an object, its variable at module level, else its class."""
    target = function if hasattr(function, "__qualname__") else type(function)
    around = vars(sys.modules.get(target.__module__, target)) if target is not function else {}
    variable = next((name for name, value in around.items() if value is function), target.__qualname__)
    return f"{target.__module__}:{variable}"


def source_of(function: Callable[..., Any]) -> str | None:
    """Return 16 hexadecimal digits of a hash of the source of a function or its class, or None without a source."""
    try:
        is_named = hasattr(function, "__code__") or isinstance(function, type)
        text = inspect.getsource(function if is_named else type(function))
    except (OSError, TypeError):
        return None
    return sha256(text.encode()).hexdigest()[:16]


@contextmanager
def naming_function(what: str, function: object, *plain: type[Exception]) -> Iterator[None]:
    """Raise what a user's function raises, unless `plain`, as an ArgumentError that begins so and has its line."""
    try:
        yield
    except Exception as error:
        if isinstance(error, (EldgrError, *plain)):
            raise
        raise ArgumentError(f"{what}: {cause(error, function)}.") from error


def cause(error: Exception, function: object = None) -> str:
    """Return an error of a user's code as a message quotes it, with the line of the function's file if it is known."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return describe_failure(error).rstrip(": .") + (f" ({file}, line {lines[-1]})" if lines else "")
