"""All tables of an evaluation in the order in which they are read, and those of its contrasts."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from eldgr_dspy.formatting import UNDEFINED, interval, probability, questions, signed
from eldgr_dspy.tables.audit import funnel_table, outcomes_table, roles_table
from eldgr_dspy.tables.pool import audit_table, bounds_table, cost_table, paper_table, pools_of, usage_table
from eldgr_dspy.tables.table import Table, record

_ONE_SIDED = f"{UNDEFINED}: BCa is undefined where all resamples lie on one side of the difference."


def tables_of(summary: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the tables of an evaluation: those of each pool, and what was asked of LMs in all.

    Raises:
        ArgumentError: the summary has no mapping of pools.
    """
    tables = (
        paper_table(summary),
        contrasts_table(summary),
        graded_contrasts_table(summary),
        bounds_table(summary),
        audit_table(summary),
        outcomes_table(summary),
        funnel_table(summary),
        roles_table(summary),
        cost_table(summary),
    )
    for group in zip(*tables, strict=True):
        yield from (table for table in group if table is not None)
    usage = usage_table(summary)
    if usage is not None:
        yield usage


def contrasts_table(summary: Mapping[str, Any]) -> list[Table | None]:
    """Return for each pool its contrasts of right and wrong, in percentage points; None where there are none.

    Columns: the difference with its percentile and its BCa interval of 95 %, the exact McNemar p, the same adjusted by
    Holm's method for all contrasts of the pool, wins and losses.
    """
    return [_contrasts(name, pool) for name, pool in pools_of(summary).items()]


def graded_contrasts_table(summary: Mapping[str, Any]) -> list[Table | None]:
    """Return for each pool its contrasts of token F1, in percentage points, which are not tested; None without F1."""
    return [_graded(name, pool) for name, pool in pools_of(summary).items()]


def _contrasts(name: str, pool: Mapping[str, Any]) -> Table | None:
    score = "EM" if pool["task"] == "retrieval" else "accuracy"
    contrasts = pool.get("contrasts") or ()
    rows = [
        (*_difference(one, one), probability(one["p"]), probability(one.get("p_holm")), record(one))
        for one in contrasts
    ]
    headers = ("contrast", "Δ", "95% CI", "BCa 95% CI", "exact p", "Holm p", "wins–losses")
    notes = [*_repeated(pool), *_warnings(contrasts)]
    return _table(f"{name}: contrasts in {score}, percentage points", headers, rows, notes)


def _graded(name: str, pool: Mapping[str, Any]) -> Table | None:
    graded = [one for one in pool.get("contrasts") or () if one.get("f1")]
    rows = [_difference(one, one["f1"]) for one in graded]
    headers = ("contrast", "Δ", "95% CI", "BCa 95% CI")
    return _table(f"{name}: contrasts in F1, percentage points", headers, rows)


def _difference(contrast: Mapping[str, Any], of: Mapping[str, Any]) -> tuple[str, ...]:
    named = f"{contrast['rule']} − {contrast['against']}"
    return (named, signed(of["delta"]), interval(of["ci"]), interval(of.get("bca")))


def _repeated(pool: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence where questions stand several times, which contrasts count once."""
    distinct = pool.get("n_distinct")
    if distinct is not None and distinct < pool["n_scored"]:
        yield (
            f"{questions(pool['n_scored'])} have {distinct:,} different texts: a text that stands several times counts "
            "once in a contrast, with the mean of its outcomes."
        )


def _warnings(contrasts: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what keeps contrasts from saying much, each sentence with the contrasts that it is of."""
    of = defaultdict[str, list[str]](list)
    for one in contrasts:
        for note in one.get("notes") or ():
            of[note].append(f"{one['rule']} − {one['against']}")
    for note, named in of.items():
        yield f"{', '.join(named)}: {note}"


def _table(
    title: str, headers: tuple[str, ...], rows: list[tuple[str, ...]], notes: Iterable[str] = ()
) -> Table | None:
    if not rows:
        return None
    unknown = any(UNDEFINED in row for row in rows)
    return Table(title, headers, tuple(rows), (*([_ONE_SIDED] if unknown else []), *notes))
