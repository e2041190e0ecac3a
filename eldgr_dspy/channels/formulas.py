"""The formulas of the seven channels: one function a channel, over columns of numbers."""

import numpy as np

from eldgr_dspy.channels.undefined import Scores, Values, each, refuse
from eldgr_dspy.errors import ArgumentError

SOURCES = 3  # M: how many independent sources make `triang` 1
BETA = 0.1  # beta: how fast `min` falls with each new unsupported claim


def logic(f: Values) -> Scores:
    """R_logic = (1 + f_NLI(s_t | Q, s_<t)) / 2: whether a step follows from the text before it, true or not.

    Args:
        f: In [-1, 1], the premise being the question and the earlier steps.

    Raises:
        ArgumentError: A value is out of range. Every function here raises this.
    """
    return each(lambda f: (1 + f) / 2, Scores.of(f, "f", -1, 1))


def fact(best: Values) -> Scores:
    """R_fact = (1 + max_d f_NLI(s_t | d)) / 2: whether the evidence supports a step.

    If nothing was retrieved from an existing corpus, it is neutral, so 0.5; without a corpus it is undefined (both
    ours). One neutral document among contradicting ones gives 0.5 as well: see `Grounding.least`.

    Args:
        best: In [-1, 1]; `Grounding.best()`.
    """
    return each(lambda best: (1 + best) / 2, Scores.of(best, "best", -1, 1))


def epist(confidence: Values, strength: Values) -> Scores:
    """R_epist = 1 - |c_t - e_t|: whether a step is as confident as its evidence is strong.

    Args:
        confidence: c_t in [0, 1], from the tokens of the step; undefined without token probabilities.
        strength: e_t in [0, 1]; the score of `fact` (ours; the paper does not define it).
    """
    return each(
        lambda c, e: 1 - np.abs(c - e), Scores.of(confidence, "confidence", 0, 1), Scores.of(strength, "strength", 0, 1)
    )


def info(novelty: Values, progress: Values) -> Scores:
    """R_info = (nov_t + prog_t) / 2: whether a step says something new and something to the point.

    Args:
        novelty: nov_t in [0, 1]; `overlap.novelty`.
        progress: prog_t in [0, 1]; `overlap.progress`.
    """
    return each(lambda n, p: (n + p) / 2, Scores.of(novelty, "novelty", 0, 1), Scores.of(progress, "progress", 0, 1))


def triang(independent: Values, needed: int = SOURCES) -> Scores:
    """R_triang = min(n_indep / M, 1): whether several sources entail a step.

    Args:
        independent: n_indep, whole numbers; `overlap.independent_sources` of the documents that entail the step.
        needed: M, at least 1.
    """
    if not needed >= 1:  # NaN is not
        raise ArgumentError(f"needed must be at least 1 source; got {needed}. The paper has 3.")
    return each(lambda n: np.minimum(n / needed, 1.0), _counts(independent, "independent"))


def adv(grounded: Values, counterfactual: Values) -> Scores:
    """R_adv = sigmoid(R_fact(s_t) - R_fact(s_t^counter)): whether support falls when the meaning changes.

    It is in [0.269, 0.731], since both are in [0, 1]; at 0.5 the evidence does not distinguish the two.

    Args:
        grounded: R_fact of the step.
        counterfactual: R_fact of the changed step under the same documents; undefined if nothing could be changed.
    """
    return each(
        lambda r, c: 1 / (1 + np.exp(c - r)),
        Scores.of(grounded, "grounded", 0, 1),
        Scores.of(counterfactual, "counterfactual", 0, 1),
    )


def minimality(unsupported: Values, beta: float = BETA) -> Scores:
    """R_min = exp(-beta n_new): whether a step avoids new unsupported claims. Its record key is `min`.

    Args:
        unsupported: n_new, whole numbers; `overlap.new_unsupported`, undefined for a step that claims nothing.
        beta: Above 0.
    """
    if not 0 < beta < np.inf:
        raise ArgumentError(f"beta must be above 0, so that the score falls; got {beta}. The paper has 0.1.")
    return each(lambda n: np.exp(-beta * n), _counts(unsupported, "unsupported"))


def _counts(values: Values, name: str) -> Scores:
    counts = Scores.of(values, name, 0)
    if (fractions := np.flatnonzero(counts.numbers % 1)).size:
        refuse(name, int(fractions[0]), float(counts.numbers[fractions[0]]), 0)
    return counts
