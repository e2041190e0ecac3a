"""The report of an evaluation: one static HTML page that reads and prints without a network, a script or a server."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.base.formatting import questions
from eldgr_dspy.figures.results.record_fields import Record
from eldgr_dspy.figures.results.summary_fields import PoolFigures, Summary
from eldgr_dspy.report.questions_page import MOST_QUESTIONS
from eldgr_dspy.report.templates import template
from eldgr_dspy.rule.named_judges import judge_in
from eldgr_dspy.showing import printable
from eldgr_dspy.tables.formats import as_html
from eldgr_dspy.tables.judges import usefulness
from eldgr_dspy.tables.pool import bound, usage_table
from eldgr_dspy.tables.record_tables import pools_table, record_table, silences_table
from eldgr_dspy.tables.run import pool_tables

_LIMITS = {
    "derivation": "A derivation certifies answers of this type, so eldgr never asks the judge. A checked derivation "
    "that differs from consensus replaces it. It can still be wrong.",
    "evidence": "Whatever a judge answers, a certified consensus is never overturned and an override is always "
    "certified. Right answers can still be lost.",
}


def render_report(summary: Summary, record: Record | None = None, beside: str | None = None) -> Iterator[str]:
    """Return the page in chunks of text that encode to UTF-8; `beside` is the file name of the page of questions."""
    card = []
    if record is not None:
        card = [record_table(record), usage_table(summary), silences_table(record), pools_table(record)]
    lacking, options = "the pools were not found when this page was made", "POOL... --format html"
    if sum(pool["n"] for pool in summary["pools"].values()) > MOST_QUESTIONS:
        lacking, options = f"there are more than {MOST_QUESTIONS:,}", "--format html --pages"
    stream = template("report.html.jinja").stream(
        sections=[_section(name, pool) for name, pool in summary["pools"].items()],
        judge=record and _judge(summary, record),
        card=[as_html(table) for table in card if table is not None],
        questions=beside,
        lacking=f"{lacking}. To make it, run eldgr report RUN {options}.",
    )
    stream.enable_buffering(64)
    return map(printable, stream)


def _section(name: str, pool: PoolFigures) -> dict[str, Any]:
    """What the template shows of a pool; its tables are without their lead, and without the name of the pool."""
    tables = (replace(of, title=of.title.removeprefix(f"{name}: "), lead="") for of in pool_tables(name, pool))
    return {
        "name": name,
        "about": f"{pool['task']}, {questions(pool['n'])}",
        "conclusion": " ".join(usefulness(pool)) or "No judge was compared here.",
        "bound": bound(pool) or "No bound is known here.",
        "tables": [as_html(table) for table in tables],
        "limits": _LIMITS[shown_type(pool["task"]).way],
    }


def _judge(summary: Summary, record: Record) -> str:
    """Return who judged: the models that were asked, a recording, or the heuristic judge."""
    if names := [name for role in summary["consultations"] if (name := judge_in(role)) is not None]:
        return ", ".join(names)
    models = dict.fromkeys(model["asked"] or "unknown model" for model in record["models"] if model["role"] == "judge")
    judge, sums = record["roles"].get("judge"), summary["consultations"].get("judge")
    if models:
        return ", ".join(models)
    if sums and sums["recorded"]:
        return "recorded replies"
    if judge is None:
        return "not asked"
    if isinstance(lm := judge.get("lm"), Mapping):
        return str(lm.get("model"))
    module = str(judge.get("module", "eldgr_dspy."))
    return "heuristic judge, no LM" if module.startswith("eldgr_dspy.") else f"{module}, no LM of DSPy's"
