"""What holds for new questions and for several tests: a bound on a share, options that lose little, Holm's method.

An option is a name, such as that of a rule. It loses a question on which it may do harm. A chain lists options from
narrow to wide, in an order that was fixed before the losses were seen.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile

import numpy as np

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics.number_checks import inside, is_score, whole
from eldgr_dspy.statistics.resampling import LEVEL


def proportion_upper_bound(n: int, count: int, *, level: float = LEVEL) -> float:
    """Return the exact one-sided upper confidence bound on a probability, from 0 to 1.

    The bound is below the true probability in at most 1 - `level` of all samples. This holds for questions that are
    drawn independently from the same source, and for a rule that was fixed before they were seen.
    Source: Clopper & Pearson (1934).

    Args:
        n: All questions, at least 1. count: those with the event, such as a wrong answer.
        level: Strictly between 0 and 1.

    Raises:
        ArgumentError: impossible counts, or a level out of range.
    """
    from scipy.special import betaincinv

    n, level = whole("n", n, 1), inside("level", level)
    count = whole("count", count, 0, n)
    return 1.0 if count == n else float(betaincinv(count + 1, n - count, level))


def passing(chains: Sequence[Sequence[str]], losses: Mapping[str, int], n: int, share: float) -> list[list[str]]:
    """Return for each chain the options that pass: each is tested in turn, up to the first that fails.

    With 95 % confidence, every option that passes loses at most `share` of new questions, as its upper bound says. The
    probability of an error is divided evenly among the chains. Source: fixed-sequence testing, as in "Learn then Test"
    (Angelopoulos et al. 2021).

    Args:
        chains: Options in the order in which they are tested.
        losses: For each option, on how many of the `n` questions it loses.
        n: All questions; if it is 0, nothing passes.
        share: Strictly between 0 and 1.

    Raises:
        ArgumentError: impossible counts, or a number out of range.
    """
    share, level = inside("share", share), 1.0 - (1.0 - LEVEL) / max(len(chains), 1)

    def passes(option: str) -> bool:
        return n > 0 and proportion_upper_bound(n, losses[option], level=level) <= share

    return [[*takewhile(passes, chain)] for chain in chains]


def questions_without_loss(share: float, *, chains: int = 1) -> int:
    """Return the fewest questions with which an option that loses none passes the test of `passing`.

    Raises:
        ArgumentError: a share out of range.
    """
    return math.ceil(math.log((1.0 - LEVEL) / max(chains, 1)) / math.log1p(-inside("share", share)))


def holm(probabilities: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's adjusted probabilities, in the order given.

    An adjusted probability of at most alpha rejects; the chance of any false rejection in the family is then at most
    alpha, however the tests depend on each other. Source: Holm (1979), "A simple sequentially rejective multiple
    test procedure".

    Args:
        probabilities: one p a contrast, each from 0 to 1; an empty family is returned as it is.

    Raises:
        ArgumentError: a value is not a probability; the message names its position.
    """
    for position, p in enumerate(probabilities):
        if not (is_score(p) and 0.0 <= p <= 1.0):
            raise ArgumentError(
                f"probabilities[{position}] must be from 0 to 1; got {p!r}. Leave out a contrast without a p."
            )
    rising = np.argsort(probabilities)
    times = np.arange(len(probabilities), 0, -1)
    maxima = np.maximum.accumulate(np.minimum(1.0, times * np.array(probabilities, dtype=np.float64)[rising]))
    return tuple(maxima[np.argsort(rising)].tolist())
