"""From the measures of each seed to contrasts with their noise: paired within seeds, intervals over seeds and runs."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Final, NamedTuple

from scipy import stats

from benchmarks.experiments.partition.arms import START
from benchmarks.experiments.partition.judged_pools import judge_name
from benchmarks.experiments.partition.outcomes import Outcome, Outcomes
from benchmarks.experiments.partition.policy_replies import MEASURES
from eldgr_dspy.statistics import holm
from eldgr_dspy.words import TASKS

BOTH: Final = "both"
WITH_STEPS: Final = "with_steps"
"""The measure that says on how many replies those of steps rest."""

Measures = Mapping[str, Mapping[str, float | None]]
"""By task, or both, and by measure: the mean over the replies where it is defined."""


class Contrast(NamedTuple):
    """A difference over seeds, in percentage points.

    Attributes:
        delta: Its mean; None if the difference of a seed is undefined.
        interval: By Student's t over the seeds; None with fewer than two seeds.
        p: Of no difference, two-sided; None with fewer than two seeds.
        by_seed: The difference of each seed; None where a run's measure is undefined for all of its replies.
    """

    delta: float | None
    interval: tuple[float, float] | None
    p: float | None
    by_seed: tuple[float | None, ...]


def measures_in(path: Path) -> Measures:
    """Return the means of a file of replies, and the share of those with steps, in percent.

    The mean of both tasks is that of the two means.
    """
    lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    by_task = {task: _means([line for line in lines if line["task"] == task]) for task in TASKS}
    return by_task | {BOTH: {name: _mean_of([means[name] for means in by_task.values()]) for name in by_task[TASKS[0]]}}


def contrast(differences: Sequence[float | None], level: float) -> Contrast:
    """Return the contrast of a difference for each seed.

    The seeds are few, so the interval is Student's: each seed has its own worlds, start, reader and runs, and their
    spread holds the noise of all of these. If all seeds differ equally, p is 0 for a difference and 1 for none.
    """
    by_seed, values, n = tuple(differences), [one for one in differences if one is not None], len(differences)
    if len(values) < n:
        return Contrast(None, None, None, by_seed)
    delta = mean(values)
    if n < 2:
        return Contrast(delta, None, None, by_seed)
    error = stdev(values) / math.sqrt(n)
    half = error * float(stats.t.ppf((1 + level) / 2, n - 1))
    p = float(2 * stats.t.sf(abs(delta) / error, n - 1)) if error else float(delta == 0)
    return Contrast(delta, (delta - half, delta + half), p, by_seed)


def resolve(contrasts: Sequence[Contrast], alpha: float) -> list[bool]:
    """Return for each contrast of a family whether its p-value, adjusted by Holm, is below alpha.

    One without a p-value counts in the family as if its p were 1.
    """
    return [p < alpha for p in holm([1.0 if one.p is None else one.p for one in contrasts])]


def resolve_each(contrasts: Sequence[Contrast], alpha: float) -> list[bool]:
    """Return for each contrast whether its own p-value is below alpha: enough where all of them have to be resolved."""
    return [contrast.p is not None and contrast.p < alpha for contrast in contrasts]


def compare(
    arms: Mapping[int, Mapping[str, Sequence[Measures]]], contrasts: Sequence[Outcome], level: float
) -> list[Contrast]:
    """Return the contrasts of arms, given by seed and arm the measures of each run."""
    return [
        contrast([_difference(runs[one.arm], runs[one.against], one) for runs in arms.values()], level)
        for one in contrasts
    ]


def compare_rules(
    scores: Mapping[int, Mapping[str, Mapping[str, Mapping[str, float]]]], outcomes: Outcomes
) -> list[dict[str, Any]]:
    """Return the contrasts of rules, each with its pool and error rate; the mean of both tasks is compared.

    `scores` has by seed, pool and task the exact match of each rule.
    """
    return [
        {
            "name": one.name,
            "pool": pool,
            "error_rate": rate,
            "contrast": contrast(
                [score_of(by[pool], one.rule, rate) - score_of(by[pool], one.against, rate) for by in scores.values()],
                outcomes.level,
            ),
        }
        for one in outcomes.rules
        for pool in outcomes.pools
        for rate in outcomes.error_rates
    ]


def score_of(by_task: Mapping[str, Mapping[str, float]], rule: str, rate: float) -> float:
    """Return the exact match of a rule with the judge that errs at a rate, the mean of both tasks."""
    name = f"{rule}[{judge_name(rate)}]"
    return mean(scores[name if name in scores else rule] for scores in by_task.values())


def noise(arms: Mapping[int, Mapping[str, Sequence[Measures]]]) -> dict[str, float | None]:
    """Return the standard deviations of an arm's exact match, both tasks, pooled over arms.

    Returns:
        `runs`: between runs of one arm from one start; `seeds`: between the seeds' means. None where there is one.
    """
    runs, seeds = list[float](), list[float]()
    names = [arm for arm in next(iter(arms.values())) if arm != START]
    for arm in names:
        values = [[run[BOTH]["exact_match"] or 0.0 for run in by[arm]] for by in arms.values()]
        runs += [stdev(own) ** 2 for own in values if len(own) > 1]
        if len(values) > 1:
            seeds.append(stdev(map(mean, values)) ** 2)
    return {
        "runs": math.sqrt(mean(runs)) if runs else None,
        "seeds": math.sqrt(mean(seeds)) if seeds else None,
    }


def _difference(runs: Sequence[Measures], others: Sequence[Measures], question: Outcome) -> float | None:
    one, other = (_mean_of([run[question.task or BOTH][question.measure] for run in own]) for own in (runs, others))
    return None if one is None or other is None else one - other


def _means(lines: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    means = {name: _mean([line[name] for line in lines if line[name] is not None]) for name in MEASURES}
    return means | {WITH_STEPS: _mean([100 * (line["true_steps"] is not None) for line in lines])}


def _mean(values: Sequence[float]) -> float | None:
    return mean(values) if values else None


def _mean_of(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return mean(numbers) if len(numbers) == len(values) else None
