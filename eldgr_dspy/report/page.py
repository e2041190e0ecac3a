"""The report of an evaluation: one static HTML page that reads and prints without a network, a script or a server.

It shows `summary.json` and `record.json` in the tables of `eldgr_dspy.tables.pool` and in plots next to them, and
the decisions that changed something. Every number is in its input. All text
of a pool or an LM is data: escaped by the template engine, isolated from the direction of the text around it, and with
its control characters made visible.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.figures.results.record import Record
from eldgr_dspy.figures.results.summary import PoolFigures, Summary
from eldgr_dspy.formatting import figure, questions
from eldgr_dspy.named_judges import judge_in, unlabelled
from eldgr_dspy.report.changes import Changes, Kept
from eldgr_dspy.report.plots import bounds, calls, coverage, flips, forest, funnel
from eldgr_dspy.report.questions_page import MOST_QUESTIONS, link_to
from eldgr_dspy.report.templates import template
from eldgr_dspy.showing import printable
from eldgr_dspy.tables.audit import audits_in
from eldgr_dspy.tables.pool import effects_table, headline, paper_table, usage_table
from eldgr_dspy.tables.record import record_table
from eldgr_dspy.tables.run import AUDITS, POOL_TABLES
from eldgr_dspy.tables.table import Table

PLOTS = (forest, bounds, flips, funnel, coverage, calls)
"""The plots of a pool."""

_COVERED = (25, 50, 75)  # percent of the questions whose risk is in the table


def render_report(
    summary: Summary, changes: Changes, record: Record | None = None, beside: str | None = None
) -> Iterator[str]:
    """Return the page in chunks of text that encode to UTF-8, whatever the input holds.

    Args:
        summary: The content of `summary.json`.
        changes: What is shown of the decisions.
        record: The content of `record.json`.
        beside: The file name of the page of questions in the same folder, None without one.

    Raises:
        ArgumentError: a decision belongs to a pool that the summary does not name.
    """
    sections = list(_sections(summary, changes.of(summary), record, beside))
    recorded = None if record is None else _card(record, usage_table(summary))
    left_out = sum(pool["n"] for pool in summary["pools"].values()) > MOST_QUESTIONS
    stream = template("report.html.jinja").stream(
        sections=sections, card=recorded, questions=beside, left_out=left_out and f"{MOST_QUESTIONS:,}"
    )
    stream.enable_buffering(64)
    return map(printable, stream)


def _sections(
    summary: Summary, kept: Mapping[str, Kept], record: Record | None, beside: str | None
) -> Iterator[dict[str, Any]]:
    """Yield what the template shows of each pool."""
    effects = record["judge_effects"] if record else {}
    for name, pool in summary["pools"].items():
        judged = effects.get(name)
        tables = {kind: build(name, pool) for kind, build in POOL_TABLES.items()}
        own, shown = kept[name], kept[name].shown()
        yield {
            "name": name,
            "task": pool["task"],
            "way": shown_type(pool["task"]).way,
            "questions": questions(pool["n"]),
            "headline": headline(pool) or "No bound is known here.",
            "measured": _measured(pool),
            "judge": None if record is None else _judge(record),
            "tables": {
                "paper": paper_table(name, pool),
                **tables,
                "coverage": coverage_table(pool),
            },
            "audits": {kind: [POOL_TABLES[kind](name, audited) for audited in audits_in(pool)] for kind in AUDITS},
            "effects": effects_table(judged) if judged else None,
            "plots": {draw.__name__: draw(pool) for draw in PLOTS},
            "changes": shown,
            "link": None if beside is None else partial(link_to, beside),
            "n_changed": questions(own.n_changed),
            "more": own.n_changed - len(shown),
            "abstentions": own.abstentions.table("abstentions of eldgr's roles"),
            "failures": own.failures.table("failed calls of eldgr's roles"),
        }


def _measured(pool: PoolFigures) -> str:
    """Return the measured score of each rule, eldgr first, in a sentence."""
    rules = sorted(pool["rules"].items(), key=lambda item: unlabelled(item[0]) != "eldgr")
    scores = [f"{rule} {figure(of['em'])} %" for rule, of in rules if of["em"] is not None]
    return f"Measured: {', '.join(scores)}." if scores else "Nothing is scored: no question has a gold answer."


def _judge(record: Record) -> str:
    """Return who judged: the models that were asked, a recording, or the heuristic judge."""
    if names := [judge for role in record["consultations"] if (judge := judge_in(role)) is not None]:
        return ", ".join(names)
    models = dict.fromkeys(model["asked"] or "unknown model" for model in record["models"] if model["role"] == "judge")
    lm = record["roles"].get("judge", {}).get("lm") or {}
    sums = record["consultations"].get("judge")
    if models:
        return ", ".join(models)
    if sums and sums["recorded"]:
        return "recorded replies"
    if lm:
        return str(lm.get("model"))
    return "heuristic judge, no LM" if "judge" in record["roles"] else "not asked"


def coverage_table(pool: PoolFigures) -> Table | None:
    """Return for each rule the share of errors among the questions on which it is most confident, in percent.

    None without a curve.
    """
    rows = [(rule, *_risks(points)) for rule, points in pool["risk_coverage"].items() if points]
    headers = ("rule", "most trusted", *(f"{least} % or more" for least in _COVERED), "all")
    return Table("risk and coverage, %", headers, tuple(rows)) if rows else None


def _risks(points: Sequence[Sequence[float]]) -> Iterator[str]:
    """The risk at the first point, at the first that covers as much as is wanted, and at the last."""
    wanted = (next(point for point in points if point[0] >= least) for least in _COVERED)
    for covered, risk in (points[0], *wanted):
        yield f"{figure(risk)} of {figure(covered)}"
    yield figure(points[-1][1])


def _card(record: Record, usage: Table | None) -> dict[str, Any]:
    """What the template shows of the record."""
    pools = [(name, f"{pool['rows']:,}", pool["sha256"]) for name, pool in record["pools"].items()]
    silences = [
        (silence["role"], silence["outcome"], silence["kind"], silence["reason"], f"{silence['consultations']:,}")
        for silence in record["silences"]
    ]
    return {
        "stated": record_table(record),
        "usage": usage,
        "pools": Table("pools", ("pool", "questions", "sha256 of the content"), tuple(pools)),
        "silences": Table("silences", ("role", "outcome", "kind", "reason", "consultations"), tuple(silences)),
    }
