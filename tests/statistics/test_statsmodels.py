"""Statsmodels, which knows nothing of this package, finds the same: McNemar, Holm and TOST."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from eldgr_dspy.statistics import equivalence, holm, mcnemar

tables: Any = import_module("statsmodels.stats.contingency_tables")
multitest: Any = import_module("statsmodels.stats.multitest")
weights: Any = import_module("statsmodels.stats.weightstats")


@pytest.mark.parametrize(("wins", "losses"), [(17, 3), (20, 8), (6, 0), (1, 1), (300, 250)])
def test_mcnemar(wins: int, losses: int) -> None:
    found = tables.mcnemar([[90, wins], [losses, 10]], exact=True)
    assert mcnemar(wins, losses) == pytest.approx(found.pvalue, rel=1e-9)


def test_holm() -> None:
    probabilities = [0.0357, 0.0026, 0.1435, 0.0357, 0.9, 0.0]
    assert holm(probabilities) == pytest.approx(multitest.multipletests(probabilities, method="holm")[1])


def test_tost() -> None:
    rule, against = np.random.Generator(np.random.PCG64(4)).normal([[0.05], [0.0]], 0.3, size=(2, 80))
    p, below, above = weights.ttost_paired(rule, against, -0.1, 0.1)
    found = equivalence(rule, against, 0.1)
    assert (found.p, found.p_below, found.p_above) == pytest.approx((p, below[1], above[1]))
