"""The table of what a run would ask."""

from collections.abc import Mapping
from typing import Any

from eldgr_dspy.tables.table import Table


def forecast_table(forecast: Mapping[str, Any]) -> Table:
    """Return the table of what `programs.run.forecast` says."""
    headers = ("pool", "role", "asked of", "at most", "journaled", "recorded", "to ask", "calls")
    counts = ("at_most", "journaled", "recorded", "to_ask")
    asked = [(name, role, found) for name, pool in forecast["pools"].items() for role, found in pool["roles"].items()]
    rows = [
        (name, role, forecast["models"][role] or "embedded", *(f"{found[count]:,}" for count in counts), _calls(found))
        for name, role, found in asked
    ]
    unsaid = any(found["calls"] is None for _, _, found in asked)
    notes = ("Nobody was asked.", "+: at least one call a question; the role does not say how many it makes.")
    return Table("what this run would ask, in questions", headers, tuple(rows), notes[: 1 + unsaid])


def _calls(found: Mapping[str, Any]) -> str:
    return f"{found['to_ask']:,}+" if found["calls"] is None else f"{found['calls']:,}"
