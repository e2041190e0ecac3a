"""All tables of an evaluation in the order in which they are read, and those of its contrasts."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.base.formatting import UNDEFINED, questions
from eldgr_dspy.figures.results.summary_fields import PoolFigures, RuleContrast, Summary
from eldgr_dspy.tables.judges import baselines_table, judges_table
from eldgr_dspy.tables.pool import (
    audit_table,
    audits_in,
    bounds_table,
    cost_table,
    outcomes_table,
    paper_table,
    shipping_table,
    usage_table,
)
from eldgr_dspy.tables.table import Table, columns_of, table_of


def tables_of(summary: Summary) -> Iterator[Table]:
    """Yield the tables of an evaluation: those of each pool, and what was asked of LMs in all."""
    for name, pool in summary["pools"].items():
        yield from pool_tables(name, pool)
    if (usage := usage_table(summary)) is not None:
        yield usage


def main_tables(summary: Summary) -> Iterator[Table]:
    """Yield the main table, judges, baselines and bounds of each pool; remarks on the run are below the last."""
    builds = (paper_table, judges_table, baselines_table, bounds_table)
    results = (build(name, pool) for name, pool in summary["pools"].items() for build in builds)
    if tables := [table for table in results if table is not None]:
        tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, *summary["remarks"]))
    return iter(tables)


def pool_tables(name: str, pool: PoolFigures, remedy: str | None = None) -> Iterator[Table]:
    """Yield the tables of a pool; `remedy` says how to get the results of withheld rules, None for a run's own."""
    yield paper_table(name, pool, remedy)
    audits, builds = audits_in(pool), (judges_table, baselines_table, contrasts_table, bounds_table, shipping_table)
    tables = [
        *(build(name, pool) for build in builds),
        *(audit_table(name, audit) for audit in audits),
        *(outcomes_table(name, audit) for audit in audits),
        cost_table(name, pool),
    ]
    yield from (table for table in tables if table is not None)


def contrasts_table(name: str, pool: PoolFigures) -> Table | None:
    """Return the contrasts of right and wrong, in percentage points; None without contrasts."""
    if not (contrasts := {f"{one['rule']} − {one['against']}": one for one in pool["contrasts"]}):
        return None
    descriptive = "a contrast with a rule that is not one of the matched selectors is descriptive, not tested"
    notes = [f"{UNDEFINED}: {descriptive}."] if any(one["p_holm"] is None for one in contrasts.values()) else []
    if pool["n_distinct"] < pool["n_scored"]:
        notes.append(
            f"{questions(pool['n_scored'])} have {pool['n_distinct']:,} different texts: a text that stands several "
            "times counts once in a contrast, with the mean of its outcomes."
        )
    by_note = defaultdict[str, list[str]](list)
    for label, contrast in contrasts.items():
        for note in contrast["notes"]:
            by_note[note].append(label)
    notes += [f"{', '.join(label)}: {note}" for note, label in by_note.items()]
    title = f"{name}: contrasts in {shown_type(pool['task']).scores[0]}, percentage points"
    return table_of(title, "contrast", columns_of(RuleContrast, "delta ci p p_holm record"), contrasts, notes)
