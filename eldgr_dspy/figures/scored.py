"""The questions of a pool with a gold answer, counted by their marks, and the figures that are over them.

Sums are exact. So figures depend neither on the order of the questions nor on how many are taken together.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, TypeVar

from eldgr_dspy.answer_types.base import Score
from eldgr_dspy.figures.baselines import Chances
from eldgr_dspy.figures.contrasts import as_figures
from eldgr_dspy.figures.coverage import Confidence, curve_of, shipped
from eldgr_dspy.figures.distinct import Units, by_question
from eldgr_dspy.figures.results.summary import Flips, Paired, Scores, Shipping
from eldgr_dspy.statistics import Contrast, contrast_of_units

_Of = TypeVar("_Of")


class Marked(NamedTuple):
    """What the figures need of a rule's decision on a question with a gold answer.

    Attributes:
        score: Of the answer. official: its score by the official script, if that differs; else None.
        trusted: Whether it ships if uncertified answers abstain. answered: whether an answer ships at all.
    """

    score: Score
    official: Score | None
    trusted: bool
    answered: bool


class Marks(NamedTuple):
    """What the figures need of a question with a gold answer.

    Attributes:
        rules: What each rule decided; None for a rule that lacks a reply.
        share: The share of the candidates that vote for consensus.
        chances: What the baselines need. lost: the rules under which it is lost, see `figures.price`.
    """

    rules: tuple[Marked | None, ...]
    share: float
    chances: Chances
    lost: frozenset[str]


class Scored:
    """The questions of a pool with a gold answer. Rules are given by name, and must have decided all questions."""

    def __init__(self, rules: Sequence[str], units: Units[Marks]) -> None:
        """Take the names of the rules, in the order of the marks, and the questions."""
        self._places = {name: place for place, name in enumerate(rules)}
        self._units = units
        self._questions = by_question(units)
        self.n = self._questions.total()

    @property
    def n_distinct(self) -> int:
        """How many different texts the questions have."""
        return sum(self._units.values())

    def each(self, of: Callable[[Marks], _Of]) -> Counter[tuple[_Of, ...]]:
        """Return the units reduced to a part of their marks."""
        reduced = Counter[tuple[_Of, ...]]()
        for unit, n in self._units.items():
            reduced[tuple(map(of, unit))] += n
        return reduced

    @cached_property
    def lost(self) -> Units[frozenset[str]]:
        """The rules under which each question is lost."""
        return self.each(lambda marks: marks.lost)

    @cached_property
    def chances(self) -> Units[Chances]:
        """What the baselines need of each question."""
        return self.each(lambda marks: marks.chances)

    def scores(self, rule: str, *, graded: bool) -> Scores:
        """Return a rule's scores in percent; with F1 if answers are graded."""
        return self._means([(marked.score, n) for marked, n in self._of(rule).items()], graded)

    def official(self, rule: str, *, graded: bool) -> Scores | None:
        """Return a rule's official scores, of the raw texts; None if each is the same as the score."""
        counts = self._of(rule)
        if all(marked.official is None for marked in counts):
            return None
        return self._means([(marked.official or marked.score, n) for marked, n in counts.items()], graded)

    def contrast(self, rule: str, against: str) -> Paired:
        """Return the contrast of two rules, of F1 too where all answers have one; copies of a question count once."""
        pairs = self.each(lambda marks: (self._score(marks, rule), self._score(marks, against)))
        em = _contrast(pairs, lambda score: score.em)
        graded = all(score.f1 is not None for unit in pairs for pair in unit for score in pair)
        return as_figures(em, _contrast(pairs, lambda score: score.f1 or 0.0) if graded else None)

    def flips(self, before: str, after: str) -> Flips:
        """Return how many answers of a rule were lost and fixed by another one; None without a question."""
        if not self.n:
            return {"correct_to_incorrect": None, "incorrect_to_correct": None}
        pairs = Counter[tuple[bool, bool]]()
        for marks, n in self._questions.items():
            pairs[self._score(marks, before).em, self._score(marks, after).em] += n
        return {"correct_to_incorrect": pairs[True, False], "incorrect_to_correct": pairs[False, True]}

    def coverage(self, rule: str) -> list[list[float]]:
        """Return a rule's curve of risk and coverage."""
        counts = Counter[tuple[Confidence, bool]]()
        for marks, n in self._questions.items():
            marked = self._marked(marks, rule)
            counts[(marked.trusted, marks.share), marked.score.em] += n
        return curve_of(counts)

    def shipping(self, rule: str, certified: int, answered: int, of: int) -> Shipping:
        """Return what a rule ships if uncertified answers abstain, and if they do not.

        Args:
            rule: Which. certified, answered: on how many of all questions a certified or any answer ships.
            of: All questions, also those without a gold answer.
        """

        def ships(wanted: Callable[[Marked], bool]) -> Units[tuple[bool, bool]]:
            return self.each(lambda marks: (wanted(one := self._marked(marks, rule)), one.score.em))

        return {
            "abstain": shipped(certified, of, ships(lambda marked: marked.answered and marked.trusted)),
            "consensus": shipped(answered, of, ships(lambda marked: marked.answered)),
        }

    def _marked(self, marks: Marks, rule: str) -> Marked:
        marked = marks.rules[self._places[rule]]
        assert marked is not None, f"{rule} has not decided all questions"
        return marked

    def _score(self, marks: Marks, rule: str) -> Score:
        return self._marked(marks, rule).score

    def _of(self, rule: str) -> Counter[Marked]:
        counts = Counter[Marked]()
        for marks, n in self._questions.items():
            counts[self._marked(marks, rule)] += n
        return counts

    def _means(self, scores: Sequence[tuple[Score, int]], graded: bool) -> Scores:
        right = sum(n for score, n in scores if score.em)
        f1 = float(sum(Fraction(score.f1 or 0.0) * n for score, n in scores))
        return {"em": self._percentage(right), "f1": self._percentage(f1) if graded else None}

    def _percentage(self, total: float) -> float | None:
        return 100.0 * total / self.n if self.n else None


def _contrast(pairs: Units[tuple[Score, Score]], value: Callable[[Score], float]) -> Contrast:
    units = Counter[tuple[tuple[float, float], ...]]()
    for unit, n in pairs.items():
        units[tuple((100.0 * value(rule), 100.0 * value(against)) for rule, against in unit)] += n
    return contrast_of_units(units)
