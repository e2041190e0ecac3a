"""The answer types by name: `short` (also `retrieval`), `number` (also `arithmetic`), and those of your own.

A name is looked up and never imported: only `load_type` runs the code of a user's module.
"""

from typing import Any

from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.answer_types.number import ANumber
from eldgr_dspy.answer_types.short import ShortText
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.named_objects import object_named
from eldgr_dspy.words import Task

SHORT, NUMBER = ShortText(), ANumber()

BUILT_IN: dict[Task, AnswerType] = {"retrieval": SHORT, "arithmetic": NUMBER, "short": SHORT, "number": NUMBER}
"""The types of this package under all their names."""

_OWN: dict[Task, AnswerType] = {}


def answer_type(name: object, argument: str = "task") -> AnswerType:
    """Return the answer type of that name: a built-in one, or one that `load_type` has loaded.

    Args:
        name: Its name. argument: what the name was given as, for the message.

    Raises:
        ArgumentError: no type has that name.
    """
    found = (BUILT_IN.get(name) or _OWN.get(name)) if isinstance(name, str) else None
    if found is None:
        raise ArgumentError(f"{argument} must be one of {', '.join(map(repr, BUILT_IN))}; got {name!r:.80}.")
    return found


def load_type(name: object, argument: str = "answer") -> AnswerType:
    """Return the answer type of that name; one of your own, `module:name`, is imported and then known by its name.

    Args:
        name: Of a built-in type; or `module:name` of an `AnswerType`, or of a class of them that takes no arguments.
        argument: What the name was given as, for the message.

    Raises:
        ArgumentError: it cannot be found, or is not an answer type.
    """
    if not (isinstance(name, str) and ":" in name):
        return answer_type(name, argument)
    if name not in _OWN:
        found: Any = object_named(name, argument, "my_types:dates")
        made = found() if isinstance(found, type) and issubclass(found, AnswerType) else found
        if not isinstance(made, AnswerType):
            raise ArgumentError(
                f"{argument}={name!r} must be an eldgr_dspy.answer_types.base.AnswerType; got {made!r:.80}."
            )
        made.name = made.name or name
        _OWN[name] = made
    return _OWN[name]
