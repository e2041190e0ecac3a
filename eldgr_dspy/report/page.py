"""The report of an evaluation: one static HTML page that reads and prints without a network, a script or a server.

It shows what `summary.json` and `record.json` say, in the figures of `eldgr_dspy.tables.pool` and in plots beside
them, and from the decisions those that changed something. Nothing is computed here that is not in its input. All text
of a pool or an LM is data: escaped by the template engine, isolated from the direction of the text around it, and with
its control characters made visible.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.formatting import UNDEFINED, figure, questions
from eldgr_dspy.report.browsing import link_to
from eldgr_dspy.report.changes import Kept
from eldgr_dspy.report.plots import bounds, calls, coverage, flips, forest, funnel
from eldgr_dspy.report.shown import template
from eldgr_dspy.showing import printable
from eldgr_dspy.tables.audit import funnel_table, outcomes_table, roles_table
from eldgr_dspy.tables.pool import (
    audit_table,
    bounds_table,
    cost_table,
    effects_table,
    headline,
    paper_table,
    pools_of,
    usage_table,
)
from eldgr_dspy.tables.record import record_table
from eldgr_dspy.tables.run import contrasts_table, graded_contrasts_table
from eldgr_dspy.tables.table import Table

_TABLES: dict[str, Callable[[Mapping[str, Any]], Sequence[Table | None]]] = {
    "paper": paper_table,
    "contrasts": contrasts_table,
    "graded": graded_contrasts_table,
    "bounds": bounds_table,
    "audit": audit_table,
    "outcomes": outcomes_table,
    "funnel": funnel_table,
    "roles": roles_table,
    "cost": cost_table,
}
PLOTS = (forest, bounds, flips, funnel, coverage, calls)
"""The plots of a pool."""

_COVERED = (25, 50, 75)  # percent of the questions whose risk stands in the table


def render_report(
    summary: Mapping[str, Any],
    decisions: Iterable[Mapping[str, Any]],
    record: Mapping[str, Any] | None = None,
    beside: str | None = None,
) -> Iterator[str]:
    """Return the page in chunks of text that encode to UTF-8, whatever the input holds.

    Args:
        summary: The content of `summary.json`. Under a pool's `withheld` a rule has a sentence, or the number of
            unasked questions a role.
        decisions: The rows of `decisions.jsonl`, read once and not kept; only those with rule `eldgr` are shown. A
            witness may also carry `title`, `before` and `after`: its passage's title and the text around the slice.
        record: The content of `record.json`.
        beside: The name of the page of questions that lies beside this one, None where there is none.

    Raises:
        ArgumentError: the summary has no pools, or a decision belongs to a pool that the summary does not name.
    """
    kept = {name: Kept() for name in pools_of(summary)}
    for row in decisions:
        if row["rule"] == "eldgr":
            _kept_of(row, kept).take(row)
    sections = list(_sections(summary, kept, (record or {}).get("judge_effects") or {}, beside))
    recorded = None if record is None else _card(record, usage_table(summary))
    stream = template("report.html.jinja").stream(sections=sections, card=recorded, questions=beside)
    stream.enable_buffering(64)
    return map(printable, stream)


def _kept_of(row: Mapping[str, Any], kept: Mapping[str, Kept]) -> Kept:
    if row["pool"] not in kept:
        raise ArgumentError(
            f"pool={row['pool']!r} of decision {row['id']!r} is not in the summary, which names "
            f"{', '.join(map(repr, kept)) or 'none'}; give the decisions and the summary of the same run."
        )
    return kept[row["pool"]]


def _sections(
    summary: Mapping[str, Any], kept: Mapping[str, Kept], effects: Mapping[str, Mapping[str, Any]], beside: str | None
) -> Iterator[dict[str, Any]]:
    """Yield what the template shows of each pool."""
    tables = {name: build(summary) for name, build in _TABLES.items()}
    for place, (name, pool) in enumerate(pools_of(summary).items()):
        found, shown = kept[name], kept[name].shown()
        yield {
            "name": name,
            "task": pool["task"],
            "questions": questions(pool["n"]),
            "headline": headline(pool) or "How far a judge can move what ships is not known here.",
            "measured": _measured(pool),
            "tables": {kind: built[place] for kind, built in tables.items()} | {"coverage": coverage_table(pool)},
            "effects": effects_table(effects[name]) if effects.get(name) else None,
            "plots": {draw.__name__: draw(pool) for draw in PLOTS},
            "changes": shown,
            "link": None if beside is None else partial(link_to, beside),
            "n_changed": questions(found.n_changed),
            "more": found.n_changed - len(shown),
            "abstentions": found.abstentions.table("abstentions of eldgr's roles"),
            "failures": found.failures.table("failed calls of eldgr's roles"),
        }


def _measured(pool: Mapping[str, Any]) -> str:
    """What was measured, beside the headline."""
    found = {rule: figures.get("em") for rule, figures in pool["rules"].items()}
    said = [f"{rule} {figure(value)} %" for rule, value in found.items() if value is not None]
    return f"Measured: {', '.join(said)}." if said else "Nothing is scored: no question has a gold answer."


def coverage_table(pool: Mapping[str, Any]) -> Table | None:
    """Return for each rule the share of errors among the questions on which it is most to be trusted, in percent.

    None where there is no curve.
    """
    curves: Mapping[str, Sequence[Sequence[float]]] = pool.get("risk_coverage") or {}
    rows = [(rule, *_risks(points)) for rule, points in curves.items() if points]
    headers = ("rule", "most trusted", *(f"{least} % or more" for least in _COVERED), "all")
    return Table("risk and coverage, %", headers, tuple(rows)) if rows else None


def _risks(points: Sequence[Sequence[float]]) -> Iterator[str]:
    """The risk at the first point, at the first that covers as much as is wanted, and at the last."""
    wanted = (next(point for point in points if point[0] >= least) for least in _COVERED)
    for covered, risk in (points[0], *wanted):
        yield f"{figure(risk)} of {figure(covered)}"
    yield figure(points[-1][1])


def _card(record: Mapping[str, Any], usage: Table | None) -> dict[str, Any]:
    """What the template shows of the record."""
    pools = [(name, f"{one['rows']:,}", one["sha256"]) for name, one in record["pools"].items()]
    silences = [
        (one["role"], one["outcome"], one.get("kind") or UNDEFINED, one["reason"], f"{one['consultations']:,}")
        for one in record["silences"]
    ]
    return {
        "stated": record_table(record),
        "usage": usage,
        "pools": Table("pools", ("pool", "questions", "sha256 of the content"), tuple(pools)),
        "silences": Table("silences", ("role", "outcome", "kind", "reason", "consultations"), tuple(silences)),
    }
