"""Compare runs: one rule on the same questions, question by question; its results, their cost, and what else differs.

Two runs of one pool, or the runs of several policies, each on a pool of its own candidates. Percentages are numbers
from 0 to 100, differences percentage points, a run minus the first.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from typing_extensions import TypedDict

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.base.differences import differences
from eldgr_dspy.comparisons.named_runs import (
    NamedRun,
    RuleScores,
    contrast_of,
    require_the_same_questions,
    rule_scores_of,
)
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.record import sums_of
from eldgr_dspy.figures.results.audit_fields import RoleSums
from eldgr_dspy.figures.results.summary_fields import Adjusted, Scores
from eldgr_dspy.statistics import holm
from eldgr_dspy.words import Consulted, Task, roles_and


class ComparedScores(Scores):
    """What the rule scored on a pool of a run, how many calls it alone would take, and how it differs from the first.

    Attributes:
        differ: On how many questions an answer of another class ships than in the first run; None for that one.
        contrast: With the first run, where a question has a gold answer; `p_holm` is over all contrasts.
    """

    pool: str
    sha256: str
    calls: int
    differ: int | None
    contrast: Adjusted | None


class ComparedPool(TypedDict):
    """A set of questions in all runs."""

    task: Task
    n: int
    n_scored: int
    runs: dict[str, ComparedScores]
    remarks: list[str]


class ComparedRun(TypedDict):
    """What a run asked in all, and the model of each role: `none` for a role without one.

    Attributes:
        differences: A line for each difference of its settings and roles from those of the first run.
    """

    run: str
    consultations: RoleSums
    models: dict[Consulted, str]
    differences: list[str]


class Comparison(TypedDict):
    """How a rule did in several runs; `pools` by the names in the first run, with which the others are compared."""

    rule: str
    runs: dict[str, ComparedRun]
    pools: dict[str, ComparedPool]


def compare_runs(runs: Mapping[str, NamedRun], *, rule: str = "eldgr") -> Comparison:
    """Return how a rule did in runs, each against the first.

    Args:
        runs: Two or more runs by name, on the same questions and gold answers.
        rule: Whose answers are compared.

    Raises:
        ArgumentError: there are fewer than two runs; they differ in questions or gold answers; or the rule has no
            result in one.
    """
    if len(runs) < 2:
        raise ArgumentError(f"A comparison needs two or more runs; got {len(runs)}.")
    first = next(iter(runs.values()))
    pools = dict[str, ComparedPool]()
    for pool, chosen in _by_pool(runs).items():
        arms = {name: rule_scores_of(runs[name], of, rule) for name, of in zip(runs, chosen, strict=True)}
        require_the_same_questions([*arms.values()])
        pools[pool] = _pool(arms, rule)
    family = [of["contrast"] for pool in pools.values() for of in pool["runs"].values() if of["contrast"]]
    for contrast, p in zip(family, holm([contrast["p"] for contrast in family]), strict=True):
        contrast["p_holm"] = p
    return {
        "rule": rule,
        "runs": {name: _run(named, first) for name, named in runs.items()},
        "pools": pools,
    }


def _by_pool(runs: Mapping[str, NamedRun]) -> dict[str, list[str]]:
    """The pools to compare, by the first run's names: each pool that all runs have, or the only one of each run."""
    first = next(iter(runs.values()))
    if all({*named.pools} == {*first.pools} for named in runs.values()):
        return {pool: [pool] * len(runs) for pool in first.pools}
    if any(len(named.pools) != 1 for named in runs.values()):
        listed = "; ".join(f"{named}: {', '.join(named.pools)}" for named in runs.values())
        raise ArgumentError(f"The runs have different pools ({listed}). Say which one is compared, as RUN:POOL.")
    return {first.pools[0]: [named.pools[0] for named in runs.values()]}


def _pool(arms: Mapping[str, RuleScores], rule: str) -> ComparedPool:
    """Every run against the first on one pool; p is not adjusted yet."""
    first, class_of = next(iter(arms.values())), shown_type(next(iter(arms.values())).figures["task"]).class_of

    def scores(arm: RuleScores) -> ComparedScores:
        of, differ, contrast = arm.figures["rules"][rule], None, None
        if arm is not first:
            shipped = ((one.answer, first.outcomes[id_].answer) for id_, one in arm.outcomes.items())
            differ = sum(class_of(answer) != class_of(other) for answer, other in shipped)
            paired = contrast_of([(arm, first)]) if arm.scored else None
            contrast = paired and Adjusted(**paired, p_holm=paired["p"])
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


# -- cost and settings ------------------------------------------------------------------------------------------------


def _run(named: NamedRun, reference: NamedRun) -> ComparedRun:
    heads = named.run.stated("role")
    return {
        "run": named.run.path.as_posix(),
        "consultations": sums_of(named.summary["consultations"]),
        "models": {role: _model(heads.get(role)) for role in roles_and(heads)},
        "differences": [*_differences(reference, named)],
    }


def _model(head: Mapping[str, Any] | None) -> str:
    lm = head and head["details"].get("lm")
    return "not asked" if head is None else "none" if lm is None else str(lm.get("model", "several"))


def _differences(reference: NamedRun, named: NamedRun) -> Iterator[str]:
    for kind in ("settings", "role"):
        first, second = reference.run.stated(kind), named.run.stated(kind)
        for name in dict.fromkeys([*first, *second]):
            if name not in first or name not in second:
                yield f"{name}: asked only by {(reference if name in first else named).name}"
                continue
            for line in differences(first[name]["details"], second[name]["details"]):
                yield f"{name}: {line}"
