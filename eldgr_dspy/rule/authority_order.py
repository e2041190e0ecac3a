"""The order of authority: which rules let LMs do all that other rules let them do.

Rule A is at most rule B if, on every question, judge and deriver can make B ship every class of answers that they can
make A ship. The repairer abstains. Only pairs that are proved for every question are listed. Where the evidence
certifies, the deriver is never asked:

    majority, certified  <=  support(k) = support = eldgr = eldgr_certified  <=  near(0)  <=  near(1)  ...  <=  judge

Where a derivation certifies, whatever derivations pass:

    majority = certified  <=  support(0)  <=  support(1)  <=  ...  <=  support  <=  judge
                                                                       support  <=  eldgr = eldgr_certified  <=  near(0)

`majority` and `certified` are not comparable where the evidence certifies. `judge` and `eldgr` are not where a
derivation does: a judge may prefer what no derivation gives. `first` is not comparable with any rule: it may ship what
does not vote, which not even `judge` can ship. A user's own rule is not comparable either. Source: ours.
"""

from collections.abc import Iterable
from math import inf

from eldgr_dspy.rule.rules import margin_in
from eldgr_dspy.words import Task

_BREADTH: dict[str, tuple[int, int]] = {
    "majority": (0, 0),
    "certified": (0, 0),
    "support": (2, 1),
    "eldgr": (2, 2),
    "eldgr_certified": (2, 2),
    "near": (3, 3),
    "judge": (4, 4),
}
"""How far each rule lets LMs go where the evidence certifies, and where a derivation does."""


def at_most(narrow: str, wide: str, task: Task = "retrieval") -> bool:
    """Return whether it is proved that LMs can make the rule `wide` ship all that they can make `narrow` ship.

    `task` is `retrieval`, where the evidence certifies, or `arithmetic`, where a derivation does.
    """
    less, more = _breadth(narrow, task), _breadth(wide, task)
    if narrow == wide or less is None or more is None:
        return narrow == wide
    if task == "retrieval":
        return less < more or less == more != (0, 0)
    return less <= more and (wide != "judge" or less < (2, 0))


def chains(rules: Iterable[str], task: Task = "retrieval") -> list[list[str]]:
    """Return the rules in chains to test, each from narrow to wide; `majority`, the default, is left out.

    Where a derivation certifies, `judge` is in a chain only if no rule is wider than `support`.
    """
    names = sorted(set(rules) - {"majority"})
    breadths = {name: breadth for name in names if (breadth := _breadth(name, task)) is not None}
    widest = max((name for name in breadths if name != "judge"), key=breadths.__getitem__, default="judge")
    if "judge" in breadths and not at_most(widest, "judge", task):
        del breadths["judge"]
    comparable = sorted(breadths, key=breadths.__getitem__)
    others = [[name] for name in names if name not in breadths]
    return [comparable, *others] if comparable else others


def _breadth(rule: str, task: Task) -> tuple[int, float] | None:
    name, k = margin_in(rule) or (rule, inf)
    if name not in _BREADTH:
        return None
    place = _BREADTH[name][task == "arithmetic"]
    return place, k if name == "near" or (name, task) == ("support", "arithmetic") else 0
