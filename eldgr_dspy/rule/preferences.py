"""Which candidates of a question to prefer to which others, for training on preferences.

The candidates are parted and not scored: each of the upper part is better than each of the lower one. The parts are the
certified and the uncertified candidates, or the right and the wrong ones. Source: the paper proposes to part candidates
by their certificate; pairs of them are ours.
"""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["paired", "unanswered", "one_class", "no_chosen", "no_rejected", "against_gold"]


@dataclass(frozen=True, slots=True)
class Preferences:
    """The pairs of one question.

    Attributes:
        outcome: `paired`, or why there is no pair: no candidate votes, all vote together, the upper or the lower part
            is empty, or each pair would reject a right answer for a wrong one.
        pairs: The chosen and the rejected candidate of each pair, by pool index.
        dropped: How many pairs were left out because they would reject a right answer for a wrong one.
    """

    outcome: Outcome
    pairs: tuple[tuple[int, int], ...] = ()
    dropped: int = 0


def preferences(
    classes: Sequence[str | None],  # equal keys vote together; a candidate of None does not vote and is in no pair
    texts: Sequence[str],  # of equal ones only one is used, in the upper part if it is in both
    upper: Sequence[bool | None],  # True in the upper part, False in the lower one; a candidate of None is in no pair
    right: Sequence[bool] | None = None,  # whether each answer is right; if None, no pair is dropped
    most: int = 1,  # how many pairs there may be
) -> Preferences:
    """Return the pairs of one question; each argument but `most` has one entry a candidate."""
    votes = Counter(key for key in classes if key is not None)
    if len(votes) < 2:
        return Preferences("one_class" if votes else "unanswered")
    # First the class with most votes, then the earliest class; within a class, the earliest candidate.
    in_order = [index for key, _ in votes.most_common() for index, own in enumerate(classes) if own == key]
    chosen = _distinct([index for index in in_order if upper[index]], texts)
    rejected = _distinct([index for index in in_order if upper[index] is False], texts, but=chosen)
    if not chosen or not rejected:
        return Preferences("no_rejected" if chosen else "no_chosen")
    better, worse = [*chosen.values()], [*rejected.values()]
    pairs, dropped = list[tuple[int, int]](), 0
    # The first of one part meets the first of the other; further pairs follow by the sum of their places.
    for one, other in _by_places(len(better), len(worse)):
        pair = better[one], worse[other]
        if right is not None and right[pair[1]] and not right[pair[0]]:
            dropped += 1
        else:
            pairs.append(pair)
        if len(pairs) == most:
            break
    return Preferences("paired" if pairs else "against_gold", tuple(pairs), dropped)


def taken_apart(result: Preferences, right: Sequence[bool]) -> Preferences:
    """Return the pairs that may be taken apart into single candidates, and drop the others. The first always stays."""
    pairs = list[tuple[int, int]]()
    for pair in result.pairs:
        together = [*pairs, pair]
        # No right answer is rejected if any wrong one is chosen, in another pair either.
        if all(right[chosen] for chosen, _ in together) or not any(right[rejected] for _, rejected in together):
            pairs = together
    return Preferences(result.outcome, tuple(pairs), result.dropped + len(result.pairs) - len(pairs))


def _distinct(indices: Sequence[int], texts: Sequence[str], but: Container[str] = ()) -> dict[str, int]:
    first = dict[str, int]()
    for index in indices:
        if texts[index] not in but:
            first.setdefault(texts[index], index)
    return first


def _by_places(n: int, m: int) -> Iterator[tuple[int, int]]:
    for total in range(n + m - 1):
        for first in range(max(0, total - m + 1), min(n, total + 1)):
            yield first, total - first
