"""Find the numbers, texts and patterns in the code of a rule, a certificate or a selector, where its bugs show.

    constants_of(my_rule)        Constants(texts=("7",), numbers=(40,), patterns=())

They are read from compiled code, so no source file is needed: constants that functions load, their defaults, their
closures, the globals of their own package that they name, and the attributes of classes and objects. This module uses
only the standard library. Source: ours; fuzzers call such a list a dictionary.
"""

import dis
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import get_args

from eldgr_dspy.words import CONSULT, HOMOGENEOUS, POLICIES, PREFERENCE, ROLES, STRICTNESS, TASKS, Branch

_OURS = {"eldgr_dspy", "dspy", "hypothesis"}
_MOST_THINGS, _MOST_ITEMS, _LONGEST = 400, 60, 200
_SMALLEST = 3
"""Smaller numbers are in every program, and the situations have them anyway."""
_LOADS = {"LOAD_CONST", "LOAD_SMALL_INT", "RETURN_CONST"}
_NAMES = {"LOAD_GLOBAL", "LOAD_NAME"}
_VOCABULARY = {*get_args(Branch), *TASKS, *ROLES, *POLICIES, *STRICTNESS, *CONSULT, *HOMOGENEOUS, *PREFERENCE}
_REGEX = re.compile(r"\\[bBdDsSwW]|\(\?|\[[^\]]+\][+*{?]|\.[+*{]|\w\|\w")


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants in some code, each once, in the order of discovery.

    Attributes:
        texts: Texts that are short enough for an answer or a passage; no docstrings, no names of roles.
        numbers: Numbers from three on, and fractions; those from a text come last.
        patterns: Regular expressions.
    """

    texts: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    patterns: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.texts or self.numbers or self.patterns)


def constants_of(*things: object) -> Constants:
    """Return the constants of rules, certificates, classes and objects without calling them."""
    reader = _Reader(things)
    for thing in things:
        reader.read(thing)
    patterns = dict.fromkeys(reader.patterns)
    texts = [text for text in dict.fromkeys(reader.texts) if text not in patterns and text not in _VOCABULARY]
    within = [float(number) for text in (*texts, *patterns) for number in re.findall(r"(?<![\w.])\d{1,9}", text)]
    numbers = dict.fromkeys(number for number in (*reader.numbers, *within) if _is_telling(number))
    return Constants(tuple(texts), tuple(numbers), tuple(patterns))


def _is_telling(number: float) -> bool:
    return abs(number) >= _SMALLEST or number != int(number)


class _Reader:
    """Walks through everything that some objects reach, and keeps the constants."""

    def __init__(self, roots: Iterable[object]) -> None:
        self.texts, self.numbers, self.patterns = list[str](), list[float](), list[str]()
        self._packages = {_package(root) for root in roots} - _OURS - {""}
        self._seen = dict[int, object]()  # the objects too, so that no id is given twice

    def read(self, thing: object) -> None:
        """Read an object and everything that it reaches."""
        if isinstance(thing, str):
            self._read_text(thing)
        elif isinstance(thing, int | float):
            if not isinstance(thing, bool) and abs(thing) < sys.maxsize:  # infinities and NaN are left out
                self.numbers.append(thing)
        elif isinstance(thing, re.Pattern):
            self._read_pattern(thing.pattern)
        elif id(thing) not in self._seen and len(self._seen) < _MOST_THINGS:
            self._seen[id(thing)] = thing
            for part in self._parts(thing):
                self.read(part)

    def _read_text(self, text: str) -> None:
        if _REGEX.search(text):
            self._read_pattern(text)
        elif 0 < len(text) <= _LONGEST:
            self.texts.append(text)

    def _read_pattern(self, pattern: object) -> None:
        if isinstance(pattern, str):
            self.patterns.append(pattern)

    def _parts(self, thing: object) -> Iterator[object]:
        """The parts of an object, as far as they are the user's own."""
        if isinstance(thing, FunctionType):
            yield from self._of_function(thing)
        elif isinstance(thing, MethodType):
            yield from (thing.__func__, thing.__self__)
        elif isinstance(thing, partial):
            yield from (thing.func, thing.args, [*thing.keywords.values()])
        elif isinstance(thing, dict):
            yield from (part for item in [*thing.items()][:_MOST_ITEMS] for part in item)
        elif isinstance(thing, set | frozenset):
            yield from sorted(thing, key=repr)[:_MOST_ITEMS]
        elif isinstance(thing, list | tuple):
            yield from thing[:_MOST_ITEMS]
        elif isinstance(thing, property | staticmethod | classmethod):
            yield from (getattr(thing, "fget", None), getattr(thing, "__func__", None))
        elif isinstance(thing, type):
            yield from self._of_class(thing)
        elif self._is_own(type(thing)):
            yield from (type(thing), getattr(thing, "__dict__", None))

    def _of_function(self, function: FunctionType) -> Iterator[object]:
        if not self._is_own(function):
            return
        yield getattr(function, "__wrapped__", None)
        yield from _loaded(function.__code__)
        yield from (function.__defaults__, [*(function.__kwdefaults__ or {}).values()])
        for cell in function.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # the cell is not filled yet
                continue
        yield from self._named(function)

    def _named(self, function: FunctionType) -> Iterator[object]:
        """The globals that a function names, and of a module of the same package the attributes that it names."""
        for code in _codes(function.__code__):
            steps = [*dis.get_instructions(code)]
            for step, after in zip(steps, [*steps[1:], None], strict=True):
                value = function.__globals__.get(step.argval) if step.opname in _NAMES else None
                if not isinstance(value, ModuleType):
                    yield value
                elif after is not None and value.__name__.partition(".")[0] in self._packages:
                    yield vars(value).get(str(after.argval))

    def _of_class(self, cls: type) -> Iterator[object]:
        for base in cls.__mro__:
            if self._is_own(base):
                for name, value in vars(base).items():
                    if isinstance(value, FunctionType) or not name.startswith("__"):
                        yield value

    def _is_own(self, thing: object) -> bool:
        return _package(thing) in self._packages


def _package(thing: object) -> str:
    """The top package of an object or its class."""
    if isinstance(thing, MethodType | partial):
        thing = thing.__func__ if isinstance(thing, MethodType) else thing.func
        return _package(thing)
    named = getattr(thing, "__module__", None)
    if not isinstance(named, str):
        named = getattr(thing, "__globals__", {}).get("__name__", "")
    return str(named).partition(".")[0]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _loaded(code: CodeType) -> Iterator[object]:
    """The constants that some code and the functions within it load, without docstrings and names of arguments."""
    for part in _codes(code):
        steps = [*dis.get_instructions(part)]
        for step, after in zip(steps, [*steps[1:], None], strict=True):
            names_arguments = after is not None and after.opname == "CALL_KW"
            if step.opname in _LOADS and not names_arguments and not isinstance(step.argval, CodeType):
                yield step.argval
