"""The report of an evaluation: one static HTML page that reads and prints without a network, a script or a server.

It shows `summary.json` and `record.json` in the tables of `eldgr_dspy.tables`, with a plot of the bounds. Every number
is in its input. All text of a pool or an LM is data: escaped, isolated from the direction of the text around it, and
with its control characters made visible.
"""

from collections.abc import Iterator
from typing import Any

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.figures.results.record import Record
from eldgr_dspy.figures.results.summary import PoolFigures, Summary
from eldgr_dspy.formatting import figure, questions
from eldgr_dspy.named_judges import judge_in, unlabelled
from eldgr_dspy.report.plots import bounds
from eldgr_dspy.report.questions_page import MOST_QUESTIONS
from eldgr_dspy.report.templates import template
from eldgr_dspy.showing import printable
from eldgr_dspy.tables.baselines import usefulness
from eldgr_dspy.tables.formats import as_html
from eldgr_dspy.tables.pool import bound, usage_table
from eldgr_dspy.tables.record import effects_table, pools_table, record_table, silences_table
from eldgr_dspy.tables.run import pool_tables
from eldgr_dspy.tables.table import Table


def render_report(summary: Summary, record: Record | None = None, beside: str | None = None) -> Iterator[str]:
    """Return the page in chunks of text that encode to UTF-8, whatever the input holds.

    Args:
        summary: The content of `summary.json`.
        record: The content of `record.json`.
        beside: The file name of the page of questions in the same folder, None without one.
    """
    card = list[Table | None]()
    if record is not None:
        card = [record_table(record), effects_table(record), usage_table(summary)]
        card += [silences_table(record), pools_table(record)]
    left_out = sum(pool["n"] for pool in summary["pools"].values()) > MOST_QUESTIONS
    stream = template("report.html.jinja").stream(
        sections=[*_sections(summary, record)],
        card=[as_html(table) for table in card if table is not None],
        questions=beside,
        left_out=left_out and f"{MOST_QUESTIONS:,}",
    )
    stream.enable_buffering(64)
    return map(printable, stream)


def _sections(summary: Summary, record: Record | None) -> Iterator[dict[str, Any]]:
    """Yield what the template shows of each pool."""
    for name, pool in summary["pools"].items():
        yield {
            "name": name,
            "task": pool["task"],
            "way": shown_type(pool["task"]).way,
            "questions": questions(pool["n"]),
            "conclusion": " ".join(usefulness(pool)) or "No judge was compared here.",
            "bound": bound(pool) or "No bound is known here.",
            "measured": _measured(pool),
            "judge": None if record is None else _judge(summary, record),
            "tables": [as_html(_without(name, table)) for table in pool_tables(name, pool)],
            "bounds": bounds(pool),
        }


def _without(pool: str, table: Table) -> Table:
    """A table without its lead, and without the name of its pool, which the section has."""
    return Table(table.title.removeprefix(f"{pool}: "), table.headers, table.rows, table.notes)


def _measured(pool: PoolFigures) -> str:
    """Return the measured score of each rule, eldgr first, in a sentence."""
    rules = sorted(pool["rules"].items(), key=lambda item: unlabelled(item[0]) != "eldgr")
    scores = [f"{rule} {figure(of['em'])} %" for rule, of in rules if of["em"] is not None]
    return f"Measured: {', '.join(scores)}." if scores else "Nothing is scored: no question has a gold answer."


def _judge(summary: Summary, record: Record) -> str:
    """Return who judged: the models that were asked, a recording, or the heuristic judge."""
    if names := [judge for role in summary["consultations"] if (judge := judge_in(role)) is not None]:
        return ", ".join(names)
    models = dict.fromkeys(model["asked"] or "unknown model" for model in record["models"] if model["role"] == "judge")
    lm = record["roles"].get("judge", {}).get("lm") or {}
    sums = summary["consultations"].get("judge")
    if models:
        return ", ".join(models)
    if sums and sums["recorded"]:
        return "recorded replies"
    if lm:
        return str(lm.get("model"))
    return "heuristic judge, no LM" if "judge" in record["roles"] else "not asked"
