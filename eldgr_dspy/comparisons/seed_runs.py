"""Compare two rules over runs of several seeds on the same questions, and split the spread by its source.

A run is a seed: of sampling if each run has its own pool, or of the judge if all runs are on one pool. Scores are
percentages, differences percentage points, variances their squares.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from typing_extensions import TypedDict

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.comparisons.named_runs import NamedRun, named_runs
from eldgr_dspy.comparisons.rule_scores import RuleScores, require_the_same_questions, rule_scores_of
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.contrasts import as_figures
from eldgr_dspy.figures.results.summary import Paired, WinsLosses
from eldgr_dspy.formatting import questions
from eldgr_dspy.statistics import Contrast, SeedVariance, contrast_by_cluster, seed_variance
from eldgr_dspy.words import Task

Score: TypeAlias = Literal["em", "f1"]
Pairs: TypeAlias = Sequence[tuple[RuleScores, RuleScores]]

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
    variance: dict[Score, Spreads | None]
    contrast: Paired
    remarks: list[str]


def over_seeds(runs: Iterable[str], *, rule: str = "eldgr", against: str = "majority") -> Seeds:
    """Return how one rule did against another in runs of several seeds.

    Args:
        runs: Each `RUN` or `RUN:POOL`, a finished run on the same questions and gold answers as the others.
        rule, against: Whose answers are scored.

    Raises:
        ArgumentError: there are fewer than two runs or scored questions, one is given twice, or the rules are the same;
            a run cannot be read, is not finished, has no result of a rule, or other questions or gold answers.
        JournalError: a journal cannot be read.
    """
    seeds = [*named_runs(f"run {number}={given}" for number, given in enumerate(runs, start=1)).values()]
    _require_several(seeds)
    if rule == against:
        raise ArgumentError(f"rule={rule!r} and against={against!r} are the same; give two rules.")
    pairs = [(rule_scores_of(named, rule), rule_scores_of(named, against)) for named in seeds]
    require_the_same_questions([arm for arm, _ in pairs])
    ids = [id_ for id_, em in pairs[0][0].em.items() if em is not None]
    if len(ids) < 2:
        raise ArgumentError(f"{questions(len(ids))} with a gold answer; give runs on two or more, to see their spread.")
    figures = seeds[0].figures
    scores: tuple[Score, ...] = ("em", "f1") if shown_type(figures["task"]).has_f1 else ("em",)
    contrasts = {score: _contrast(pairs, ids, score) for score in scores}
    return {
        "rule": rule,
        "against": against,
        "task": figures["task"],
        "n": figures["n"],
        "n_scored": figures["n_scored"],
        "runs": [_run(*pair, ids, scores) for pair in pairs],
        "variance": {score: _variance(pairs, ids, score) if score in scores else None for score in ("em", "f1")},
        "contrast": as_figures(contrasts["em"], contrasts.get("f1")),
        "remarks": list(_remarks(seeds, [pairs[0][0].texts[id_] for id_ in ids])),
    }


def _require_several(runs: Sequence[NamedRun]) -> None:
    if len(runs) < 2:
        raise ArgumentError(f"A comparison of seeds needs two or more runs; got {len(runs)}. Give one run a seed.")
    seen = dict[tuple[str, str], NamedRun]()
    for named in runs:
        place = str(named.run.path.resolve()), named.pool
        if place in seen:
            raise ArgumentError(f"{named} is the same run as {seen[place]}; a run is one seed: give each once.")
        seen[place] = named


def _scores(arm: RuleScores, ids: Sequence[str], score: Score) -> list[float]:
    given = arm.em if score == "em" else arm.f1
    return [given[id_] or 0.0 for id_ in ids]  # those that are scored


def _run(arm: RuleScores, other: RuleScores, ids: Sequence[str], scores: Sequence[Score]) -> SeedRun:
    rule, against = _scores(arm, ids, "em"), _scores(other, ids, "em")
    means = {score: [sum(_scores(of, ids, score)) / len(ids) for of in (arm, other)] for score in scores}
    return {
        "run": arm.named.run.path.as_posix(),
        "pool": arm.named.pool,
        "sha256": arm.named.sha256,
        "em": means["em"],
        "f1": means.get("f1"),
        "delta": means["em"][0] - means["em"][1],
        "wins": sum(1 for a, b in zip(rule, against, strict=True) if a > b),
        "losses": sum(1 for a, b in zip(rule, against, strict=True) if a < b),
    }


def _variance(pairs: Pairs, ids: Sequence[str], score: Score) -> Spreads:
    rule, against = ([_scores(pair[side], ids, score) for pair in pairs] for side in (0, 1))
    gaps = [[a - b for a, b in zip(*rows, strict=True)] for rows in zip(rule, against, strict=True)]
    return {"rule": seed_variance(rule), "against": seed_variance(against), "difference": seed_variance(gaps)}


def _contrast(pairs: Pairs, ids: Sequence[str], score: Score) -> Contrast:
    """The rule against the other with questions as the unit: the outcomes of one question err together."""
    rule, against = ([outcome for pair in pairs for outcome in _scores(pair[side], ids, score)] for side in (0, 1))
    return contrast_by_cluster(rule, against, [arm.texts[id_] for arm, _ in pairs for id_ in ids])


def _remarks(runs: Sequence[NamedRun], texts: Sequence[str]) -> Iterator[str]:
    n, distinct = len(texts), len(set(texts))
    if distinct < n:
        yield (
            f"{questions(n)} have {distinct:,} different texts: a repeated text counts once in the "
            "contrast, and every time in the spread."
        )
    if n < runs[0].figures["n"]:
        yield f"Scores are over the {questions(n)} that have a gold answer, of {runs[0].figures['n']:,}."
    contents = {named.sha256 for named in runs}
    if len(contents) == 1:
        yield "All runs are on one pool: the seeds are those of the roles; the results are only for these candidates."
    elif len(contents) < len(runs):
        yield "Some of the runs are on the same pool: its candidates count as several seeds."
    if len(runs) < _FEW:
        yield f"{len(runs)} seeds say little about other seeds, so the interval over seeds is wide."
