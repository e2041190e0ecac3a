"""All tables of an evaluation in the order in which they are read, and those of its contrasts."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.base.formatting import UNDEFINED, questions
from eldgr_dspy.figures.results.summary import PoolFigures, RuleContrast, Summary
from eldgr_dspy.tables.baselines import baselines_table
from eldgr_dspy.tables.judges import judges_table
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
from eldgr_dspy.tables.table import Table, table_of

_DESCRIPTIVE = (
    f"{UNDEFINED}: a contrast with a rule that is not one of the matched selectors is descriptive, not tested."
)


def tables_of(summary: Summary) -> Iterator[Table]:
    """Yield the tables of an evaluation: those of each pool, and what was asked of LMs in all."""
    for name, pool in summary["pools"].items():
        yield from pool_tables(name, pool)
    usage = usage_table(summary)
    if usage is not None:
        yield usage


def main_tables(summary: Summary) -> Iterator[Table]:
    """Yield the main table, judges, baselines and bounds of each pool; remarks on the run are below the last."""
    tables = [
        table
        for name, pool in summary["pools"].items()
        for table in (
            paper_table(name, pool),
            judges_table(name, pool),
            baselines_table(name, pool),
            bounds_table(name, pool),
        )
        if table is not None
    ]
    if tables:
        tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, *summary["remarks"]))
    return iter(tables)


def pool_tables(name: str, pool: PoolFigures, remedy: str | None = None) -> Iterator[Table]:
    """Yield the tables of a pool; `remedy` says how to get the results of withheld rules, None for a run's own."""
    yield paper_table(name, pool, remedy)
    for kind, build in POOL_TABLES.items():
        audits = audits_in(pool) if kind in AUDITS else (pool,)
        yield from (table for audited in audits if (table := build(name, audited)) is not None)


def contrasts_table(name: str, pool: PoolFigures) -> Table | None:
    """Return the contrasts of right and wrong, in percentage points; None without contrasts.

    Columns: the difference with its percentile interval of 95 %, the exact McNemar p, the same adjusted by
    Holm's method for the tested contrasts of the pool, wins and losses.
    """
    contrasts, score = pool["contrasts"], shown_type(pool["task"]).scores[0]
    notes = (*_notes(contrasts), *_repeated(pool), *_warnings(contrasts))
    rows = {_named(one): one for one in contrasts}
    title = f"{name}: contrasts in {score}, percentage points"
    return table_of(title, "contrast", RuleContrast, "delta ci p p_holm record", rows, notes) if rows else None


def _named(contrast: RuleContrast) -> str:
    return f"{contrast['rule']} − {contrast['against']}"


def _notes(contrasts: Iterable[RuleContrast]) -> Iterator[str]:
    """Yield a sentence for each reason why a cell is a dash."""
    if any(one["p_holm"] is None for one in contrasts):
        yield _DESCRIPTIVE


def _repeated(pool: PoolFigures) -> Iterator[str]:
    """Yield a sentence if questions are repeated; contrasts count them once."""
    if pool["n_distinct"] < pool["n_scored"]:
        yield (
            f"{questions(pool['n_scored'])} have {pool['n_distinct']:,} different texts: a text that stands several "
            "times counts once in a contrast, with the mean of its outcomes."
        )


def _warnings(contrasts: Iterable[RuleContrast]) -> Iterator[str]:
    """Yield the reasons why contrasts say little, each a sentence with the names of its contrasts."""
    of = defaultdict[str, list[str]](list)
    for contrast in contrasts:
        for note in contrast["notes"]:
            of[note].append(_named(contrast))
    for note, named in of.items():
        yield f"{', '.join(named)}: {note}"


POOL_TABLES: dict[str, Callable[[str, PoolFigures], Table | None]] = {
    "judges": judges_table,
    "baselines": baselines_table,
    "contrasts": contrasts_table,
    "bounds": bounds_table,
    "shipping": shipping_table,
    "audit": audit_table,
    "outcomes": outcomes_table,
    "cost": cost_table,
}
"""The tables of a pool below the paper's, in order."""

AUDITS = ("audit", "outcomes")
"""Those of the decision audit: of several named judges, each has its own."""
