"""The tables of a run in Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, Final

from benchmarks.experiments.partition.analysis import BOTH, WITH_STEPS, score_of
from benchmarks.experiments.partition.outcomes import outcomes
from eldgr_dspy.base.files import replacing
from eldgr_dspy.base.formatting import UNDEFINED, figure, interval, probability, with_sign
from eldgr_dspy.tables.formats import as_markdown
from eldgr_dspy.tables.table import Table
from eldgr_dspy.words import TASKS

RULES: Final = ("first", "majority", "certified", "judge", "eldgr")
COLUMNS: Final[Mapping[str, str]] = {
    "exact_match": "exact match, %",
    "certified": "certified, %",
    WITH_STEPS: "replies with steps, %",
    "true_steps": "true steps, %",
    "conflated": "conflated steps, %",
    "step_reward": "step reward × 100",
}


def write_tables(path: Path, results: Mapping[str, Any]) -> None:
    with replacing(path) as out:
        out.write(as_markdown(list(tables(results))).encode("utf-8"))


def tables(results: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the tables: controls, contrasts, arms by task, rules by pool, starts with their readers."""
    n, spread = len(results["arms"]), results["noise"]
    lead = (
        f"{n} seed{'s' * (n > 1)}; {results['questions']['held']:,} held-out questions each. Standard deviation of an "
        f"arm's exact match between runs from one start: {figure(spread['runs'])}; between seeds: "
        f"{figure(spread['seeds'])}."
    )
    yield Table("Controls", _HEADERS, _rows(results["controls"]), lead=lead)
    yield Table("Contrasts of arms", _HEADERS, _rows(results["contrasts"]))
    for task in (BOTH, *TASKS):
        yield Table(f"Arms: {task}", ("arm", *COLUMNS.values()), _arm_rows(results["arms"], task))
    plan = outcomes()
    for pool in plan.pools:
        scores = [by[pool] for by in results["rules"].values()]
        rows = tuple(
            (rule, *(_spread([score_of(by, rule, rate) for by in scores]) for rate in plan.error_rates))
            for rule in RULES
        )
        headers = ("rule", *(f"judge errs at {round(100 * rate)} %" for rate in plan.error_rates))
        lead = f"{results['questions']['pooled']:,} questions a seed; exact match, %, the mean of both tasks."
        yield Table(f"Rules: samples of {pool}", headers, rows, lead=lead)
    rows = tuple(
        (f"{row['name']}, {row['pool']}, {round(100 * row['error_rate'])} %", *_cells(row))
        for row in results["rule_contrasts"]
    )
    yield Table("Contrasts of rules", _HEADERS, rows)
    yield Table("Starts and readers", ("seed", "batches", *TASKS, "reader: pairs held out, %"), _start_rows(results))


_HEADERS: Final = ("contrast", f"Δ [{round(100 * outcomes().level)}% CI]", "p", "each seed", "")


def _rows(contrasts: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], ...]:
    return tuple((f"{row['name']} ({row['arm']} − {row['against']})", *_cells(row)) for row in contrasts)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    ends = interval(row["interval"])
    delta = with_sign(row["delta"]) if ends == UNDEFINED else f"{with_sign(row['delta'])} {ends}"
    seeds = ", ".join(with_sign(value) for value in row["by_seed"])
    return delta, probability(row["p"]), seeds, _verdict(row)


def _verdict(row: Mapping[str, Any]) -> str:
    if not row["resolved"]:
        return "unresolved"
    is_expected = row.get("expected") in (None, "above" if row["delta"] > 0 else "below")
    return "resolved" if is_expected else "resolved, against what was expected"


def _arm_rows(arms: Mapping[Any, Mapping[str, Sequence[Any]]], task: str) -> tuple[tuple[str, ...], ...]:
    names = list(next(iter(arms.values())))
    return tuple((name, *(_cell(arms, name, task, measure) for measure in COLUMNS)) for name in names)


def _cell(arms: Mapping[Any, Mapping[str, Sequence[Any]]], name: str, task: str, measure: str) -> str:
    values = [run[task][measure] for by in arms.values() for run in by[name]]
    return _spread([value for value in values if value is not None])


def _spread(values: Sequence[float]) -> str:
    """Return the mean with the least and the greatest value."""
    return f"{figure(mean(values))} ({figure(min(values))} to {figure(max(values))})" if values else UNDEFINED


def _start_rows(results: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    rows = list[tuple[str, ...]]()
    for seed, start in results["seeds"].items():
        look = start["start"]["exact_match"][-1]
        accuracies = ", ".join(f"{kind} {figure(100 * share, 1)}" for kind, share in start["reader"].items())
        rows.append((str(seed), str(look["batches"]), *(figure(look[task], 1) for task in TASKS), accuracies))
    return tuple(rows)
