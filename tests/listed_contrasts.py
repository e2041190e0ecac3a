"""Contrasts from listed outcomes, as tests have them."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

from eldgr_dspy.statistics import Contrast, contrast_of_units


def by_cluster(rule: Iterable[Any], against: Iterable[Any], clusters: Iterable[Hashable]) -> Contrast:
    """The contrast of listed outcomes, of which those of a cluster are one unit."""
    units = defaultdict[Hashable, list[tuple[Any, Any]]](list)
    for one, other, cluster in zip(rule, against, clusters, strict=True):
        units[cluster].append((one, other))
    return contrast_of_units(Counter(map(tuple, units.values())))


def from_counts(n: int, wins: int, losses: int, unit: float = 1.0) -> Contrast:
    """The contrast of right and wrong, from its counts."""
    return contrast_of_units({((unit, 0.0),): wins, ((0.0, unit),): losses, ((0.0, 0.0),): n - wins - losses})
