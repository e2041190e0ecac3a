"""The order of authority: under which rule a judge can make ship all that it can under another.

A rule is at most another if, on every question, each class of answers that some judge makes it ship is one that some
judge makes the other ship. Repairer and deriver are silent. Only pairs that are proved for every question are listed:

    majority, certified  <=  eldgr = eldgr_certified  <=  near(0)  <=  near(1)  <=  ...  <=  judge

`majority` and `certified` are not comparable. Nor is `first` with any other rule: it may ship what does not vote, so
that not even `judge` can ship it. Of a user's own rule nothing is known. Source: ours.
"""

from collections.abc import Iterable
from math import inf

from eldgr_dspy.rules import nearness

_BREADTH = {"majority": -2, "certified": -2, "eldgr": -1, "eldgr_certified": -1, "judge": inf}
"""How far each rule lets a judge go; `near(k)` is k."""
_INCOMPARABLE = -2


def at_most(narrow: str, wide: str) -> bool:
    """Return whether it is proved that a judge can make the rule `wide` ship all that it can make `narrow` ship."""
    one, other = _breadth(narrow), _breadth(wide)
    if narrow == wide or one is None or other is None:
        return narrow == wide
    return one < other or one == other != _INCOMPARABLE


def chains(rules: Iterable[str]) -> list[list[str]]:
    """Return the rules in as few chains as cover them, each from narrow to wide; `majority`, the default, is left out.

    The names alone fix the chains: one of all rules that are comparable, then one for each other rule.
    """
    names = sorted(set(rules) - {"majority"})
    breadths = {name: breadth for name in names if (breadth := _breadth(name)) is not None}
    comparable = sorted(breadths, key=breadths.__getitem__)
    others = [[name] for name in names if name not in breadths]
    return [comparable, *others] if comparable else others


def _breadth(rule: str) -> float | None:
    k = nearness(rule)
    return _BREADTH.get(rule) if k is None else k
