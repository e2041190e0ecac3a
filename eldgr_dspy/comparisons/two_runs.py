"""One run against another: the same rule on the same questions, paired by question; figures, cost, and what differs.

Only runs on the same content and the same questions are compared, since all else is no paired comparison. Percentages
are numbers from 0 to 100, differences percentage points, the first run minus the second.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from typing_extensions import TypedDict

from eldgr_dspy.answers import answer_class
from eldgr_dspy.differences import differences
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.finished_run import RunRead
from eldgr_dspy.figures.record import total_of
from eldgr_dspy.figures.results.summary import Adjusted, RoleSums, RuleFigures, Summary
from eldgr_dspy.figures.summary import as_figures
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.statistics import Contrast, Equivalence, contrast_by_cluster, equivalence_from_counts, holm
from eldgr_dspy.words import ROLES, Role, Task

_MEND = (
    "restore it from a copy, or give its eldgr evaluate command again, without --fresh, which makes it anew and asks "
    "nothing twice"
)


@dataclass(frozen=True, slots=True)
class _Line:
    """What is compared of a decision."""

    id: str
    text: str
    answer: str | None
    em: bool | None
    f1: float | None


class PairContrast(Adjusted):
    """A contrast as in `summary.json`, `p_holm` being over the pools.

    Attributes:
        n_distinct: How many different texts the scored questions have.
        equivalence: Under a margin; None without one, and where a text stands several times.
    """

    n_distinct: int
    equivalence: Equivalence | None


class PairedPool(TypedDict):
    """A pool in two runs: the rule's figures in either, and on how many questions another class of answers ships."""

    n: int
    n_scored: int
    task: Task
    figures: list[RuleFigures]
    differ: int
    contrast: PairContrast | None


class TwoRuns(TypedDict):
    """How a rule did in two runs.

    Attributes:
        runs: The two directories. consultations: What either asked of all roles, every attempt included.
        models: For each role the model that either run asked, `none` for a role without one, None for one not asked.
        differences: A readable line for each difference in what the runs were made with.
    """

    rule: str
    runs: list[str]
    pools: dict[str, PairedPool]
    consultations: list[RoleSums]
    models: dict[Role, list[str | None]]
    differences: list[str]


def compare_runs(one: RunRead, other: RunRead, rule: str = "eldgr", margin: float | None = None) -> TwoRuns:
    """Return how a rule did in two runs.

    Args:
        one, other: The runs. rule: Whose decisions are compared.
        margin: In percentage points, what does not matter: whether the rule is as good in both runs up to it is tested.

    Raises:
        ArgumentError: a run is not finished, the rule has no result in one, or pools or questions differ; or a margin
            that is none.
    """
    figures = one.summary(), other.summary()
    _require_same_pools(one, other, figures)
    for run, summary in zip((one, other), figures, strict=True):
        _require_rule(run, summary, rule)
    lines = [_lines(run, summary, rule) for run, summary in zip((one, other), figures, strict=True)]
    for name in figures[0]["pools"]:
        _require_same_questions(name, (one, other), lines[0][name], lines[1][name])
    contrasts = _contrasts(figures[0], lines[0], lines[1], margin)
    pools: dict[str, PairedPool] = {
        name: {
            "n": pool["n"],
            "n_scored": pool["n_scored"],
            "task": pool["task"],
            "figures": [summary["pools"][name]["rules"][rule] for summary in figures],
            "differ": _differ(pool["task"], lines[0][name], lines[1][name]),
            "contrast": contrasts.get(name),
        }
        for name, pool in figures[0]["pools"].items()
    }
    return {
        "rule": rule,
        "runs": [str(one.path), str(other.path)],
        "pools": pools,
        "consultations": [_asked(summary) for summary in figures],
        "models": {role: [_model(run, role) for run in (one, other)] for role in ROLES},
        "differences": list(_differences(one, other)),
    }


def _require_same_pools(one: RunRead, other: RunRead, figures: tuple[Summary, Summary]) -> None:
    first, second = (summary["pools"] for summary in figures)
    for name in [*first, *second]:
        if name not in first or name not in second:
            has, lacks = (one, other) if name in first else (other, one)
            raise ArgumentError(
                f"{has.path} is on pool {name!r} and {lacks.path} is not; give two runs on the same pools."
            )
        contents = [run.stated("pool")[name]["details"]["sha256"] for run in (one, other)]
        if contents[0] != contents[1]:
            raise ArgumentError(
                f"Pool {name!r} is another in {one.path} (sha256 {contents[0]:.16}...) than in {other.path} "
                f"({contents[1]:.16}...); give two runs on the same content."
            )


def _require_rule(run: RunRead, summary: Summary, rule: str) -> None:
    for name, pool in summary["pools"].items():
        if rule not in pool["rules"]:
            why = "it is withheld there" if rule in pool["withheld"] else "it was not among the rules"
            raise ArgumentError(
                f"{run.path} has no result of rule {rule!r} on pool {name!r}: {why}; "
                f"give --rule one of {', '.join(pool['rules'])}."
            )


