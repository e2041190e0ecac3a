"""The exact power of the exact McNemar test: how many questions a gain needs.

A comparison of right and wrong has two unknowns: the gain, which is wins minus losses as a share of the questions, and
the number of discordant questions. This number is binomial, and their split is binomial again. The power sums over both
without approximation. All shares are of the questions, from 0 to 1.
"""

from bisect import bisect_left

import numpy as np

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics.number_checks import Counts, inside, whole

ALPHA = 0.05
_MOST = 10**7  # questions; the sums grow with their root
_ROUNDING = 1e-12  # by which the probability of a tail may exceed alpha and still equal it
_DEVIATIONS = 10  # on either side of the mean, and the few below; the rest is less than the last bit of a sum
_FEW = 50


def mcnemar_power(n: int, gain: float, discordant: float, *, alpha: float = ALPHA) -> float:
    """Return the probability that the exact test on n questions rejects, with the rule in the lead.

    Args:
        n: how many questions, from 1 to ten million.
        gain: wins minus losses, as a share of all questions, from 0 to `discordant`.
        discordant: the share of questions that exactly one of the rules has right, above 0 and at most 1.
        alpha: the level of the two-sided test, strictly between 0 and 1.

    Raises:
        ArgumentError: a value out of its range.
    """
    return _power(whole("n", n, 1, _MOST), *_rates(gain, discordant), inside("alpha", alpha))


def questions_needed(gain: float, discordant: float, *, power: float = 0.8, alpha: float = ALPHA) -> int:
    """Return how many questions the exact test needs to detect a gain with a given power.

    With one question less the power is too low. If most questions are discordant, the power is not monotone in the
    number of questions, and a still smaller number may be enough too.

    Args:
        gain: above 0 and at most `discordant`. discordant: as in `mcnemar_power`.
        power: the probability wanted, strictly between 0 and 1. alpha: as in `mcnemar_power`.

    Raises:
        ArgumentError: a value out of its range, or more than ten million questions would be needed.
    """
    power, alpha = inside("power", power), inside("alpha", alpha)
    gain, discordant = _rates(gain, discordant)
    if gain == 0.0:
        raise ArgumentError(f"gain must be above 0; got {gain!r}.")
    n = 1 + bisect_left(range(1, _MOST + 1), power, key=lambda n: _power(n, gain, discordant, alpha))
    if n > _MOST:
        raise ArgumentError(
            f"A gain of {100.0 * gain:g} % with {100.0 * discordant:g} % discordant needs more than {_MOST:,} "
            "questions; give a larger gain or less power."
        )
    return n


def _rates(gain: float, discordant: float) -> tuple[float, float]:
    if not 0.0 < discordant <= 1.0:
        raise ArgumentError(
            f"discordant must be above 0 and at most 1; got {discordant!r}. Give the share of the questions that one "
            "rule alone has right, 0.06 for six in a hundred."
        )
    if not 0.0 <= gain <= discordant:
        raise ArgumentError(
            f"gain must be from 0 to discordant={discordant!r}, since wins minus losses are at most wins plus losses; "
            f"got {gain!r}."
        )
    return float(gain), float(discordant)


def _power(n: int, gain: float, discordant: float, alpha: float) -> float:
    from scipy.stats import binom

    mean, reach = n * discordant, _DEVIATIONS * (n * discordant * (1.0 - discordant)) ** 0.5 + _FEW
    counts = np.arange(max(0, int(mean - reach)), min(n, int(mean + reach) + 1) + 1)
    losses = _most_losses(counts, alpha)
    counts, losses = counts[losses >= 0], losses[losses >= 0]
    loss_share = (1.0 - gain / discordant) / 2.0  # share of losses among the discordant
    return float((binom.pmf(counts, n, discordant) * binom.cdf(losses, counts, loss_share)).sum())


def _most_losses(discordant: Counts, alpha: float) -> Counts:
    """The most losses for each number of discordant questions with an exact p of at most alpha; -1 if none will do."""
    from scipy.stats import binom

    enough = binom.ppf(alpha / 2.0, discordant, 0.5)  # the fewest with a tail of alpha / 2 or more
    over = binom.cdf(enough, discordant, 0.5) > alpha / 2.0 * (1.0 + _ROUNDING)
    return np.asarray(enough - over, dtype=np.int64)
