"""Contrasts from counts and from listed outcomes, as tests have them."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from eldgr_dspy.statistics import Contrast, contrast_of_units


def from_counts(n: int, wins: int, losses: int, *, unit: float = 1.0, **options: Any) -> Contrast:
    """The contrast of right and wrong answers, of which each is worth a unit."""
    counts: Mapping[Any, int] = {((unit, 0),): wins, ((0, unit),): losses, ((0, 0),): n - wins - losses}
    return contrast_of_units({outcomes: count for outcomes, count in counts.items() if count}, **options)


def by_cluster(rule: Iterable[Any], against: Iterable[Any], clusters: Iterable[Hashable], **options: Any) -> Contrast:
    """The contrast of listed outcomes, of which those of a cluster are one unit."""
    units = defaultdict[Hashable, list[tuple[Any, Any]]](list)
    for one, other, cluster in zip(rule, against, clusters, strict=True):
        units[cluster].append((one, other))
    return contrast_of_units(Counter(map(tuple, units.values())), **options)
