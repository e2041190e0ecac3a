"""Adjust the tests of several contrasts by Holm's method, since each test is another chance to be wrong."""

from collections.abc import Sequence

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics.inputs import is_score


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
    adjusted, least = [0.0] * len(probabilities), 0.0
    for rank, index in enumerate(sorted(range(len(probabilities)), key=probabilities.__getitem__)):
        least = max(least, min(1.0, (len(probabilities) - rank) * float(probabilities[index])))
        adjusted[index] = least
    return tuple(adjusted)
