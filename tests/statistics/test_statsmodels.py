"""Statsmodels, which knows nothing of this package, finds the same: McNemar and Holm."""

from importlib import import_module
from typing import Any

import pytest

from eldgr_dspy.statistics import holm, mcnemar

tables: Any = import_module("statsmodels.stats.contingency_tables")
multitest: Any = import_module("statsmodels.stats.multitest")


@pytest.mark.parametrize(("wins", "losses"), [(17, 3), (20, 8), (6, 0), (1, 1), (300, 250)])
def test_mcnemar(wins: int, losses: int) -> None:
    result = tables.mcnemar([[90, wins], [losses, 10]], exact=True)
    assert mcnemar(wins, losses) == pytest.approx(result.pvalue, rel=1e-9)


def test_holm() -> None:
    probabilities = [0.0357, 0.0026, 0.1435, 0.0357, 0.9, 0.0]
    assert holm(probabilities) == pytest.approx(multitest.multipletests(probabilities, method="holm")[1])
