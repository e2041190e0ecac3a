"""The answer types by name: `short`, `number`, `choice`, `math`.

Types of your own have names too. A name is looked up and never imported: only `load_type` runs a user's code.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from eldgr_dspy.answer_types.base import NAMES_IN_FILES, AnswerType, StatedType, Way
from eldgr_dspy.answer_types.choice import Choice
from eldgr_dspy.answer_types.math import Math
from eldgr_dspy.answer_types.number import ANumber
from eldgr_dspy.answer_types.short import ShortText
from eldgr_dspy.base.named_objects import load_object, name_of
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.words import Task

BUILT_IN: Mapping[Task, AnswerType] = {"short": ShortText(), "number": ANumber(), "choice": Choice(), "math": Math()}
"""The types of this package by name."""

IN_FILES: Mapping[Task, AnswerType] = {**{word: BUILT_IN[name] for name, word in NAMES_IN_FILES.items()}, **BUILT_IN}
"""The types of this package by the names that a file may state."""

_OWN: dict[Task, AnswerType] = {}
_MEMORY: dict[Task, StatedType] = {}


def answer_type(name: object, argument: str = "answer", built_in: Mapping[Task, AnswerType] = IN_FILES) -> AnswerType:
    """Return the answer type of that name: a built-in one, or one that `load_type` has loaded; a type as it is.

    `built_in` has the built-in types by name; `BUILT_IN` lacks the names that only files may use.

    Raises:
        ArgumentError: No type has that name. The message names the `argument`.
    """
    if isinstance(name, AnswerType):
        return name
    kind = (_OWN.get(name) or built_in.get(name)) if isinstance(name, str) else None
    if kind is None:
        raise ArgumentError(f"{argument} must be one of {', '.join(map(repr, BUILT_IN))}; got {name!r:.80}.")
    return kind


def load_type(value: object, argument: str = "answer") -> AnswerType:
    """Return an answer type: a value as it is, a built-in one by its name, or one of your own by `module:name`.

    The module is imported, and the type is then known by that name, so that pools may state it. Of several types of one
    name, pools mean the one that was loaded last.

    Args:
        value: An `AnswerType`, a class of them that takes no arguments, or the name of either.
        argument: What it was given as, for the message.

    Raises:
        ArgumentError: it cannot be found, is not an answer type, or lacks its way or its scores.
    """
    if isinstance(value, AnswerType) or _is_class(value):
        return _register(_checked_type(value, argument), None)
    if not (isinstance(value, str) and ":" in value):
        return answer_type(value, argument, BUILT_IN)
    if (kind := _OWN.get(value)) is None:
        kind = _checked_type(load_object(value, argument, "my_types:dates"), f"{argument}={value!r}")
        object.__setattr__(kind, "loaded_as", value)
    _OWN[value] = _register(kind, value)
    return kind


def _is_class(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, AnswerType)


def _checked_type(value: Any, what: str) -> AnswerType:
    """Return a type that says what every type must; made, if it is a class."""
    try:
        kind = value() if _is_class(value) else value
    except TypeError as error:
        raise ArgumentError(f"{what} must be made without arguments; {error}. Give a type that is made.") from error
    if not isinstance(kind, AnswerType):
        raise ArgumentError(f"{what} must be an eldgr_dspy.answer_types.base.AnswerType; got {kind!r:.80}.")
    name, way, scores = type(kind).__name__, getattr(kind, "way", None), getattr(kind, "scores", None)
    if way not in get_args(Way):
        raise ArgumentError(f"{name}.way must be one of {', '.join(map(repr, get_args(Way)))}; got {way!r:.80}.")
    if not (isinstance(scores, tuple) and len(scores) in (1, 2) and all(isinstance(one, str) for one in scores)):
        raise ArgumentError(f"{name}.scores must be a tuple of one or two names, ('accuracy',); got {scores!r:.80}.")
    return kind


def _register(kind: AnswerType, loaded_as: Task | None) -> AnswerType:
    """Let a type be known by its name. One that derives from a built-in type gets its own, or it would replace that."""
    if not kind.is_own:
        return kind
    if not kind.name or kind.name in IN_FILES:
        object.__setattr__(kind, "name", loaded_as or name_of(kind))  # the type may be a frozen dataclass
    _OWN[kind.name] = kind  # the name means what was loaded last
    return kind


def found_by_name(kind: AnswerType) -> tuple[Callable[[str], AnswerType], tuple[str]] | None:
    """Return how the same value is found again: what a pickle holds of it. None for one that no name finds."""
    if kind.loaded_as:
        return load_type, (kind.loaded_as,)
    return (answer_type, (kind.name,)) if BUILT_IN.get(kind.name) is kind else None


def remember_type(name: Task, way: Way, scores: Sequence[str]) -> None:
    """Let `shown_type` know a type of which finished figures state how it is shown; nothing is imported."""
    _MEMORY[name] = StatedType(name, way, scores)


def readable_type(name: Task) -> AnswerType:
    """Return the type of a row: one that is known, else as finished figures have stated it, to be shown alone."""
    return _MEMORY[name] if name in _MEMORY and not (_OWN.get(name) or name in IN_FILES) else answer_type(name, "task")


def shown_type(name: Task) -> AnswerType:
    """Return the type of finished figures: one that is known, else as figures have stated it, to be shown alone."""
    return _MEMORY[name] if name in _MEMORY and not _OWN.get(name) else answer_type(name)
