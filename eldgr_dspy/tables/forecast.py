"""The table of what a run would ask."""

from eldgr_dspy.figures.planning import Forecast, RoleForecast
from eldgr_dspy.tables.table import Table


def forecast_table(forecast: Forecast) -> Table:
    """Return the table of what `programs.run.forecast` says."""
    headers = ("pool", "role", "asked of", "at most", "journaled", "recorded", "to ask", "calls")
    rows = [
        (
            name,
            role,
            forecast["models"][role] or "embedded",
            f"{found['at_most']:,}",
            f"{found['journaled']:,}",
            f"{found['recorded']:,}",
            f"{found['to_ask']:,}",
            _calls(found),
        )
        for name, pool in forecast["pools"].items()
        for role, found in pool["roles"].items()
    ]
    unsaid = any(of["calls"] is None for pool in forecast["pools"].values() for of in pool["roles"].values())
    notes = ("Nobody was asked.", "+: at least one call a question; the role does not say how many it makes.")
    return Table("what this run would ask, in questions", headers, tuple(rows), notes[: 1 + unsaid])


def _calls(found: RoleForecast) -> str:
    return f"{found['to_ask']:,}+" if found["calls"] is None else f"{found['calls']:,}"