def _lines(run: RunRead, summary: Summary, rule: str) -> dict[str, list[_Line]]:
    found: dict[str, list[_Line]] = {name: [] for name in summary["pools"]}
    for row in run.decisions(summary):
        if row["rule"] == rule and row["pool"] in found:
            found[row["pool"]].append(
                _Line(row["id"], folded_question(row["question"]), row["answer"], row["em"], row["f1"])
            )
    return found


def _require_same_questions(pool: str, runs: tuple[RunRead, RunRead], first: list[_Line], second: list[_Line]) -> None:
    """The pool is the same, so that its questions come in one order: the first of another id is the difference."""
    ids = [[line.id for line in lines] for lines in (first, second)]
    number = next((at for at, (one, other) in enumerate(zip_longest(*ids)) if one != other), None)
    if number is None:
        return
    said = [
        f"{run.path} has {repr(found[number]) if number < len(found) else 'no more'}"
        for run, found in zip(runs, ids, strict=True)
    ]
    cut = number == min(map(len, ids))
    raise ArgumentError(
        f"The questions of pool {pool!r} differ first at number {number + 1}: {' and '.join(said)}; "
        + ("give two runs with the same --limit." if cut else f"{_rearranged(ids)}; {_MEND}.")
    )


def _rearranged(ids: Sequence[Sequence[str]]) -> str:
    """What has become of a `decisions.jsonl`, as a run on the same content decides the same questions in one order."""
    same = sorted(ids[0]) == sorted(ids[1])
    return f"the pool is the same, so that one decisions.jsonl has been {'put in another order' if same else 'changed'}"


def _differ(task: Task, first: list[_Line], second: list[_Line]) -> int:
    return sum(1 for one, other in zip(first, second, strict=True) if _key(one, task) != _key(other, task))


def _key(line: _Line, task: Task) -> str | None:
    found = answer_class(line.answer, task)
    return found.key if found else None


def _contrasts(
    summary: Summary, first: Mapping[str, list[_Line]], second: Mapping[str, list[_Line]], margin: float | None
) -> dict[str, PairContrast]:
    """A contrast of each pool that is scored."""
    scored = [name for name, pool in summary["pools"].items() if pool["n_scored"]]
    pairs = {name: _scored(first[name], second[name]) for name in scored}
    found = {name: _paired(pairs[name], lambda line: line.em) for name in scored}
    adjusted = holm([one.p for one in found.values()])
    return {
        name: {
            **as_figures(found[name], _graded(pairs[name])),
            "p_holm": p,
            "n_distinct": found[name].n,
            "equivalence": _equivalence(found[name], margin) if found[name].n == len(pairs[name]) else None,
        }
        for name, p in zip(scored, adjusted, strict=True)
    }


def _scored(first: list[_Line], second: list[_Line]) -> list[tuple[_Line, _Line]]:
    return [pair for pair in zip(first, second, strict=True) if None not in (pair[0].em, pair[1].em)]


def _paired(pairs: Sequence[tuple[_Line, _Line]], score: Callable[[_Line], float | None]) -> Contrast:
    """Rows of one text are one question, with the mean of their scores."""
    one, other = ([100.0 * (score(pair[side]) or 0.0) for pair in pairs] for side in (0, 1))
    return contrast_by_cluster(one, other, [first.text for first, _ in pairs])


def _graded(pairs: Sequence[tuple[_Line, _Line]]) -> Contrast | None:
    return None if pairs[0][0].f1 is None else _paired(pairs, lambda line: line.f1)


def _equivalence(contrast: Contrast, margin: float | None) -> Equivalence | None:
    if margin is None:
        return None
    return equivalence_from_counts(contrast.n, contrast.wins, contrast.losses, margin, unit=100)


def _asked(summary: Summary) -> RoleSums:
    """What a run asked of all roles."""
    roles = summary["consultations"].values()
    asked = [role for role in roles if role["calls"]]
    return {
        "ok": sum(role["ok"] for role in roles),
        "abstained": sum(role["abstained"] for role in roles),
        "failed": sum(role["failed"] for role in roles),
        "recorded": sum(role["recorded"] for role in roles),
        "calls": sum(role["calls"] for role in roles),
        "cached": sum(role["cached"] for role in roles),
        "prompt_tokens": total_of([role["prompt_tokens"] for role in asked]),
        "completion_tokens": total_of([role["completion_tokens"] for role in asked]),
        "cost": total_of([role["cost"] for role in asked]),
    }


def _model(run: RunRead, role: str) -> str | None:
    stated = run.stated("role").get(role)
    if stated is None:
        return None
    lm = stated["details"].get("lm")
    return "none" if lm is None else str(lm.get("model", "several"))


def _differences(one: RunRead, other: RunRead) -> Iterator[str]:
    """Yield a line for each difference in the rule's settings and in the roles that were asked."""
    for kind in ("settings", "role"):
        first, second = one.stated(kind), other.stated(kind)
        for name in dict.fromkeys([*first, *second]):
            if name not in first or name not in second:
                yield f"{name}: asked by {(one if name in first else other).path} alone"
                continue
            for line in differences(first[name]["details"], second[name]["details"]):
                yield f"{name}: {line}"
