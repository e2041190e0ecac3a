"""A share of a sample, and the largest probability that is still plausible behind it."""

from scipy.special import betaincinv

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics.inputs import inside, questions
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
    n, count, level = questions("n", n, 1), questions("count", count, 0), inside("level", level, "Give 0.95 for 95%")
    if count > n:
        raise ArgumentError(f"count must be at most n={n!r}, because it counts some of these; got {count!r}.")
    return 1.0 if count == n else float(betaincinv(count + 1, n - count, level))
