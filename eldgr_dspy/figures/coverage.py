"""Risk and coverage: how often a rule errs on the questions on which it is most to be trusted.

A rule that may stay silent answers the share of questions of which it is surest, and errs on some of these (selective
classification: El-Yaniv & Wiener 2010, "On the foundations of noise-free selective classification"). Here nothing stays
silent: the curve describes what certificate and votes say of the errors of one run. It tests nothing, and the order was
not chosen by it.
"""

from collections import Counter
from collections.abc import Iterable

MOST_POINTS = 100
"""How many points a curve has at most; of more distinct confidences some are left out, evenly, and never the last."""

Confidence = tuple[bool, float]
"""Whether what shipped is certified or its certificate inapplicable, and the share of the candidates that vote for
consensus; a greater one is trusted more."""


def risk_coverage(decided: Iterable[tuple[Confidence, bool]]) -> list[list[float]]:
    """Return the curve of a rule: points of coverage and risk, both in percent, from most trusted to all.

    Args:
        decided: For each question with a gold answer, the confidence in what shipped, and whether it is right.

    Returns:
        One point a distinct confidence: the share of questions with at least that, and the share of these that are
        wrong. The last has coverage 100, and what accuracy lacks of 100 as its risk. Empty without questions.
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
