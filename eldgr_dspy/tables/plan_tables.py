"""The tables of what is known before a run: what a pool holds, what would be asked, what a gain needs."""

from collections.abc import Mapping
from typing import Any, cast

from eldgr_dspy.base.formatting import figure, questions, signed
from eldgr_dspy.figures.contents import Column, Ends, PoolContents, Shares
from eldgr_dspy.figures.planning import Forecast, RoleForecast
from eldgr_dspy.figures.remarks import spelling_notes
from eldgr_dspy.figures.results import headings
from eldgr_dspy.figures.results.record_fields import Share
from eldgr_dspy.rule.named_judges import role_of
from eldgr_dspy.tables.table import Columns, Table, columns_of, table_of
from eldgr_dspy.words import is_role


def contents_table(name: str, contents: PoolContents) -> Table:
    """Return the table of `figures.contents.Contents.figures`."""
    shares = cast(Mapping[str, Any], contents)
    rows: dict[str, Mapping[str, Any]] = {
        heading: shares[key] if shares[key]["of"] else {"of": 0} for key, heading in headings(Shares).items()
    }
    passages, characters = contents["evidence"]["passages"], contents["evidence"]["characters"]
    notes = [f"Candidates a question: {_ends(contents['candidates'])}."]
    if passages["most"]:
        notes.append(f"Evidence a question: {_ends(passages)} passages, {_ends(characters)} characters.")
    if contents["any_correct"]["of"] < contents["n"]:
        notes.append(f"With a gold answer: {questions(contents['any_correct']['of'])} of {contents['n']:,}.")
    notes += spelling_notes(contents["spelling_only"]["count"], contents["spelling_only"]["examples"])
    if columns := contents.get("columns"):
        notes.append(f"Stated of candidates: {', '.join(_column(name, one) for name, one in columns.items())}.")
    title = f"{name}: {contents['task']}, {questions(contents['n'])}"
    return table_of(title, "what the pool holds", columns_of(Share, "count of rate"), rows, notes)


def _column(name: str, column: Column) -> str:
    counts = f"{name} {column['count']:,} of {column['of']:,}"
    return counts if column["lowest"] is None else f"{counts} from {column['lowest']:g} to {column['highest']:g}"


def _ends(ends: Ends) -> str:
    fewest, most = f"{ends['fewest']:,}", f"{ends['most']:,}"
    return fewest if fewest == most else f"{fewest} to {most}"


def forecast_table(forecast: Forecast) -> Table:
    """Return the table of the result of `programs.run.forecast`."""
    columns: Columns = {
        "role": lambda of: of["role"],
        "asked of": lambda of: (
            forecast["models"][of["role"]] or ("heuristic" if is_role(role_of(of["role"])) else "own code")
        ),
        **columns_of(RoleForecast, "at_most journaled recorded to_ask"),
        "calls": lambda of: f"{of['to_ask']:,}+" if of["calls"] is None else f"{of['calls']:,}",
    }
    rows = [
        (name, {"role": role, **counts})
        for name, pool in forecast["pools"].items()
        for role, counts in pool["roles"].items()
    ]
    notes = ["Nobody was asked."]
    if any(of["calls"] is None for _, of in rows):
        notes.append("+: at least one call a question; the role does not say how many it makes.")
    return table_of("what this run would ask, in questions", "pool", columns, rows, notes)


def needed_table(needed: Mapping[str, Any]) -> Table:
    """Return the table of `eldgr plan`: how many questions a gain needs."""
    title = f"questions to see {signed(needed['gain'])} with power {needed['power']:g} at alpha {needed['alpha']:g}"
    columns: Columns = {
        "questions": lambda of: f"{of['questions']:,}",
        "power there": lambda of: figure(of["power_there"], 4),
        "wins–losses to expect": lambda of: f"{of['wins']:,.0f}–{of['losses']:,.0f}",
    }
    return table_of(title, "discordant %", columns, {figure(needed["discordant"]): needed})
