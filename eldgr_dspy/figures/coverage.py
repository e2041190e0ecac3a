"""Risk and coverage: how often a rule is wrong on the questions on which it is most confident, or that it certifies.

A rule that may abstain answers only the questions on which it is most confident, and is wrong on some of these
(selective classification: El-Yaniv & Wiener 2010, "On the foundations of noise-free selective classification"). In the
curve no rule abstains: it shows how well certificate and votes predict the errors of one run. It is not a test, and was
not used to choose the order. `shipped` is one point, fixed beforehand, with a bound.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

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
    counts = Counter(decided)
    total, covered, wrong = counts.total(), 0, 0
    points = []
    for confidence in sorted({confidence for confidence, _ in counts}, reverse=True):
        covered += counts[confidence, True] + counts[confidence, False]
        wrong += counts[confidence, False]
        points.append([100.0 * covered / total, 100.0 * wrong / covered])
    every = -(-len(points) // MOST_POINTS)
    return points[::-1][::every][::-1] if points else []


def shipped(ships: NDArray[np.bool_], right: NDArray[np.int8], texts: NDArray[np.int64]) -> Shipped:
    """Return on how many questions an answer ships, and how often it is wrong there.

    Args:
        ships: For each question, whether an answer ships.
        right: For each question, 1 if the answer is right, 0 if it is wrong, and negative without a gold answer.
        texts: For each question with a gold answer, the number of its text. The bound counts a text once, as wrong if
            any of its answers that ship is wrong: copies of a question are not independent. It is never below the risk.
    """
    n, scored = int(ships.sum()), right >= 0
    among = ships[scored]
    wrong = among & (right[scored] == 0)
    distinct, distinct_wrong = (int(np.unique(texts[marks]).size) for marks in (among, wrong))
    risk = float(wrong.sum() / among.sum()) if distinct else None
    return {
        "questions": n,
        "coverage": 100.0 * n / ships.size if ships.size else None,
        "scored": int(among.sum()),
        "wrong": None if risk is None else int(wrong.sum()),
        "risk": None if risk is None else 100.0 * risk,
        "risk_at_most": None if risk is None else 100.0 * max(risk, proportion_upper_bound(distinct, distinct_wrong)),
    }
