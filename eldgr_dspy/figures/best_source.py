"""The best source of candidates as a baseline: chosen on one half of the questions, and scored on the other.

Sums are exact, so the figures do not depend on the order of the questions. Source: ours.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction

from eldgr_dspy.figures.results.baselines import Baseline, BaselineName
from eldgr_dspy.splitting import is_confirmation

HALVES = 0x6861_6C76
"""The seed of the two halves; nobody splits a pool by it, so a part of a pool has both."""

_NO_SOURCE = "some candidate has no source"
_OTHER_SOURCES = "some question has other sources than the first one"
_ONE_HALF = "all questions are in one half"


class BestSource:
    """The right answers of each source in two halves of the questions; equal questions are in one half."""

    def __init__(self) -> None:
        self.fault: str | None = None
        self._names: frozenset[str | None] | None = None
        self._right: tuple[dict[str, Fraction | int], ...] = (defaultdict(int), defaultdict(int))
        self._n = [0, 0]

    def add(self, text: str, sources: Sequence[str | None], right: Sequence[bool]) -> None:
        """Take a question. A source with several candidates scores the mean of theirs."""
        names = frozenset(sources)
        self._names = self._names or names
        if None in names or not names:
            self.fault = _NO_SOURCE
        elif names != self._names:
            self.fault = self.fault or _OTHER_SOURCES
        if self.fault:
            return
        half, candidates = is_confirmation(text, share=0.5, seed=HALVES), Counter(sources)
        self._n[half] += 1
        for source, counts in zip(sources, right, strict=True):
            if counts and source is not None:
                of = candidates[source]
                self._right[half][source] += 1 if of == 1 else Fraction(1, of)

    def figures(self) -> dict[BaselineName, Baseline]:
        """Return the best source of each half, scored on the other, and the best one of all in hindsight."""
        if self.fault:
            return dict.fromkeys(("best_source", "best_source_in_hindsight"), undefined(self.fault))
        names, n = sorted(filter(None, self._names or ())) or [""], sum(self._n)
        first, second = self._right
        both = {name: first[name] + second[name] for name in names}
        best = [max(names, key=right.__getitem__) for right in (first, second, both)]
        crossed = scored(float(100 * (second[best[0]] + first[best[1]]) / Fraction(n)), best[:2])
        return {
            "best_source": crossed if all(self._n) else undefined(_ONE_HALF),
            "best_source_in_hindsight": scored(float(100 * both[best[2]] / Fraction(n)), best[2:]),
        }


def scored(em: float, sources: Sequence[str] = ()) -> Baseline:
    """Return a baseline with this accuracy in percent, and the sources that it is of."""
    return {"em": em, "f1": None, "sources": list(sources), "reason": None}


def undefined(reason: str) -> Baseline:
    """Return a baseline without a result, with the reason."""
    return {"em": None, "f1": None, "sources": [], "reason": reason}
