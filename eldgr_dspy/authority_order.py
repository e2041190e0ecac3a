"""The order of authority: which rules let a judge do all that other rules let it do.

Rule A is at most rule B if, on every question, a judge can make B ship every class of answers that it can make A ship.
Repairer and deriver abstain. Only pairs that are proved for every question are listed:

    majority, certified  <=  eldgr = eldgr_certified  <=  near(0)  <=  near(1)  <=  ...  <=  judge

`majority` and `certified` are not comparable. `first` is not comparable with any rule: it may ship what does not vote,
which not even `judge` can ship. A user's own rule is not comparable either. Source: ours.
"""

from collections.abc import Iterable
from math import inf

from eldgr_dspy.rules import nearness

_BREADTH = {"majority": -2, "certified": -2, "eldgr": -1, "eldgr_certified": -1, "judge": inf}
"""How far each rule lets a judge go; `near(k)` is k."""
_INCOMPARABLE = -2


def at_most(narrow: str, wide: str) -> bool:
    """Return whether it is proved that a judge can make the rule `wide` ship all that it can make `narrow` ship."""
    less, more = _breadth(narrow), _breadth(wide)
    if narrow == wide or less is None or more is None:
        return narrow == wide
    return less < more or less == more != _INCOMPARABLE


def chains(rules: Iterable[str]) -> list[list[str]]:
    """Return the rules in chains to test, each from narrow to wide; `majority`, the default, is left out.

    The names alone fix the chains: one of the package's rules but `first`, then one for each other rule.
    """
    names = sorted(set(rules) - {"majority"})
    breadths = {name: breadth for name in names if (breadth := _breadth(name)) is not None}
    comparable = sorted(breadths, key=breadths.__getitem__)
    others = [[name] for name in names if name not in breadths]
    return [comparable, *others] if comparable else others


def _breadth(rule: str) -> float | None:
    k = nearness(rule)
    return _BREADTH.get(rule) if k is None else k
