"""Risk and coverage: how often a rule is wrong on the questions on which it is most confident, or that it certifies.

A rule that may abstain answers only the questions on which it is most confident, and is wrong on some of these
(selective classification: El-Yaniv & Wiener 2010, "On the foundations of noise-free selective classification"). In the
curve no rule abstains: it shows how well certificate and votes predict the errors of one run. It is not a test, and was
not used to choose the order. `shipped` is one point, fixed beforehand, with a bound.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from eldgr_dspy.figures.distinct import Units, by_question
from eldgr_dspy.figures.results.summary import Shipped
from eldgr_dspy.statistics import proportion_upper_bound

MOST_POINTS = 100
"""The most points of a curve; of more distinct confidences some are left out, evenly, but never the last."""

Confidence = tuple[bool, float]
"""Whether the answer ships under `uncertified="abstain"`, and the share of the candidates that vote for consensus.
Larger is more confident."""


def risk_coverage(decided: Iterable[tuple[Confidence, bool]]) -> list[list[float]]:
    """Return the curve of a rule: points of coverage and risk, both in percent, from most trusted to all.

    Args:
        decided: For each question with a gold answer, the confidence in what shipped, and whether it is right.

    Returns:
        One point for each distinct confidence: the share of questions with at least that confidence, and the share of
        these that are wrong. The last has coverage 100, and as risk 100 minus the accuracy. Empty without questions.
    """
    return curve_of(Counter(decided))


def curve_of(counts: Mapping[tuple[Confidence, bool], int]) -> list[list[float]]:
    """Return the curve of `risk_coverage` from how many questions have which confidence, right or wrong."""
    total, covered, wrong = sum(counts.values()), 0, 0
    points = []
    for confidence in sorted({confidence for confidence, _ in counts}, reverse=True):
        missed = counts.get((confidence, False), 0)
        covered, wrong = covered + counts.get((confidence, True), 0) + missed, wrong + missed
        points.append([100.0 * covered / total, 100.0 * wrong / covered])
    every = -(-len(points) // MOST_POINTS)
    return points[::-1][::every][::-1] if points else []


def shipped(n: int, of: int, units: Units[tuple[bool, bool]]) -> Shipped:
    """Return on how many questions an answer ships, and how often it is wrong there.

    Args:
        n: On how many an answer ships. of: how many questions there are.
        units: Of the questions with a gold answer, whether an answer ships and whether it is right. The bound counts a
            text once, as wrong if any of its answers that ship is wrong: copies of a question are not independent. It
            is never below the risk.
    """
    counts = by_question(units)
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
