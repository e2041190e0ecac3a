"""Rules by name: those of the package, and a rule of the user's own as `module:function`.

A rule of the user's is a generator as those of `eldgr_dspy.decision` are. It is held to what a rule may do: it yields
the name of a role and returns a `Choice`; all else is refused in a sentence that names it. To load it is to import its
module, hence to run it. Standard library alone.
"""

import importlib
import inspect
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, get_args

from eldgr_dspy.decision import RULES, Choice, Rule, Steps
from eldgr_dspy.errors import ArgumentError, EldgrError, brief
from eldgr_dspy.questions import require_one_of
from eldgr_dspy.words import ROLES, Branch, Role

_MOST_QUESTIONS = 100
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def rule_named(name: str, argument: str = "rule") -> Rule:
    """Return the rule of that name.

    Args:
        name: One of `RULES`, or `module:function`. The module is looked for as Python looks for any, and then in the
            working directory.
        argument: What the name was given as, for the message.

    Raises:
        ArgumentError: there is none, its module cannot be imported, or it is no generator function.
    """
    if ":" in name:
        return _own(name, argument)
    require_one_of(argument, name, tuple(RULES))
    return RULES[name]


@cache
def _own(name: str, argument: str) -> Rule:
    if not _DOTTED.fullmatch(name):
        raise ArgumentError(f"{argument}={name!r} is no rule's name; write MODULE:FUNCTION, such as my_rules:cautious.")
    module, _, function = name.partition(":")
    try:
        with _working_directory_last():
            found = getattr(importlib.import_module(module), function, None)
    except Exception as error:
        raise ArgumentError(
            f"{argument}={name!r}: the module {module!r} cannot be imported ({_said(error)}); check its name, and that "
            "it stands in the working directory or is installed."
        ) from error
    if found is None:
        raise ArgumentError(f"{argument}={name!r}: the module {module!r} has no {function!r}; check the name.")
    if not inspect.isgeneratorfunction(found):
        raise ArgumentError(
            f"{argument}={name!r} is no generator function; a rule yields the role that it asks, and returns a Choice "
            "(one that asks nobody begins with `yield from ()`)."
        )
    return _held(name, found)


@contextmanager
def _working_directory_last() -> Iterator[None]:
    """Have modules found in the working directory too, after all others, so that none there hides an installed one."""
    here = str(Path.cwd())
    if here in sys.path:
        yield
        return
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)


def _held(name: str, own: Rule) -> Rule:
    """Return a rule of the user's, held to what a rule may yield and return."""

    def steps(case: Any) -> Steps:
        asking, reply = own(case), None
        for _ in range(_MOST_QUESTIONS):
            try:
                role = asking.send(reply)
            except StopIteration as stop:
                return require_choice(name, stop.value)
            except EldgrError:
                raise
            except Exception as error:
                raise ArgumentError(f"The rule {name!r} has failed: {_said(error)}{_place(error, own)}.") from error
            reply = yield require_role(name, role)
        raise ArgumentError(
            f"The rule {name!r} has asked {_MOST_QUESTIONS} times on one question; a role says the same each time, so "
            "ask it once and keep its reply."
        )

    return steps


def require_role(name: str, asked: object) -> Role:
    """Return what a rule asks.

    Raises:
        ArgumentError: It is not a role; the message names the rule and the roles.
    """
    for role in ROLES:
        if role == asked:
            return role
    raise ArgumentError(f"The rule {name!r} asks {asked!r:.80}; it may ask one of {', '.join(ROLES)}.")


def require_choice(name: str, returned: object) -> Choice:
    """Return what a rule returned.

    Raises:
        ArgumentError: It is not a `Choice` of a branch that exists and a string or None; the message names the rule and
            what may be returned.
    """
    if not isinstance(returned, Choice):
        raise ArgumentError(f"The rule {name!r} returned {returned!r:.80}; return a Choice(branch, answer).")
    if returned.branch not in get_args(Branch):
        known = ", ".join(get_args(Branch))
        raise ArgumentError(f"The rule {name!r} returned the branch {returned.branch!r:.80}; use one of {known}.")
    if not isinstance(returned.answer, str | None):
        raise ArgumentError(f"The rule {name!r} returned {returned.answer!r:.80} as the answer; it is text, or None.")
    return returned


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {brief(' '.join(str(error).split()))}".rstrip(": .")


def _place(error: Exception, own: Rule) -> str:
    """Where in the rule's own file it happened."""
    file = getattr(getattr(own, "__code__", None), "co_filename", None)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" ({file}, line {lines[-1]})" if lines else ""
