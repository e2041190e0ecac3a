"""Find the modules and the LMs that a module holds, wherever they are, and copy it with other LMs in their places."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache, partial
from operator import is_not
from types import FunctionType, MethodType
from typing import Any

import dspy

from eldgr_dspy.errors import ArgumentError

RECORDS = frozenset(("history", "callbacks", "traces", "train", "demos"))
"""Attributes in which a module or an LM remembers its calls and examples: they grow, and hold neither."""


def sub_modules(module: dspy.Module, kind: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a module of this kind with their paths, as its `named_sub_modules`, but for its `RECORDS`."""
    queue, ids = deque[tuple[str, Any]]([("self", module)]), {id(module)}
    while queue:
        name, one = queue.popleft()
        if isinstance(one, kind):
            yield name, one
        if isinstance(one, dspy.Module):
            parts = [(f"{name}.{key}", part) for key, part in vars(one).items() if key not in RECORDS]
        elif isinstance(one, dict):
            parts = [(f"{name}[{key}]", part) for key, part in one.items()]
        else:
            parts = [(f"{name}[{index}]", part) for index, part in enumerate(one)] if _is_list(one) else []
        for path, part in parts:
            if id(part) not in ids and (isinstance(part, dspy.Module | dspy.BaseLM | dict) or _is_list(part)):
                ids.add(id(part))
                queue.append((path, part))


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def holds_lm(module: dspy.Module) -> bool:
    """Return whether a module, or anything in it that DSPy would find, has an LM of its own."""
    return next(sub_modules(module, dspy.BaseLM), None) is not None


@contextmanager
def numeric_temperatures(module: dspy.Module) -> Iterator[None]:
    """Replace DSPy's `TypeError` by an `ArgumentError` if a temperature in a module or in an LM is not a number."""
    try:
        yield
    except TypeError as error:
        for _, holder in [*sub_modules(module, dspy.Predict | dspy.BaseLM), ("", dspy.settings.lm)]:
            value = (getattr(holder, "config", None) or getattr(holder, "kwargs", None) or {}).get("temperature")
            if value is not None and not isinstance(value, int | float):
                name = getattr(holder, "model", "a predictor")
                raise ArgumentError(
                    f"The temperature of {name} must be a number; got {value!r:.80}. Set one, or leave it out."
                ) from error
        raise


@contextmanager
def reveal_compiled(program: dspy.Module) -> Iterator[None]:
    """Show DSPy the parameters of compiled sub-modules, which it hides from optimizers, and so from `save`."""
    frozen: list[Any] = [part for _, part in sub_modules(program, dspy.Module) if getattr(part, "_compiled", False)]
    try:
        for part in frozen:
            part._compiled = False
        yield
    finally:
        for part in frozen:
            part._compiled = True


def with_lms(module: dspy.Module, change: Callable[[Any], Any]) -> Any:
    """Return a copy of a module in which each LM that it holds is `change(lm)`; each LM is changed once."""
    # LMs are found within modules, lists, tuples and dicts, but not in a closure or in an object of another kind.
    lms, memo = {id(lm): lm for _, lm in sub_modules(module, dspy.BaseLM)}, dict[int, tuple[Any, Any]]()
    try:
        twin = deepcopy(module, {**lms})  # not the LMs, which remember their calls too
    except Exception:  # noqa: BLE001 - what cannot be copied may raise anything; DSPy then copies part by part
        twin = module.deepcopy()

    def once(part: Any) -> Any:
        if isinstance(part, dspy.Module):
            return part
        if id(part) not in memo:
            memo[id(part)] = (part, change(part))  # with the LM itself, so that its id is not given to another
        return memo[id(part)][1]

    for _, part in [*sub_modules(twin, dspy.Module)]:
        for name, value in [*vars(part).items()]:
            new = value if name in RECORDS else replace_lms(value, once)
            if new is not value:
                setattr(part, name, new)
    return twin


@lru_cache(maxsize=64)
def _mix(mixin: Any, kind: Any) -> Any:
    return type(f"{mixin.__name__.strip('_')}{kind.__name__}", (mixin, kind), {})


def twin_of(lm: Any, mixin: type) -> Any:
    """Return an LM that shares connections, history and callbacks with this one, and does what a mixin does."""
    kind: Any = type(lm)
    twin: Any = object.__new__(kind if isinstance(lm, mixin) else _mix(mixin, kind))
    vars(twin).update(vars(lm))
    return twin


def view(module: dspy.Module, change: Callable[[Any], Any]) -> tuple[Any, dict[int, Any], Callable[[], None]]:
    """Return a module that shares all but the LMs, the original of each module in it by the copy's id, and a function.

    The function gives the originals what the copies' methods have set, as an index that is built at first use.
    """
    twins = dict[int, tuple[Any, Any, dict[str, Any]]]()

    def clone(one: Any) -> Any:
        if isinstance(one, dspy.BaseLM):
            return change(one)
        if id(one) not in twins:
            kind: Any = type(one)
            twin, values = object.__new__(kind), dict[str, Any]()
            twins[id(one)] = twin, one, values
            # Unlike a copy of `with_lms`, it keeps records and other state where the module itself keeps them.
            own = {name: part for name, part in vars(one).items() if name not in RECORDS}
            values |= {**vars(one), **{name: replace_lms(part, clone) for name, part in own.items()}}
            vars(twin).update(values)
        return twins[id(one)][0]

    def hand_back() -> None:
        for twin, one, values in twins.values():
            new = {name: part for name, part in vars(twin).items() if part is not values.get(name, twins)}
            vars(one).update({name: part for name, part in new.items() if _is_apart(part)})

    return clone(module), {id(twin): one for twin, one, _ in twins.values()}, hand_back


def _is_apart(value: Any) -> bool:
    """Return whether a value cannot call a module or an LM of a view, as far as can be seen."""
    parts = [value, *getattr(value, "__dict__", {}).values()]
    return replace_lms(parts, type) is parts and not isinstance(value, FunctionType | MethodType | partial)


def replace_lms(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with its modules and LMs changed, also those in lists, tuples and dicts: itself, if none is."""
    if isinstance(value, dspy.BaseLM | dspy.Module):
        return change(value)
    if type(value) is dict:
        items = {key: replace_lms(item, change) for key, item in value.items()}
        return items if any(map(is_not, items.values(), value.values())) else value
    if type(value) in (list, tuple):
        parts = [replace_lms(item, change) for item in value]
        return type(value)(parts) if any(map(is_not, parts, value)) else value
    return value
