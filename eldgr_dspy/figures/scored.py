"""The figures of a rule over the questions with a gold answer: scores, contrasts, flips, and the risk of what ships.

Sums are exact. So figures depend neither on the order of the questions nor on how many are taken together.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction

from eldgr_dspy.answer_types.base import Score
from eldgr_dspy.figures.contrasts import as_figures
from eldgr_dspy.figures.decided_rows import DecidedRows, Ruled
from eldgr_dspy.figures.distinct import Column, Units
from eldgr_dspy.figures.results.audit_results import Flips
from eldgr_dspy.figures.results.summary import Paired, Scores, Shipped, Shipping
from eldgr_dspy.statistics import Contrast, contrast_of_units, proportion_upper_bound


def scored_column(rows: DecidedRows, rule: str) -> Column[Ruled]:
    """Return what a rule, which has decided all questions, decided on those with a gold answer."""
    return rows.rules[rule].where(rows.scored)


def scores_of(rows: DecidedRows, rule: str) -> Scores:
    """Return a rule's scores in percent; with F1 if answers are graded."""
    return _means(scored_column(rows, rule).map(lambda of: of.defined).counts(), graded=rows.type.has_f1)


def official_of(rows: DecidedRows, rule: str) -> Scores | None:
    """Return a rule's official scores, of the raw texts; None if each is the same as the score."""
    column = scored_column(rows, rule)
    if all(of.official is None for of in column):
        return None
    return _means(column.map(lambda of: of.official or of.defined).counts(), graded=rows.type.has_f1)


def _means(counts: Mapping[Score, int], *, graded: bool) -> Scores:
    n = sum(counts.values())
    right = sum(times for score, times in counts.items() if score.em)
    f1 = float(sum(Fraction(score.f1 or 0.0) * times for score, times in counts.items()))
    return {"em": 100.0 * right / n if n else None, "f1": 100.0 * f1 / n if n and graded else None}


def contrast_of(rows: DecidedRows, rule: str, against: str) -> Paired:
    """Return the contrast of two rules, of F1 too where all answers have one; copies of a question count once."""
    one, other = (scored_column(rows, name).map(lambda of: of.defined) for name in (rule, against))
    pairs = one.beside(other).units(rows.texts)
    em = _contrast(pairs, lambda score: score.em)
    graded = all(score.f1 is not None for unit in pairs for pair in unit for score in pair)
    return as_figures(em, _contrast(pairs, lambda score: score.f1 or 0.0) if graded else None)


def _contrast(pairs: Units[tuple[Score, Score]], value: Callable[[Score], float]) -> Contrast:
    units = Counter[tuple[tuple[float, float], ...]]()
    for unit, n in pairs.items():
        units[tuple((100.0 * value(rule), 100.0 * value(against)) for rule, against in unit)] += n
    return contrast_of_units(units)


def flips_of(rows: DecidedRows, before: str, after: str) -> Flips:
    """Return how many answers of a rule were lost and fixed by another one; None without a question."""
    one, other = (scored_column(rows, name).map(lambda of: of.defined.em) for name in (before, after))
    if not len(one):
        return {"correct_to_incorrect": None, "incorrect_to_correct": None}
    pairs = one.beside(other).counts()
    return {"correct_to_incorrect": pairs[True, False], "incorrect_to_correct": pairs[False, True]}


# -- what ships -----------------------------------------------------------------------------------------------------


def shipping_of(rows: DecidedRows, rule: str) -> Shipping:
    """Return what a rule ships if uncertified answers abstain, and if they do not."""
    column, scored = rows.rules[rule], scored_column(rows, rule)

    def ships(wanted: Callable[[Ruled], bool]) -> Shipped:
        units = scored.map(lambda of: (wanted(of), of.defined.em)).units(rows.texts)
        return shipped(sum(n for of, n in column.counts().items() if wanted(of)), len(rows), units)

    return {
        "abstain": ships(lambda of: of.answered and of.trusted),
        "consensus": ships(lambda of: of.answered),
    }


def shipped(n: int, of: int, units: Units[tuple[bool, bool]]) -> Shipped:
    """Return on how many questions an answer ships, and how often it is wrong there.

    Args:
        n: On how many an answer ships. of: how many questions there are.
        units: Of the questions with a gold answer, whether an answer ships and whether it is right. The bound counts a
            text once, as wrong if any of its answers that ship is wrong: copies of a question are not independent. It
            is never below the risk.
    """
    counts = Counter[tuple[bool, bool]]()
    for unit, times in units.items():
        for one in unit:
            counts[one] += times
    wrong = counts[True, False]
    among = counts[True, True] + wrong
    distinct, distinct_wrong = (
        sum(times for unit, times in units.items() if any(one in unit for one in marks))
        for marks in (((True, True), (True, False)), ((True, False),))
    )
    risk = wrong / among if among else None
    return {
        "questions": n,
        "coverage": 100.0 * n / of if of else None,
        "scored": among,
        "wrong": None if risk is None else wrong,
        "risk": None if risk is None else 100.0 * risk,
        "risk_at_most": None if risk is None else 100.0 * max(risk, proportion_upper_bound(distinct, distinct_wrong)),
    }
