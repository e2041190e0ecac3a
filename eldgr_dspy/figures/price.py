"""The price of a rule: the most accuracy that any judge can cost against majority on new questions.

Where a derivation certifies, it is the most that any judge and any deriver can cost together. A question is lost under
a rule if majority is right on it and some of them make the rule ship a wrong answer, while the other roles abstain.
That depends on the question, its candidates and its evidence, but not on an LM. So an upper bound on the share of lost
questions bounds what any LM loses against majority on questions that are drawn alike, even one that was chosen after
the pool was seen. Right means exact match, or numeric equality, with ties to the earliest candidate. Source: ours; the
bound on the share is that of Clopper and Pearson.
"""

from collections.abc import Iterable

from eldgr_dspy.figures.distinct import Units
from eldgr_dspy.figures.results.summary import Price
from eldgr_dspy.statistics import proportion_upper_bound


def prices_of(rules: Iterable[str], units: Units[frozenset[str]], *, withheld: bool = False) -> dict[str, Price | None]:
    """Return each rule's price; None without a scored question, or if it is to be withheld.

    The price of `majority` is 0, because majority is what the others are compared with.

    Args:
        rules: Their names.
        units: For each scored question the rules under which it is lost. Copies of a question count once, as lost if
            any of them is: they are not independent.
    """
    n = sum(units.values())
    if withheld or not n:
        return dict.fromkeys(rules)
    lost = {name: sum(of for unit, of in units.items() if any(name in one for one in unit)) for name in rules}
    return {
        name: {"lost": count, "of": n, "at_most": 0.0 if name == "majority" else _percent_at_most(n, count)}
        for name, count in lost.items()
    }


def _percent_at_most(n: int, count: int) -> float:
    return 100.0 * proportion_upper_bound(n, count)
