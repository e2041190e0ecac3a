"""Contrasts by their wins and losses."""

from typing import Any

from eldgr_dspy.statistics import mcnemar
from tests.figures import contrast_figures

LEVEL: dict[str, Any] = {"power": 0.8, "alpha": 0.05}


def lead(wins: int, losses: int, n: int, **changes: Any) -> Any:
    found = {"wins": wins, "losses": losses, "p": mcnemar(wins, losses), "delta": 100 * (wins - losses) / n}
    return contrast_figures("eldgr", "majority") | found | changes
