"""Compare runs on the same questions: one rule question by question, or two rules over runs of several seeds.

Percentages are from 0 to 100, differences percentage points, a run minus the first, and variances their squares.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from typing_extensions import TypedDict

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.base.differences import differences
from eldgr_dspy.base.formatting import questions
from eldgr_dspy.comparisons.named_runs import (
    NamedRun,
    RuleScores,
    ScoreName,
    contrast_of,
    require_the_same_questions,
    rule_scores_of,
)
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.record import sums_of
from eldgr_dspy.figures.results.audit_fields import RoleSums
from eldgr_dspy.figures.results.summary_fields import Adjusted, Paired, Scores, WinsLosses
from eldgr_dspy.rule.named_judges import Label, in_order
from eldgr_dspy.statistics import SeedVariance, holm, seed_variance
from eldgr_dspy.words import Task


class ComparedScores(Scores):
    pool: str
    sha256: str
    calls: int  # LM calls that the rule alone would take
    differ: int | None  # questions where an answer of another class ships than in the first run; None if unknown
    contrast: Adjusted | None  # with the first run, where a question has a gold answer; adjusted for all contrasts


class ComparedPool(TypedDict):
    task: Task
    n: int
    n_scored: int
    runs: dict[str, ComparedScores]
    remarks: list[str]


class ComparedRun(TypedDict):
    run: str
    consultations: RoleSums  # in all
    models: dict[Label, str]  # `none` for a role without one
    differences: list[str]  # how its settings and roles differ from the first run's, a line each


class Comparison(TypedDict):
    rule: str
    runs: dict[str, ComparedRun]
    pools: dict[str, ComparedPool]  # by the names in the first run


def compare_runs(runs: Mapping[str, NamedRun], *, rule: str = "eldgr") -> Comparison:
    """Return how a rule did in runs, each against the first."""
    if len(runs) < 2:
        raise ArgumentError(f"A comparison needs two or more runs; got {len(runs)}.")
    first = next(iter(runs.values()))
    pools = dict[str, ComparedPool]()
    for pool, pool_names in _by_pool(runs).items():
        arms = {name: rule_scores_of(runs[name], of, rule) for name, of in zip(runs, pool_names, strict=True)}
        require_the_same_questions([*arms.values()])
        pools[pool] = _pool(arms, rule)
    family = [of["contrast"] for pool in pools.values() for of in pool["runs"].values() if of["contrast"]]
    for contrast, p in zip(family, holm([contrast["p"] for contrast in family]), strict=True):
        contrast["p_holm"] = p
    return {"rule": rule, "runs": {name: _run(entry, first) for name, entry in runs.items()}, "pools": pools}


def _by_pool(runs: Mapping[str, NamedRun]) -> dict[str, list[str]]:
    """The pools to compare, by the first run's names: each pool that all runs have, or the only one of each run."""
    first = next(iter(runs.values()))
    if all({*entry.pools} == {*first.pools} for entry in runs.values()):
        return {pool: [pool] * len(runs) for pool in first.pools}
    if any(len(entry.pools) != 1 for entry in runs.values()):
        listing = "; ".join(f"{entry}: {', '.join(entry.pools)}" for entry in runs.values())
        raise ArgumentError(f"The runs have different pools ({listing}). Say which one is compared, as RUN:POOL.")
    return {first.pools[0]: [entry.pools[0] for entry in runs.values()]}


def _pool(arms: Mapping[str, RuleScores], rule: str) -> ComparedPool:
    """Every run against the first on one pool; p is not adjusted yet."""
    first = next(iter(arms.values()))
    kind = shown_type(first.figures["task"])

    def scores(arm: RuleScores) -> ComparedScores:
        of, differ, contrast = arm.figures["rules"][rule], None, None
        if arm is not first:
            answers = ((one.answer, first.outcomes[id_].answer) for id_, one in arm.outcomes.items())
            if not (kind.needs_options or kind.pooled):
                differ = sum(kind.class_of(answer) != kind.class_of(other) for answer, other in answers)
            figures = contrast_of([(arm, first)]) if arm.scores else None
            contrast = figures and Adjusted(**figures, p_holm=figures["p"])
        return {
            "pool": arm.pool,
            "sha256": arm.sha256,
            "em": of["em"],
            "f1": of["f1"],
            "calls": sum(of["calls"].values()),
            "differ": differ,
            "contrast": contrast,
        }

    return {
        "task": first.figures["task"],
        "n": first.figures["n"],
        "n_scored": first.figures["n_scored"],
        "runs": {name: scores(arm) for name, arm in arms.items()},
        "remarks": [*first.remarks(), *_on_contents(arms)],
    }


def _on_contents(arms: Mapping[str, RuleScores]) -> Iterator[str]:
    """Yield which of several pools are the same: between others, a difference is that of their candidates too."""
    by_content = dict[str, list[str]]()
    for name, arm in arms.items():
        by_content.setdefault(arm.sha256, []).append(name)
    if len(by_content) > 1:
        same = [", ".join(names) for names in by_content.values() if len(names) > 1]
        yield "The pools differ in their candidates or evidence, and so may the answers by them alone."
        yield from (f"{names}: the same pool." for names in same)


