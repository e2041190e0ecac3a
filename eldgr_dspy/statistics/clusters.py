"""Contrasts over clusters: several seeds or samples of one question are one unit, since they err together.

If they counted as separate questions, every interval would be too narrow and every p too small.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.statistics.inputs import Counts, Floats, both, whole
from eldgr_dspy.statistics.paired import Contrast, contrast_of
from eldgr_dspy.statistics.resampling import LEVEL, RESAMPLES, SEED, Options, Sample

_ROUNDING = 1e-12  # sums whose difference is less, measured by their size, are the same sum


def contrast_by_cluster(
    rule: ArrayLike,
    against: ArrayLike,
    clusters: Sequence[str | int],
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = SEED,
) -> Contrast:
    """Return the contrast over clusters: each counts once, with the mean difference of its outcomes.

    `n`, `wins` and `losses` of the result are counts of clusters, and `p` is the exact sign test over them. Each
    cluster weighs the same, whatever its size; if all have the same size, `delta` is that of the outcomes.

    Args:
        rule: one finite number an outcome, shape (outcomes,).
        against: the same outcomes under the other rule.
        clusters: for each outcome the id of its question, a text or an integer.
        resamples: as in `paired_bootstrap`.
        level: as in `paired_bootstrap`.
        seed: as in `paired_bootstrap`.

    Raises:
        ArgumentError: as `paired_bootstrap`; or an outcome without a cluster.
    """
    options = Options.checked(resamples, level, seed)
    left, right = both(rule, against)
    codes = _codes(clusters, left.size)
    return contrast_of(Sample.of(_mean_differences(left, right, codes)), options)


def contrast_of_units(
    units: Mapping[tuple[tuple[float, float], ...], int],
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = SEED,
) -> Contrast:
    """Return the contrast of questions that were counted by their outcomes.

    It equals `contrast` on the same questions, or `contrast_by_cluster` if a unit has several outcomes. Memory and time
    depend on how many kinds of units there are, not on how many questions.

    Args:
        units: For each kind of unit its outcomes, each as (rule, against), and how many units are of that kind.
        resamples: as in `paired_bootstrap`.
        level: as in `paired_bootstrap`.
        seed: as in `paired_bootstrap`.

    Raises:
        ArgumentError: as `paired_bootstrap`; or a unit without an outcome, or a count below 1.
    """
    options = Options.checked(resamples, level, seed)
    for unit, times in units.items():
        if not unit:
            raise ArgumentError("units must have an outcome each; got an empty one. Leave it out.")
        whole("the count of a unit", times, 1)
    outcomes = [*chain.from_iterable(units)]
    left, right = both([of for of, _ in outcomes], [of for _, of in outcomes])
    sizes, times_each = [len(unit) for unit in units], np.array([*units.values()], dtype=np.int64)
    alone = max(sizes) == 1
    gaps = left - right if alone else _mean_differences(left, right, np.repeat(np.arange(len(sizes)), sizes))
    return contrast_of(Sample.counted(gaps, times_each), options)


def _codes(clusters: Sequence[str | int], outcomes: int) -> Counts:
    """Return a number from 0 for each outcome, the same for the same id."""
    if len(clusters) != outcomes:
        raise ArgumentError(
            f"clusters has {len(clusters)} ids for {outcomes} outcomes; give for each outcome the id of its question."
        )
    numbers: dict[str | int, int] = {}
    codes = np.empty(outcomes, dtype=np.int64)
    for position, id_ in enumerate(clusters):
        if not isinstance(id_, str | int | np.integer):
            raise ArgumentError(f"clusters[{position}] must be an id (text or an integer); got {id_!r}.")
        codes[position] = numbers.setdefault(id_, len(numbers))
    return codes


def _mean_differences(left: Floats, right: Floats, codes: Counts) -> Floats:
    """One mean difference a cluster; sums that differ only by rounding count as equal."""
    sizes = np.bincount(codes)
    sums = _sums(left, codes), _sums(right, codes)
    gaps = sums[0] - sums[1]
    gaps[np.abs(gaps) <= _ROUNDING * (_sums(np.abs(left), codes) + _sums(np.abs(right), codes))] = 0.0
    means: Floats = gaps / sizes
    return means


def _sums(values: Floats, codes: Counts) -> Floats:
    """The sum of each cluster, exactly the same in any order of its outcomes."""
    order = np.lexsort((values, codes))
    return np.bincount(codes[order], weights=values[order]).astype(np.float64)
