"""The table of the questions that a run would ask."""

from eldgr_dspy.figures.planning import Forecast, RoleForecast
from eldgr_dspy.named_judges import role_of
from eldgr_dspy.tables.table import Table
from eldgr_dspy.words import is_role


def forecast_table(forecast: Forecast) -> Table:
    """Return the table of the result of `programs.run.forecast`."""
    headers = ("pool", "role", "asked of", "at most", "journaled", "recorded", "to ask", "calls")
    rows = [
        (
            name,
            role,
            forecast["models"][role] or ("heuristic" if is_role(role_of(role)) else "own code"),
            f"{counts['at_most']:,}",
            f"{counts['journaled']:,}",
            f"{counts['recorded']:,}",
            f"{counts['to_ask']:,}",
            _calls(counts),
        )
        for name, pool in forecast["pools"].items()
        for role, counts in pool["roles"].items()
    ]
    unsaid = any(of["calls"] is None for pool in forecast["pools"].values() for of in pool["roles"].values())
    notes = ("Nobody was asked.", "+: at least one call a question; the role does not say how many it makes.")
    return Table("what this run would ask, in questions", headers, tuple(rows), notes[: 1 + unsaid])


def _calls(counts: RoleForecast) -> str:
    return f"{counts['to_ask']:,}+" if counts["calls"] is None else f"{counts['calls']:,}"
