"""Find the LMs that a module holds, wherever they are, and copy it with others in their places."""

from collections.abc import Callable
from operator import is_not
from typing import Any

import dspy


def with_lms(module: dspy.Module, change: Callable[[Any], Any]) -> Any:
    """Return a copy of a module in which each LM that it holds is `change(lm)`; each LM is changed once.

    An LM is found in any attribute of the module and of its sub-modules, including compiled ones, directly or within
    lists, tuples and dicts. An LM in a closure, or in an object of another kind, is not found. The LM in the settings
    of DSPy does not belong to the module.
    """
    twin, changed = module.deepcopy(), dict[int, tuple[Any, Any]]()

    def once(lm: Any) -> Any:
        if id(lm) not in changed:
            changed[id(lm)] = (lm, change(lm))  # with the LM itself, so that its id is not given to another
        return changed[id(lm)][1]

    for _, part in list(twin.named_sub_modules(dspy.Module)):
        for name, value in list(vars(part).items()):
            replaced = _replaced(value, once)
            if replaced is not value:
                setattr(part, name, replaced)
    return twin


def _replaced(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with its LMs changed: itself, if it holds none."""
    if isinstance(value, dspy.BaseLM):
        return change(value)
    if type(value) is dict:
        items = {key: _replaced(item, change) for key, item in value.items()}
        return items if any(map(is_not, items.values(), value.values())) else value
    if type(value) in (list, tuple):
        parts = [_replaced(item, change) for item in value]
        return type(value)(parts) if any(map(is_not, parts, value)) else value
    return value
