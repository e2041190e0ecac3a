"""The price of a rule: the most accuracy that any judge can cost against majority on new questions.

A question is lost under a rule if majority is right on it and some judge makes the rule ship a wrong answer, while
repairer and deriver abstain. That depends on the question, its candidates and its evidence, but not on a judge. So an
upper bound on the share of lost questions bounds what any judge loses against majority on questions that are drawn
alike, even a judge that was chosen after the pool was seen. Right means exact match, or numeric equality, with ties to
the earliest candidate. Source: ours; the bound on the share is that of Clopper and Pearson.
"""

from collections.abc import Collection, Iterable

from eldgr_dspy.figures.results.summary import Price
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.statistics import proportion_upper_bound


class Prices:
    """The prices of the rules on one pool, taken question by question; it keeps a number for each distinct question."""

    def __init__(self, rules: Iterable[str]) -> None:
        self._bits = {name: 1 << place for place, name in enumerate(rules)}
        self._lost_under: dict[int, int] = {}

    def add(self, question: str, lost: Collection[str]) -> None:
        """Take one scored question and the rules under which it is lost. Copies count once, as lost if any of them is.

        Copies have the same folded text: they are not independent.
        """
        key = hash(folded_question(question))
        self._lost_under[key] = self._lost_under.get(key, 0) | sum(self._bits[name] for name in lost)

    def figures(self, *, withheld: bool = False) -> dict[str, Price | None]:
        """Return each rule's price; None without a scored question, or if it is to be withheld.

        The price of `majority` is 0, because majority is what the others are compared with.
        """
        n = len(self._lost_under)
        if withheld or not n:
            return dict.fromkeys(self._bits)
        lost = {name: sum(1 for under in self._lost_under.values() if under & bit) for name, bit in self._bits.items()}
        return {
            name: {"lost": count, "of": n, "at_most": 0.0 if name == "majority" else _percent_at_most(n, count)}
            for name, count in lost.items()
        }


def _percent_at_most(n: int, count: int) -> float:
    return 100.0 * proportion_upper_bound(n, count)
