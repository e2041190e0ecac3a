"""Judges with names: in a run of several, each is asked under its own label, and a rule is run once for each.

`judge[NAME]` is whom such a run asks, and `RULE[NAME]` is the rule with that judge. A single judge has no name.
This module uses only the standard library.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias, cast

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.words import Consulted, roles_and

Asked: TypeAlias = str
"""Whom a run asks: one of `Consulted`, or `judge[NAME]`."""

_NAME = r"[A-Za-z0-9._-]+"
_LABEL = re.compile(rf"(.+)\[({_NAME})\]")
_WITHOUT_JUDGE = ("first", "majority", "certified")


def labelled(name: str, judge: str | None) -> str:
    """Return a role or a rule with the name of its judge."""
    return name if judge is None else f"{name}[{judge}]"


def judge_in(label: str) -> str | None:
    """Return the judge that a label names; None without one."""
    return found[2] if (found := _LABEL.fullmatch(label)) else None


def unlabelled(label: str) -> str:
    """Return a rule or a role without the name of its judge."""
    return found[1] if (found := _LABEL.fullmatch(label)) else label


def role_of(asked: Asked) -> Consulted:
    """Return the role of whom a run asks."""
    return cast(Consulted, unlabelled(asked))


def asked_by(rule: str, role: Consulted) -> Asked:
    """Return whom a rule of this name asks where it yields a role."""
    return labelled(role, judge_in(rule) if role == "judge" else None)


def is_name(name: str) -> bool:
    """Return whether a judge may have this name."""
    return re.fullmatch(_NAME, name) is not None


def require_judges(names: Iterable[str]) -> None:
    """Refuse a name that no label can hold.

    Raises:
        ArgumentError: naming it.
    """
    for name in names:
        if not is_name(name):
            raise ArgumentError(f"A judge's name must consist of letters, digits, '-', '_' and '.'; got {name!r:.80}.")


def for_judges(rules: Sequence[str], judges: Collection[str]) -> tuple[str, ...]:
    """Return the rules of a run: one that may ask a judge stands once for each of these judges, if there are any.

    Raises:
        ArgumentError: a rule names a judge that is not among them.
    """
    for rule in rules:
        if (judge := judge_in(rule)) is not None and judge not in judges:
            known = ", ".join(map(repr, judges)) or "no judge has a name"
            raise ArgumentError(f"rules: {rule!r} names a judge that this run does not have ({known}). Add it.")
    alone = [not judges or judge_in(rule) is not None or rule in _WITHOUT_JUDGE for rule in rules]
    each = [
        [rule] if one else [labelled(rule, name) for name in judges] for rule, one in zip(rules, alone, strict=True)
    ]
    return tuple(dict.fromkeys(name for names in each for name in names))


def first_of(rule: str, names: Iterable[str]) -> str:
    """Return a rule as it stands among these names: by itself, else with the first judge that it stands with."""
    listed = [name for name in names if unlabelled(name) == rule]
    return rule if rule in listed or not listed else listed[0]


def asked_in_order(asked: Collection[Asked]) -> tuple[Asked, ...]:
    """Return the roles and who else was asked; judges with names stand in the place of the judge."""
    named = sorted(one for one in asked if judge_in(one) is not None)
    rest = [one for one in roles_and(asked) if one != "judge" or one in asked or not named]
    return (*(["judge"] if "judge" in rest else []), *named, *(one for one in rest if one != "judge"))
