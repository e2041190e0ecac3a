"""Compare two rules over runs of several seeds on the same questions, and split the spread by its source.

A run is a seed: of sampling if each run has its own pool, or of the judge if all runs are on one pool. Scores are
percentages, differences percentage points, variances their squares.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from typing_extensions import TypedDict

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.base.formatting import questions
from eldgr_dspy.comparisons.named_runs import (
    NamedRun,
    ScoreName,
    contrast_of,
    require_the_same_questions,
    rule_scores_of,
)
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.results.summary_fields import Paired, WinsLosses
from eldgr_dspy.statistics import SeedVariance, seed_variance
from eldgr_dspy.words import Task

_FEW = 5


class SeedRun(WinsLosses):
    """A seed: the scores of both rules, and the difference."""

    run: str
    pool: str
    sha256: str
    em: list[float]
    f1: list[float] | None
    delta: float


class Spreads(TypedDict):
    """The spread of the rule, of the other rule, and of their difference."""

    rule: SeedVariance
    against: SeedVariance
    difference: SeedVariance


class Seeds(TypedDict):
    """One rule against another over several seeds; the contrast is over questions, each with the mean of its seeds."""

    rule: str
    against: str
    task: Task
    n: int
    n_scored: int
    runs: list[SeedRun]
    variance: dict[ScoreName, Spreads]
    contrast: Paired
    remarks: list[str]


def over_seeds(runs: Mapping[str, NamedRun], *, rule: str = "eldgr", against: str = "majority") -> Seeds:
    """Return how one rule did against another in runs of several seeds.

    Args:
        runs: Two or more runs by name, each of one pool, on the same questions.
        rule, against: Whose answers are scored.

    Raises:
        ArgumentError: there are fewer than two runs or scored questions, one is given twice, or the rules are the same;
            a run has no result of a rule, or other questions or gold answers.
    """
    if rule == against:
        raise ArgumentError(f"rule={rule!r} and against={against!r} are the same; give two rules.")
    pairs = [(rule_scores_of(named, pool, rule), rule_scores_of(named, pool, against)) for named, pool in _seeds(runs)]
    first, arms = pairs[0][0], [arm for arm, _ in pairs]
    require_the_same_questions(arms)
    ids, kind = [*first.scored], shown_type(first.figures["task"])
    if len(ids) < 2:
        raise ArgumentError(f"{questions(len(ids))} with a gold answer; give runs on two or more, to see their spread.")
    names: tuple[ScoreName, ...] = ("em", "f1") if kind.has_f1 else ("em",)
    # of each score, seeds by rules by questions
    scores: dict[ScoreName, Any] = {
        score: np.array([[arm.percentages(score, ids) for arm in pair] for pair in pairs]) for score in names
    }
    gaps = scores["em"][:, 0] - scores["em"][:, 1]
    means = {score: of.mean(axis=2).tolist() for score, of in scores.items()}
    return {
        "rule": rule,
        "against": against,
        "task": first.figures["task"],
        "n": first.figures["n"],
        "n_scored": first.figures["n_scored"],
        "runs": [
            {
                "run": arm.named.run.path.as_posix(),
                "pool": arm.pool,
                "sha256": arm.sha256,
                "em": means["em"][seed],
                "f1": means["f1"][seed] if "f1" in means else None,
                "delta": means["em"][seed][0] - means["em"][seed][1],
                "wins": int((gaps[seed] > 0).sum()),
                "losses": int((gaps[seed] < 0).sum()),
            }
            for seed, arm in enumerate(arms)
        ],
        "variance": {
            score: {
                "rule": seed_variance(of[:, 0]),
                "against": seed_variance(of[:, 1]),
                "difference": seed_variance(of[:, 0] - of[:, 1]),
            }
            for score, of in scores.items()
        },
        "contrast": contrast_of(pairs),
        "remarks": [*first.remarks(), *_on_seeds([arm.sha256 for arm in arms])],
    }


def _seeds(runs: Mapping[str, NamedRun]) -> list[tuple[NamedRun, str]]:
    if len(runs) < 2:
        raise ArgumentError(f"A comparison of seeds needs two or more runs; got {len(runs)}. Give one run a seed.")
    by_place = dict[tuple[str, str], NamedRun]()
    for named in runs.values():
        if len(named.pools) != 1:
            raise ArgumentError(f"{named} has the pools {', '.join(named.pools)}; say which one, as {named}:POOL.")
        place = str(named.run.path.resolve()), named.pools[0]
        if place in by_place:
            raise ArgumentError(f"{named} is the same run as {by_place[place]}; a run is one seed: give each once.")
        by_place[place] = named
    return [(named, pool) for (_, pool), named in by_place.items()]


def _on_seeds(contents: Sequence[str]) -> Iterator[str]:
    if len({*contents}) == 1:
        yield "All runs are on one pool: the seeds are those of the roles; the results are only for these candidates."
    elif len({*contents}) < len(contents):
        yield "Some of the runs are on the same pool: its candidates count as several seeds."
    if len(contents) < _FEW:
        yield f"{len(contents)} seeds say little about other seeds, so the interval over seeds is wide."
