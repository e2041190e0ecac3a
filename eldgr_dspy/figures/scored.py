"""The figures of a rule over the questions with a gold answer: scores, flips, and the risk of what ships.

Sums are exact. So figures depend neither on the order of the questions nor on how many are taken together.
"""

from collections.abc import Callable
from fractions import Fraction

from eldgr_dspy.answer_types.base import Score
from eldgr_dspy.figures.decided_rows import DecidedRows, Ruled
from eldgr_dspy.figures.distinct import Units, counts_by
from eldgr_dspy.figures.results.audit_fields import Flips
from eldgr_dspy.figures.results.summary_fields import Scores, Shipped, Shipping
from eldgr_dspy.statistics import proportion_upper_bound


def scores_of(rows: DecidedRows, rule: str, of: Callable[[Ruled], Score] = lambda of: of.defined) -> Scores:
    """Return the means of a rule's scores in percent, or of others that a function returns; F1 if answers have it."""
    counts = counts_by(rows.rules[rule].counts(rows.scored), of)
    n, right = counts.total(), sum(times for score, times in counts.items() if score.em)
    f1 = float(sum(Fraction(score.f1 or 0.0) * times for score, times in counts.items()))
    return {"em": 100.0 * right / n if n else None, "f1": 100.0 * f1 / n if n and rows.type.has_f1 else None}


def official_of(rows: DecidedRows, rule: str) -> Scores | None:
    """Return a rule's official scores, of the raw texts; None if each is the same as the score."""
    if all(of.official is None for of in rows.rules[rule]):
        return None
    return scores_of(rows, rule, lambda of: of.official or of.defined)


def flips_of(rows: DecidedRows, before: str, after: str) -> Flips:
    """Return how many answers of a rule were lost and fixed by another one; None without a question."""
    pairs = rows.rules[before].beside(rows.rules[after]).counts(rows.scored)
    if not pairs:
        return {"correct_to_incorrect": None, "incorrect_to_correct": None}
    flips = counts_by(pairs, lambda pair: (pair[0].defined.em, pair[1].defined.em))
    return {"correct_to_incorrect": flips[True, False], "incorrect_to_correct": flips[False, True]}


def shipping_of(rows: DecidedRows, rule: str) -> Shipping:
    """Return what a rule ships if uncertified answers abstain, and if they do not."""
    counts, units = rows.rules[rule].counts(), rows.units(rows.rules[rule])

    def ships(wanted: Callable[[Ruled], bool]) -> Shipped:
        marks = counts_by(units, lambda unit: tuple((wanted(of), of.defined.em) for of in unit))
        return shipped(counts_by(counts, wanted)[True], len(rows), marks)

    return {"abstain": ships(lambda of: of.answered and of.trusted), "consensus": ships(lambda of: of.answered)}


def shipped(n: int, of: int, units: Units[tuple[bool, bool]]) -> Shipped:
    """Return on how many questions an answer ships, and how often it is wrong there.

    Args:
        n: On how many an answer ships. of: how many questions there are.
        units: Of the questions with a gold answer, whether an answer ships and whether it is right. The bound counts a
            text once, as wrong if any of its answers that ship is wrong: copies of a question are not independent. It
            is never below the risk.
    """
    right, wrong = (sum(unit.count((True, em)) * times for unit, times in units.items()) for em in (True, False))
    distinct = sum(times for unit, times in units.items() if any(ships for ships, _ in unit))
    distinct_wrong = sum(times for unit, times in units.items() if (True, False) in unit)
    risk = wrong / (right + wrong) if right + wrong else None
    return {
        "questions": n,
        "coverage": 100.0 * n / of if of else None,
        "scored": right + wrong,
        "wrong": None if risk is None else wrong,
        "risk": None if risk is None else 100.0 * risk,
        "risk_at_most": None if risk is None else 100.0 * max(risk, proportion_upper_bound(distinct, distinct_wrong)),
    }
