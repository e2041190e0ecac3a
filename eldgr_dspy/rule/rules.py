"""Find rules by name: those of the package, and a user's own rule as `module:function`.

A user's rule is a generator like those of `eldgr_dspy.decision`. It may only yield the name of a role and return a
`Choice`; anything else is refused with an error that names the rule. Loading a rule imports its module, and so runs it.
"""

import inspect
import re
import sys
from collections.abc import Generator
from functools import cache, wraps
from typing import Any, get_args

from eldgr_dspy.base.named_objects import load_object, naming_function
from eldgr_dspy.decision import MARGINS, RULES, Choice, Rule, Steps
from eldgr_dspy.errors import ArgumentError, result_of
from eldgr_dspy.rule.named_judges import judge_in, name_in
from eldgr_dspy.rule.questions import require_one_of
from eldgr_dspy.words import ROLES, Branch, Role

_WITH_MARGIN = re.compile(rf"({'|'.join(MARGINS)})\((0|[1-9][0-9]{{0,5}})\)")
_MOST_QUESTIONS = 100
_NOT_A_RULE = (
    "is not a generator function; a rule yields a role to ask and returns a Choice (one that asks no role begins with "
    "`yield from ()`)."
)


def rule_named(name: str, argument: str = "rule") -> Rule:
    """Return the rule of that name: one of `RULES`, `near(0)`, `support(1)` and so on, or `module:function`.

    The name of a judge may follow, as in `eldgr[gpt4]`. The module is looked for as Python looks for any, and then in
    the working directory. The message of an error names the `argument`.

    Raises:
        ArgumentError: The rule does not exist, its module cannot be imported, or it is not a generator function.
    """
    name = name_in(name)
    if name in RULES:
        return RULES[name]
    if is_own(name):
        return _own(name, argument)
    if with_margin := margin_in(name):
        return MARGINS[with_margin[0]](with_margin[1])
    require_one_of(argument, name, (*RULES, *(f"{margin}(K)" for margin in MARGINS)))
    return RULES[name]


def require_no_judge(name: str, argument: str = "rule") -> None:
    """Refuse a rule with the name of a judge, which only a run of several judges has."""
    if judge_in(name) is not None:
        raise ArgumentError(
            f"{argument}={name!r} must not name a judge, because only a run has judges with names. Give "
            f"{name_in(name)!r}."
        )


def is_own(name: str) -> bool:
    """Return whether a rule of this name is the user's."""
    return ":" in name


def margin_in(name: str) -> tuple[str, int] | None:
    """Return ("near", k) for the rule `near(k)`, ("support", k) for `support(k)`, and None for any other."""
    match = _WITH_MARGIN.fullmatch(name)
    return (match[1], int(match[2])) if match else None


@cache
def _own(name: str, argument: str) -> Rule:
    rule = load_object(name, argument, "my_rules:cautious")
    if not inspect.isgeneratorfunction(rule):
        raise ArgumentError(f"{argument}={name!r} {_NOT_A_RULE}")
    return guard(name, rule)


def rule_given(rule: object) -> tuple[str, Rule]:
    """Return the name of a rule and the rule itself, given either: a name, or a user's generator function.

    Raises:
        ArgumentError: As `rule_named`; or it names a judge, or is neither a name nor a generator function.
    """
    if isinstance(rule, str):
        require_no_judge(rule)
        return rule, rule_named(rule)
    for name, other in RULES.items():
        if rule is other:
            return name, other
    name = getattr(rule, "__qualname__", "")
    if (with_margin := margin_in(name)) and rule is (other := MARGINS[with_margin[0]](with_margin[1])):
        return name, other
    if not inspect.isgeneratorfunction(rule):
        raise ArgumentError(f"rule={rule!r:.80} {_NOT_A_RULE}")
    name = f"{rule.__module__}:{rule.__qualname__}"
    return name, guard(name, rule)


def finds(name: str, rule: Rule) -> bool:
    """Return whether `rule_named` finds this rule by this name in any process that can import its module."""
    module, _, function = name.partition(":")
    target = getattr(sys.modules.get(module), function, None)
    return not is_own(name) or (module != "__main__" and target is not None and target is inspect.unwrap(rule))


def guard(name: str, own: Rule) -> Rule:
    """Return a user's rule with checks on what it yields and returns."""
    what = f"The rule {name!r} has failed"

    @wraps(own)
    def steps(case: Any) -> Steps:
        with naming_function(what, own):
            asking: Any = result_of(own(case), "rule(case)", "a rule is a plain generator function")
        if not isinstance(asking, Generator):
            raise ArgumentError(f"rule(case) returned {asking!r:.80}; the rule {name!r} {_NOT_A_RULE}")
        reply = None
        for _ in range(_MOST_QUESTIONS):
            with naming_function(what, own):
                try:
                    role = asking.send(reply)
                except StopIteration as stop:
                    return require_choice(name, stop.value)
            reply = yield require_role(name, role)
        raise ArgumentError(
            f"The rule {name!r} has asked {_MOST_QUESTIONS} times on one question; a role repeats its reply, so "
            "ask it once and keep its reply."
        )

    return steps


def require_role(name: str, request: object) -> Role:
    """Return what a rule asks, which must be a role."""
    for role in ROLES:
        if role == request:
            return role
    raise ArgumentError(f"The rule {name!r} asks {request!r:.80}; it may ask one of {', '.join(ROLES)}.")


def require_choice(name: str, value: object) -> Choice:
    """Return what a rule returned, which must be a `Choice` of a branch that exists and a string or None."""
    if not isinstance(value, Choice):
        raise ArgumentError(f"The rule {name!r} returned {value!r:.80}; return a Choice(branch, answer).")
    if value.branch not in get_args(Branch):
        branches = ", ".join(get_args(Branch))
        raise ArgumentError(f"The rule {name!r} returned the branch {value.branch!r:.80}; use one of {branches}.")
    if not isinstance(value.answer, str | None):
        raise ArgumentError(f"The rule {name!r} returned {value.answer!r:.80} as the answer; return text or None.")
    return value
