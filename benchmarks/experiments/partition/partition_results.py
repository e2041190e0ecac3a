"""The results of a run: what each job found, and the contrasts that the file of outcomes asks for."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.experiments.partition.analysis import (
    Contrast,
    Measures,
    compare,
    compare_rules,
    measures_in,
    noise,
    resolve,
    resolve_each,
)
from benchmarks.experiments.partition.arms import START
from benchmarks.experiments.partition.jobs import found_by, seconds_of
from benchmarks.experiments.partition.outcomes import Outcome, Outcomes
from benchmarks.experiments.partition.sizes import Size

Arms = dict[int, dict[str, list[Measures]]]


def results_of(out: Path, size: Size, plan: Outcomes) -> dict[str, Any]:
    """Return the results of a finished run as plain JSON."""
    jobs = out / "jobs"
    arms = {seed: _arms(out, size, seed) for seed in size.seeds}
    scores = {seed: found_by(jobs, f"{seed}/pools") for seed in size.seeds}
    rules = compare_rules(scores, plan)
    controls, contrasts = (compare(arms, family, plan.level) for family in (plan.controls, plan.contrasts))
    return {
        "outcomes": plan.sha256,
        "seeds": {
            seed: {"start": found_by(jobs, f"{seed}/start"), "reader": found_by(jobs, f"{seed}/reader")}
            for seed in size.seeds
        },
        "questions": {"held": 2 * size.held, "pooled": 2 * size.pooled},
        "arms": arms,
        "rules": scores,
        "controls": _family(plan.controls, controls, resolve_each(controls, plan.alpha)),
        "contrasts": _family(plan.contrasts, contrasts, resolve(contrasts, plan.alpha)),
        "rule_contrasts": _rule_family(rules, plan.alpha),
        "noise": noise(arms),
        "rewards": {seed: _rewards(jobs, size, seed) for seed in size.seeds},
        "seconds": seconds_of(jobs),
    }


def _arms(out: Path, size: Size, seed: int) -> dict[str, list[Measures]]:
    folder = out / f"seed-{seed}"
    runs = {
        arm: [measures_in(folder / f"{arm}-{run}.replies.jsonl") for run in range(1, size.runs + 1)]
        for arm in size.arms
    }
    return {START: [measures_in(folder / f"{START}.replies.jsonl")], **runs}


def _rewards(jobs: Path, size: Size, seed: int) -> dict[str, list[list[float]]]:
    """Return for each run of each arm the mean reward of its first and of its last ten steps."""
    curves = {
        arm: [found_by(jobs, f"{seed}/{arm}-{run}")["reward"] for run in range(1, size.runs + 1)] for arm in size.arms
    }
    return {arm: [[_mean(curve[:10]), _mean(curve[-10:])] for curve in own] for arm, own in curves.items()}


def _mean(values: list[float]) -> float:
    return round(sum(values) / len(values), 4)


def _family(questions: tuple[Outcome, ...], contrasts: list[Contrast], resolutions: list[bool]) -> list[dict[str, Any]]:
    return [
        {**asdict(one), **contrast._asdict(), "resolved": is_resolved}
        for one, contrast, is_resolved in zip(questions, contrasts, resolutions, strict=True)
    ]


def _rule_family(rules: list[dict[str, Any]], alpha: float) -> list[dict[str, Any]]:
    resolutions = resolve([rule["contrast"] for rule in rules], alpha)
    return [
        {**{name: rule[name] for name in ("name", "pool", "error_rate")}, **rule["contrast"]._asdict(), "resolved": is_}
        for rule, is_ in zip(rules, resolutions, strict=True)
    ]
