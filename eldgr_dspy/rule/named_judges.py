"""Labels of named judges: a run of several asks each under its own label, and runs each rule once for each judge.

The judge is `judge[NAME]`, and a rule with that judge is `RULE[NAME]`. A single judge needs no name.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias, cast

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.words import ASKING_NOBODY, Consulted, roles_and

Label: TypeAlias = str  # whom a run asks: one of `Consulted`, or `judge[NAME]`
_NAME = r"[A-Za-z0-9._-]+"
_LABEL = re.compile(rf"(.+)\[({_NAME})\]")


def label_of(name: str, judge: str | None) -> str:
    return name if judge is None else f"{name}[{judge}]"


def judge_in(label: str) -> str | None:
    return match[2] if (match := _match_label(label)) else None


def name_in(label: str) -> str:
    return match[1] if (match := _match_label(label)) else label


def _match_label(label: str) -> re.Match[str] | None:
    return _LABEL.fullmatch(label) if label.endswith("]") else None


def role_of(label: Label) -> Consulted:
    return cast(Consulted, name_in(label))


def asked_by(rule: str, role: Consulted) -> Label:
    """Return the label of the role, or of the named judge, that a rule of this name asks."""
    return label_of(role, judge_in(rule) if role == "judge" else None)


def is_name(name: str) -> bool:
    return re.fullmatch(_NAME, name) is not None


def require_judges(names: Iterable[str]) -> None:
    for name in names:
        if not is_name(name):
            raise ArgumentError(f"A judge's name must consist of letters, digits, '-', '_' and '.'; got {name!r:.80}.")


def for_judges(rules: Sequence[str], judges: Collection[str]) -> tuple[str, ...]:
    """Return the rules of a run: with named judges, a rule that may ask a judge is listed once for each."""
    labels = dict[str, None]()
    for rule in rules:
        if (judge := judge_in(rule)) is not None and judge not in judges:
            names = ", ".join(map(repr, judges)) or "no judge has a name"
            raise ArgumentError(
                f"rules: {rule!r} names a judge that this run does not have ({names}). Name it in judges."
            )
        asks_each = judges and judge is None and rule not in ASKING_NOBODY
        labels |= dict.fromkeys([label_of(rule, name) for name in judges] if asks_each else [rule])
    return tuple(labels)


def first_of(rule: str, names: Iterable[str]) -> str:
    """Return the rule if it is among these names, else its first name with a judge, such as `eldgr[gpt4]`."""
    matches = [name for name in names if name_in(name) == rule]
    return rule if rule in matches or not matches else matches[0]


def in_order(labels: Collection[Label]) -> tuple[Label, ...]:
    """Return the roles and who else was asked; named judges are listed in place of the judge, or after it."""
    judges = sorted(label for label in labels if judge_in(label) is not None)
    rest = [label for label in roles_and(labels) if label != "judge" or label in labels or not judges]
    return (*(["judge"] if "judge" in rest else []), *judges, *(label for label in rest if label != "judge"))
