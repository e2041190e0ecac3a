"""The results of a miniature, in numbers and in tables: its policies before and after, its selectors, its reader."""

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from eldgr_dspy.figures.results.summary import PoolFigures
from eldgr_dspy.files import replacing
from eldgr_dspy.formatting import figure, probability
from eldgr_dspy.pools import open_pool
from eldgr_dspy.statistics import contrast, holm
from eldgr_dspy.tables.formats import as_markdown
from eldgr_dspy.tables.pool import audit_table, bounds_table, paper_table
from eldgr_dspy.tables.table import Table, difference, record
from eldgr_dspy.training.curves import FILE, read_curve
from eldgr_dspy.training.miniature.pools import RUNS, START, exact_matches, pool_path
from eldgr_dspy.training.miniature.settings import Settings
from eldgr_dspy.training.miniature.stages import Stages
from eldgr_dspy.training.miniature.task import Questions
from eldgr_dspy.words import TASKS, Task

_CLOCKS: Final = ("wall", "cpu")
_PACKAGES: Final = ("eldgr_dspy", "torch", "transformers", "trl", "peft", "sentence-transformers")


def results_of(out: Path, questions: Questions, settings: Settings, seed: int, stages: Stages) -> dict[str, Any]:
    """Return all numbers of a finished miniature.

    Args:
        out: Its folder.
        questions: Its questions.
        settings: Its size.
        seed: Its seed.
        stages: What each of its stages found and took.
    """
    seconds = stages.seconds()
    return {
        "seed": seed,
        "settings": asdict(settings),
        "versions": versions(),
        "machine": {"processor": platform.machine(), "cores": os.cpu_count()},
        "questions": {"sha256": questions.sha256(), "seen_before": questions.seen_before()},
        "reader": stages.findings("nli")["right"] if settings.read else {},
        "policies": {task: _compared(out, task, settings.policies) for task in TASKS},
        "curves": _curves(out, settings.policies),
        "runs": {part: json.loads((out / "runs" / part / "summary.json").read_text("utf-8")) for part in RUNS},
        "seconds": {
            **seconds,
            "all": {kind: round(sum(stage[kind] for stage in seconds.values()), 1) for kind in _CLOCKS},
        },
    }


def _compared(out: Path, task: Task, policies: Sequence[str]) -> dict[str, Any]:
    """Return exact match in percent, also of the start; each policy against the start, the last against all others.

    The contrasts of a task are one family.
    """
    right = {
        name: values
        for by in (START, "")
        for name, values in exact_matches(open_pool(pool_path(out, "evaluation", task, by))).items()
    }
    last, others = policies[-1], policies[:-1]
    pairs = [*((policy, START) for policy in policies), *((last, other) for other in others)]
    contrasts = [_contrast(rule, against, right) for rule, against in pairs]
    adjusted = holm([row["p"] for row in contrasts])
    return {
        "n": len(right[START]),
        "em": {name: 100 * sum(values) / len(values) for name, values in right.items()},
        "contrasts": [{**row, "p_holm": p} for row, p in zip(contrasts, adjusted, strict=True)],
    }


def _contrast(rule: str, against: str, right: Mapping[str, Sequence[bool]]) -> dict[str, Any]:
    compared = contrast(*([100.0 * value for value in right[name]] for name in (rule, against)))
    return {
        "rule": rule,
        "against": against,
        "delta": compared.delta,
        "ci": list(compared.interval),
        "p": compared.p,
        "wins": compared.wins,
        "losses": compared.losses,
    }


def _curves(out: Path, policies: Sequence[str]) -> dict[str, Any]:
    """Return for each policy its steps, and the mean exact match over its first ten and its last ten."""
    curves = {policy: read_curve(out / "checkpoints" / policy / FILE) for policy in policies}
    return {
        policy: {"steps": len(points), "first": points[min(9, len(points) - 1)].rolling, "last": points[-1].rolling}
        for policy, points in curves.items()
    }


def versions() -> dict[str, str]:
    """Return the versions that the numbers of a run may depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


def tables(results: Mapping[str, Any]) -> list[Table]:
    """Return the tables of a miniature: the policies, the rules on each pool, and the reader."""
    own = [table for task, policies in results["policies"].items() for table in _policy_tables(task, policies)]
    selectors = [table for summary in results["runs"].values() for table in _selector_tables(summary["pools"])]
    return [*own, *selectors, *_reader_tables(results["reader"])]


def _selector_tables(pools: Mapping[str, PoolFigures]) -> Iterator[Table]:
    """Return for each pool the figures of the rules, their bounds over all judges, and the audit."""
    for name, pool in pools.items():
        yield from (paper_table(name, pool), bounds_table(name, pool), audit_table(name, pool))


def _policy_tables(task: str, policies: Mapping[str, Any]) -> Iterator[Table]:
    rows = tuple((name, figure(value)) for name, value in policies["em"].items())
    yield Table(f"policies: {task}, {policies['n']} questions", ("policy", "exact match, %"), rows)
    compared = tuple(
        (
            f"{row['rule']} − {row['against']}",
            difference(row),
            *map(probability, (row["p"], row["p_holm"])),
            record(row),
        )
        for row in policies["contrasts"]
    )
    headers = ("contrast", "Δ [95% CI]", "exact p", "Holm p", "wins–losses")
    yield Table(f"policies compared: {task}", headers, compared)


def _reader_tables(shares: Mapping[str, float]) -> Iterator[Table]:
    if shares:
        rows = tuple((kind, figure(100 * value)) for kind, value in shares.items())
        yield Table("reader: pairs held out", ("what a step is held against", "right, %"), rows)


def write_tables(path: Path, results: Mapping[str, Any]) -> None:
    """Write the tables as Markdown."""
    with replacing(path) as out:
        out.write(as_markdown(tables(results)).encode("utf-8"))
