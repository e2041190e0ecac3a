"""Rank a whole pool lexicographically: always by certificates first, then consensus, then scores."""

from collections.abc import Sequence


def rank(
    supported: Sequence[bool], in_consensus: Sequence[bool], scores: Sequence[float | None] | None = None
) -> tuple[int, ...]:
    """Return the pool indices, best first.

    Args:
        supported: For each candidate, whether its class is certified, or its certificate is inapplicable and it is not
            a refusal.
        in_consensus: For each candidate, whether it belongs to the consensus's class.
        scores: An auxiliary score a candidate, higher is better, None where undefined (ranked after all defined ones).

    Supported candidates come before the others; among the supported, consensus breaks the first tie; then the score
    decides; then the position. A score therefore never moves a candidate across strata (law 13), and `rank(...)[0]` may
    differ from the answer that ships: if consensus is uncertified, another candidate is certified and the judge
    abstains, the rank begins with that other candidate while consensus ships.

    Source: the group rank after Eq. 4 of the paper. The position as the last tie-break is ours.
    """
    values = scores if scores is not None else [None] * len(supported)

    def key(index: int) -> tuple[bool, bool, bool, float]:
        score = values[index]
        behind = not (supported[index] and in_consensus[index])
        return (not supported[index], behind, score is None, -(score or 0.0))

    return tuple(sorted(range(len(supported)), key=key))
