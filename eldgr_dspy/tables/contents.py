"""The table of a pool's contents."""

from collections.abc import Mapping
from typing import Any, cast

from eldgr_dspy.figures.contents import Column, Ends, Percent, PoolContents, Shares
from eldgr_dspy.figures.results import headings
from eldgr_dspy.formatting import questions
from eldgr_dspy.tables.table import Table, table_of


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
    if (only := contents["spelling_only"])["count"]:
        pairs = (f"{answer!r} for {spelling!r} of the evidence" for answer, spelling in only["examples"].items())
        notes.append(f"Uncertified for their spelling only: {only['count']:,} candidates, such as {'; '.join(pairs)}.")
    if columns := contents.get("columns"):
        notes.append(f"Stated of candidates: {', '.join(_column(name, one) for name, one in columns.items())}.")
    title = f"{name}: {contents['task']}, {questions(contents['n'])}"
    return table_of(title, "what the pool holds", Percent, "count of percent", rows, notes)


def _column(name: str, column: Column) -> str:
    counts = f"{name} {column['count']:,} of {column['of']:,}"
    return counts if column["lowest"] is None else f"{counts} from {column['lowest']:g} to {column['highest']:g}"


def _ends(ends: Ends) -> str:
    fewest, most = f"{ends['fewest']:,}", f"{ends['most']:,}"
    return fewest if fewest == most else f"{fewest} to {most}"
