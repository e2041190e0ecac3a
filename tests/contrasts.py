"""Contrasts from listed outcomes, as tests have them."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

from eldgr_dspy.statistics import Contrast, contrast_of_units


def by_cluster(rule: Iterable[Any], against: Iterable[Any], clusters: Iterable[Hashable], **options: Any) -> Contrast:
    """The contrast of listed outcomes, of which those of a cluster are one unit."""
    units = defaultdict[Hashable, list[tuple[Any, Any]]](list)
    for one, other, cluster in zip(rule, against, clusters, strict=True):
        units[cluster].append((one, other))
    return contrast_of_units(Counter(map(tuple, units.values())), **options)
