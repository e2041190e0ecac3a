"""Compare two runs: the same rule on the same questions, paired by question; results, cost, and other settings.

Only runs on the same content and the same questions can be compared in pairs. Percentages are numbers from 0 to 100,
differences percentage points, the first run minus the second.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from typing_extensions import TypedDict

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.differences import differences
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.contrasts import as_figures
from eldgr_dspy.figures.finished_run import RunRead
from eldgr_dspy.figures.record import total_of
from eldgr_dspy.figures.results.audit_results import RoleSums
from eldgr_dspy.figures.results.summary import Adjusted, RuleFigures, Summary
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.statistics import Contrast, Equivalence, contrast_by_cluster, equivalence_from_counts, holm
from eldgr_dspy.words import Consulted, Task, roles_and

_MEND = (
    "restore it from a copy, or give its eldgr evaluate command again, without --fresh, which makes it anew and asks "
    "nothing twice"
)


@dataclass(frozen=True, slots=True)
class _Line:
    """The compared part of a decision."""

    id: str
    text: str
    answer: str | None
    em: bool | None
    f1: float | None


class PairContrast(Adjusted):
    """A contrast as in `summary.json`, `p_holm` being over the pools.

    Attributes:
        n_distinct: How many different texts the scored questions have.
        equivalence: Under a margin; None without one, or if a text is repeated.
    """

    n_distinct: int
    equivalence: Equivalence | None


class PairedPool(TypedDict):
    """A pool in two runs: the rule's results in both, and on how many questions they ship different classes."""

    n: int
    n_scored: int
    task: Task
    figures: list[RuleFigures]
    differ: int
    contrast: PairContrast | None


class TwoRuns(TypedDict):
    """How a rule did in two runs.

    Attributes:
        runs: The two directories. consultations: Those of all roles in each run, every attempt included.
        models: For each role the model in each run, `none` for a role without one, None for a role not asked.
        differences: A readable line for each difference in the settings and roles of the runs.
    """

    rule: str
    runs: list[str]
    pools: dict[str, PairedPool]
    consultations: list[RoleSums]
    models: dict[Consulted, list[str | None]]
    differences: list[str]


def compare_runs(run_a: RunRead, run_b: RunRead, rule: str = "eldgr", margin: float | None = None) -> TwoRuns:
    """Return how a rule did in two runs.

    Args:
        run_a, run_b: The runs. rule: Whose decisions are compared.
        margin: The difference that does not matter, in percentage points; equivalence within it is tested.

    Raises:
        ArgumentError: a run is not finished, the rule has no result in one, pools or questions differ, or the margin is
            invalid.
    """
    figures = run_a.summary(), run_b.summary()
    _require_same_pools(run_a, run_b, figures)
    for run, summary in zip((run_a, run_b), figures, strict=True):
        _require_rule(run, summary, rule)
    lines = [_lines(run, summary, rule) for run, summary in zip((run_a, run_b), figures, strict=True)]
    for name in figures[0]["pools"]:
        _require_same_questions(name, (run_a, run_b), lines[0][name], lines[1][name])
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
        "runs": [str(run_a.path), str(run_b.path)],
        "pools": pools,
        "consultations": [_asked(summary) for summary in figures],
        "models": {
            role: [_model(run, role) for run in (run_a, run_b)]
            for role in roles_and({*run_a.stated("role"), *run_b.stated("role")})
        },
        "differences": list(_differences(run_a, run_b)),
    }


