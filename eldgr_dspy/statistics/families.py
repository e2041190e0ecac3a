"""Several contrasts in one table: each test is another chance to be wrong, and Holm's method accounts for it."""

from collections.abc import Sequence

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics.inputs import is_score


def holm(probabilities: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's adjusted probabilities, in the order given.

    An adjusted probability of at most alpha rejects; the chance of any false rejection in the family is then at most
    alpha, whatever the tests have to do with each other. Source: Holm (1979), "A simple sequentially rejective multiple
    test procedure".

    Args:
        probabilities: one p a contrast, each from 0 to 1; an empty family is returned as it is.

    Raises:
        ArgumentError: a value is no probability; its position is named.
    """
    for position, p in enumerate(probabilities):
        if not (is_score(p) and 0.0 <= p <= 1.0):
            raise ArgumentError(
                f"probabilities[{position}]={p!r} is no probability; leave a contrast without one out of the family."
            )
    adjusted, least = [0.0] * len(probabilities), 0.0
    for rank, index in enumerate(sorted(range(len(probabilities)), key=probabilities.__getitem__)):
        least = max(least, min(1.0, (len(probabilities) - rank) * float(probabilities[index])))
        adjusted[index] = least
    return tuple(adjusted)
