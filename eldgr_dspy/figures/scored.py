"""The figures of a rule over the questions with a gold answer: scores, contrasts, flips, risk and coverage.

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

MOST_POINTS = 100
"""The most points of a curve; of more distinct confidences some are left out, evenly, but never the last."""

Confidence = tuple[bool, float]
"""Whether the answer ships under `uncertified="abstain"`, and the share of the candidates that vote for consensus.
Larger is more confident."""


def scored_column(rows: DecidedRows, rule: str) -> Column[Ruled]:
    """Return what a rule, which has decided all questions, decided on those with a gold answer."""
    return rows.rules[rule].where(rows.scored)


def scores_of(rows: DecidedRows, rule: str) -> Scores:
    """Return a rule's scores in percent; with F1 if answers are graded."""
    return _means(scored_column(rows, rule).map(lambda of: of.known).counts(), graded=rows.type.has_f1)


def official_of(rows: DecidedRows, rule: str) -> Scores | None:
    """Return a rule's official scores, of the raw texts; None if each is the same as the score."""
    column = scored_column(rows, rule)
    if all(of.official is None for of in column):
        return None
    return _means(column.map(lambda of: of.official or of.known).counts(), graded=rows.type.has_f1)


def _means(counts: Mapping[Score, int], *, graded: bool) -> Scores:
    n = sum(counts.values())
    right = sum(times for score, times in counts.items() if score.em)
    f1 = float(sum(Fraction(score.f1 or 0.0) * times for score, times in counts.items()))
    return {"em": 100.0 * right / n if n else None, "f1": 100.0 * f1 / n if n and graded else None}


def contrast_of(rows: DecidedRows, rule: str, against: str) -> Paired:
    """Return the contrast of two rules, of F1 too where all answers have one; copies of a question count once."""
    one, other = (scored_column(rows, name).map(lambda of: of.known) for name in (rule, against))
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
    one, other = (scored_column(rows, name).map(lambda of: of.known.em) for name in (before, after))
    if not len(one):
        return {"correct_to_incorrect": None, "incorrect_to_correct": None}
    pairs = one.beside(other).counts()
    return {"correct_to_incorrect": pairs[True, False], "incorrect_to_correct": pairs[False, True]}


# -- risk and coverage ------------------------------------------------------------------------------------------------


def coverage_of(rows: DecidedRows, rule: str) -> list[list[float]]:
    """Return a rule's curve of risk and coverage."""
    shares = rows.facts.map(lambda facts: facts.share).where(rows.scored)
    marks = scored_column(rows, rule).map(lambda of: (of.trusted, of.known.em)).beside(shares)
    return risk_coverage(marks.map(lambda of: ((of[0][0], of[1]), of[0][1])).counts())


def risk_coverage(counts: Mapping[tuple[Confidence, bool], int]) -> list[list[float]]:
    """Return the curve of a rule: points of coverage and risk, both in percent, from most trusted to all.

    A rule that may abstain answers only the questions on which it is most confident, and is wrong on some of these
    (selective classification: El-Yaniv & Wiener 2010, "On the foundations of noise-free selective classification"). In
    the curve no rule abstains: it shows how well certificate and votes predict the errors of one run. It is not a test,
    and was not used to choose the order. `shipping_of` is one point, fixed beforehand, with a bound.

    Args:
        counts: How many questions with a gold answer have which confidence in what shipped, right or wrong.

    Returns:
        One point for each distinct confidence: the share of questions with at least that confidence, and the share of
        these that are wrong. The last has coverage 100, and as risk 100 minus the accuracy. Empty without questions.
    """
    total, covered, wrong = sum(counts.values()), 0, 0
    points = []
    for confidence in sorted({confidence for confidence, _ in counts}, reverse=True):
        missed = counts.get((confidence, False), 0)
        covered, wrong = covered + counts.get((confidence, True), 0) + missed, wrong + missed
        points.append([100.0 * covered / total, 100.0 * wrong / covered])
    every = -(-len(points) // MOST_POINTS)
    return points[::-1][::every][::-1] if points else []


def shipping_of(rows: DecidedRows, rule: str) -> Shipping:
    """Return what a rule ships if uncertified answers abstain, and if they do not."""
    column, scored = rows.rules[rule], scored_column(rows, rule)

    def ships(wanted: Callable[[Ruled], bool]) -> Shipped:
        units = scored.map(lambda of: (wanted(of), of.known.em)).units(rows.texts)
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