def _require_same_pools(run_a: RunRead, run_b: RunRead, figures: tuple[Summary, Summary]) -> None:
    first, second = (summary["pools"] for summary in figures)
    for name in [*first, *second]:
        if name not in first or name not in second:
            has, lacks = (run_a, run_b) if name in first else (run_b, run_a)
            raise ArgumentError(
                f"{has.path} is on pool {name!r} and {lacks.path} is not; give two runs on the same pools."
            )
        contents = [run.stated("pool")[name]["details"]["sha256"] for run in (run_a, run_b)]
        if contents[0] != contents[1]:
            raise ArgumentError(
                f"Pool {name!r} differs: in {run_a.path} it has sha256 {contents[0]:.16}..., in {run_b.path} "
                f"{contents[1]:.16}...; give two runs on the same content."
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
    lines: dict[str, list[_Line]] = {name: [] for name in summary["pools"]}
    for row in run.decisions(summary):
        if row["rule"] == rule and row["pool"] in lines:
            lines[row["pool"]].append(
                _Line(row["id"], folded_question(row["question"]), row["answer"], row["em"], row["f1"])
            )
    return lines


def _require_same_questions(pool: str, runs: tuple[RunRead, RunRead], first: list[_Line], second: list[_Line]) -> None:
    """The pool is the same, so its questions have one order: the first different id is the difference."""
    ids = [[line.id for line in lines] for lines in (first, second)]
    number = next((at for at, (id_, other) in enumerate(zip_longest(*ids)) if id_ != other), None)
    if number is None:
        return
    said = [
        f"{run.path} has {repr(given[number]) if number < len(given) else 'no more'}"
        for run, given in zip(runs, ids, strict=True)
    ]
    cut = number == min(map(len, ids))
    raise ArgumentError(
        f"The questions of pool {pool!r} differ first at number {number + 1}: {' and '.join(said)}; "
        + ("give two runs with the same --limit." if cut else f"{_rearranged(ids)}; {_MEND}.")
    )


def _rearranged(ids: Sequence[Sequence[str]]) -> str:
    """What happened to a `decisions.jsonl`: a run on the same content decides the same questions in the same order."""
    same = sorted(ids[0]) == sorted(ids[1])
    return f"the pool is the same, so one decisions.jsonl has been {'put in another order' if same else 'changed'}"


def _differ(task: Task, first: list[_Line], second: list[_Line]) -> int:
    kind = shown_type(task)
    return sum(kind.class_of(a.answer) != kind.class_of(b.answer) for a, b in zip(first, second, strict=True))


def _contrasts(
    summary: Summary, first: Mapping[str, list[_Line]], second: Mapping[str, list[_Line]], margin: float | None
) -> dict[str, PairContrast]:
    """A contrast of each pool that is scored."""
    scored = [name for name, pool in summary["pools"].items() if pool["n_scored"]]
    pairs = {name: _scored(first[name], second[name]) for name in scored}
    contrasts = {name: _paired(pairs[name], lambda line: line.em) for name in scored}
    adjusted = holm([contrast.p for contrast in contrasts.values()])
    return {
        name: {
            **as_figures(contrasts[name], _graded(pairs[name])),
            "p_holm": p,
            "n_distinct": contrasts[name].n,
            "equivalence": _equivalence(contrasts[name], margin) if contrasts[name].n == len(pairs[name]) else None,
        }
        for name, p in zip(scored, adjusted, strict=True)
    }


def _scored(first: list[_Line], second: list[_Line]) -> list[tuple[_Line, _Line]]:
    return [pair for pair in zip(first, second, strict=True) if None not in (pair[0].em, pair[1].em)]


def _paired(pairs: Sequence[tuple[_Line, _Line]], score: Callable[[_Line], float | None]) -> Contrast:
    """Rows with the same text are one question, with the mean of their scores."""
    scores_a, scores_b = ([100.0 * (score(pair[side]) or 0.0) for pair in pairs] for side in (0, 1))
    return contrast_by_cluster(scores_a, scores_b, [first.text for first, _ in pairs])


def _graded(pairs: Sequence[tuple[_Line, _Line]]) -> Contrast | None:
    return None if pairs[0][0].f1 is None else _paired(pairs, lambda line: line.f1)


def _equivalence(contrast: Contrast, margin: float | None) -> Equivalence | None:
    if margin is None:
        return None
    return equivalence_from_counts(contrast.n, contrast.wins, contrast.losses, margin, unit=100)


def _asked(summary: Summary) -> RoleSums:
    """The consultations of all roles in a run."""
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


def _differences(run_a: RunRead, run_b: RunRead) -> Iterator[str]:
    """Yield a line for each difference in the rule's settings and in the roles that were asked."""
    for kind in ("settings", "role"):
        first, second = run_a.stated(kind), run_b.stated(kind)
        for name in dict.fromkeys([*first, *second]):
            if name not in first or name not in second:
                yield f"{name}: asked only by {(run_a if name in first else run_b).path}"
                continue
            for line in differences(first[name]["details"], second[name]["details"]):
                yield f"{name}: {line}"