def _run(entry: NamedRun, reference: NamedRun) -> ComparedRun:
    heads = entry.run.heads_of("role")
    return {
        "run": entry.run.path.as_posix(),
        "consultations": sums_of(entry.summary["consultations"]),
        "models": {label: _model(heads.get(label)) for label in in_order(heads)},
        "differences": [*_differences(reference, entry)],
    }


def _model(head: Mapping[str, Any] | None) -> str:
    lm = head and head["details"].get("lm")
    return "not asked" if head is None else "none" if lm is None else str(lm.get("model", "several"))


def _differences(reference: NamedRun, entry: NamedRun) -> Iterator[str]:
    for kind in ("settings", "role"):
        first, second = reference.run.heads_of(kind), entry.run.heads_of(kind)
        for name in dict.fromkeys([*first, *second]):
            if name not in first or name not in second:
                only = (reference if name in first else entry).name
                yield f"{name}: asked only by {only}" if kind == "role" else f"{name}: only {only} has one"
                continue
            for line in differences(first[name]["details"], second[name]["details"]):
                yield f"{name}: {line}"


class SeedRun(WinsLosses):
    """One seed: the scores of both rules, and their difference."""

    name: str
    run: str
    pool: str
    sha256: str
    em: list[float]  # of both rules
    f1: list[float] | None
    delta: float


class Seeds(TypedDict):
    rule: str
    against: str
    task: Task
    n: int
    n_scored: int
    runs: list[SeedRun]
    variance: dict[ScoreName, dict[str, SeedVariance]]  # of `rule`, of `against`, and of their `difference`
    contrast: Paired  # over questions, each with the mean of its seeds
    remarks: list[str]


def over_seeds(runs: Mapping[str, NamedRun], *, rule: str = "eldgr", against: str = "majority") -> Seeds:
    """Return how one rule did against another in runs of several seeds, each of one pool, on the same questions."""
    if rule == against:
        raise ArgumentError(f"rule={rule!r} and against={against!r} are the same; give two rules.")
    pairs = [(rule_scores_of(entry, pool, rule), rule_scores_of(entry, pool, against)) for entry, pool in _seeds(runs)]
    first, arms = pairs[0][0], [arm for arm, _ in pairs]
    require_the_same_questions(arms)
    ids, kind = [*first.scores], shown_type(first.figures["task"])
    places = defaultdict[str, list[int]](list)
    for at, id_ in enumerate(ids):
        places[first.outcomes[id_].text].append(at)
    if len(places) < 2:
        raise ArgumentError(
            f"{questions(len(places))} with a gold answer, copies aside; give runs on two or more, to see their spread."
        )
    names: tuple[ScoreName, ...] = ("em", "f1") if kind.has_f1 else ("em",)
    # of each score, seeds by rules by questions
    scores: dict[ScoreName, Any] = {
        score: np.array([[arm.percentages(score, ids) for arm in pair] for pair in pairs]) for score in names
    }
    means = {score: of.mean(axis=2).tolist() for score, of in scores.items()}
    # copies of a question are not independent: each text is one question, with their mean
    distinct: dict[ScoreName, Any] = {
        score: np.stack([of[:, :, own].mean(axis=2) for own in places.values()], axis=2) for score, of in scores.items()
    }
    gaps = distinct["em"][:, 0] - distinct["em"][:, 1]
    return {
        "rule": rule,
        "against": against,
        "task": first.figures["task"],
        "n": first.figures["n"],
        "n_scored": first.figures["n_scored"],
        "runs": [
            {
                "name": arm.entry.name,
                "run": arm.entry.run.path.as_posix(),
                "pool": arm.pool,
                "sha256": arm.sha256,
                "em": means["em"][seed],
                "f1": means["f1"][seed] if "f1" in means else None,
                "delta": float(gaps[seed].mean()),
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
            for score, of in distinct.items()
        },
        "contrast": contrast_of(pairs),
        "remarks": [*first.remarks(), *_on_seeds([arm.sha256 for arm in arms])],
    }


def _seeds(runs: Mapping[str, NamedRun]) -> list[tuple[NamedRun, str]]:
    if len(runs) < 2:
        raise ArgumentError(f"A comparison of seeds needs two or more runs; got {len(runs)}. Give one run a seed.")
    by_place = dict[tuple[str, str], NamedRun]()
    for entry in runs.values():
        if len(entry.pools) != 1:
            raise ArgumentError(f"{entry} has the pools {', '.join(entry.pools)}; say which one, as {entry}:POOL.")
        place = str(entry.run.path.resolve()), entry.pools[0]
        if place in by_place:
            raise ArgumentError(f"{entry} is the same run as {by_place[place]}; a run is one seed: give each once.")
        by_place[place] = entry
    return [(entry, pool) for (_, pool), entry in by_place.items()]


def _on_seeds(contents: Sequence[str]) -> Iterator[str]:
    if len({*contents}) == 1:
        yield "All runs are on one pool: the seeds are those of the roles; the results are only for these candidates."
    elif len({*contents}) < len(contents):
        yield "Some of the runs are on the same pool: its candidates count as several seeds."
    if len(contents) < 5:
        yield f"{len(contents)} seeds say little about other seeds, so the interval over seeds is wide."
