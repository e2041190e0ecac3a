"""One run against another: the same rule on the same questions, paired by question; figures, cost, and what differs.

Only runs on the same content and the same questions are compared, since all else is no paired comparison. Percentages
are numbers from 0 to 100, differences percentage points, the first run minus the second.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from eldgr_dspy.answers import answer_class
from eldgr_dspy.comparisons.arms import as_figures
from eldgr_dspy.differences import differences
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.finished import RunRead
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.statistics import contrast_by_cluster, equivalence_from_counts, holm
from eldgr_dspy.words import ROLES, Task

_COUNTS = ("ok", "abstained", "failed", "recorded", "calls")
_MEND = (
    "restore it from a copy, or give its eldgr evaluate command again, without --fresh, which makes it anew and asks "
    "nothing twice"
)
_AMOUNTS = ("prompt_tokens", "completion_tokens", "cost")


@dataclass(frozen=True, slots=True)
class _Line:
    """What is compared of a decision."""

    id: str
    text: str
    answer: str | None
    em: bool | None
    f1: float | None


def compare_runs(one: RunRead, other: RunRead, rule: str = "eldgr", margin: float | None = None) -> dict[str, Any]:
    """Return how a rule did in two runs.

    Args:
        one, other: The runs. rule: Whose decisions are compared.
        margin: In percentage points, what does not matter: whether the rule is as good in both runs up to it is tested.

    Returns:
        `rule`; `runs`, the two directories; `pools`: for each its `n`, `n_scored` and `task`, the rule's figures in
        either run (`figures`, two entries), on how many questions another class of answers ships (`differ`), and
        `contrast`, as in `summary.json`, `p_holm` being over the pools, None without gold answers; under a margin it
        has `equivalence`: the two one-sided tests of right and wrong, see `statistics.Equivalence`, None where a text
        stands several times; `n_distinct`, how many different texts the scored questions have; `consultations`:
        what either run asked in all; `models`: for each role the model that either run asked, `none` for a role without
        one, None for a role that was not asked; `differences`: a readable line for each in what the runs were made
        with.

    Raises:
        ArgumentError: a run is not finished, the rule has no result in one, or pools or questions differ; or a margin
            that is none.
    """
    figures = one.summary(), other.summary()
    _require_same_pools(one, other, figures)
    for run, summary in zip((one, other), figures, strict=True):
        _require_rule(run, summary, rule)
    lines = [_lines(run, summary, rule) for run, summary in zip((one, other), figures, strict=True)]
    pools = {}
    for name, pool in figures[0]["pools"].items():
        _require_same_questions(name, (one, other), lines[0][name], lines[1][name])
        pools[name] = {
            **{key: pool[key] for key in ("n", "n_scored", "task")},
            "figures": [summary["pools"][name]["rules"][rule] for summary in figures],
            "differ": _differ(pool["task"], lines[0][name], lines[1][name]),
            "contrast": _contrast(lines[0][name], lines[1][name], margin) if pool["n_scored"] else None,
        }
    _adjust([pool["contrast"] for pool in pools.values() if pool["contrast"]])
    return {
        "rule": rule,
        "runs": [str(one.path), str(other.path)],
        "pools": pools,
        "consultations": [_asked(summary) for summary in figures],
        "models": {role: [_model(run, role) for run in (one, other)] for role in ROLES},
        "differences": list(_differences(one, other)),
    }


def _require_same_pools(one: RunRead, other: RunRead, figures: tuple[dict[str, Any], dict[str, Any]]) -> None:
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


def _require_rule(run: RunRead, summary: Mapping[str, Any], rule: str) -> None:
    for name, pool in summary["pools"].items():
        if rule not in pool["rules"]:
            why = "it is withheld there" if rule in pool["withheld"] else "it was not among the rules"
            raise ArgumentError(
                f"{run.path} has no result of rule {rule!r} on pool {name!r}: {why}; "
                f"give --rule one of {', '.join(pool['rules'])}."
            )


def _lines(run: RunRead, summary: Mapping[str, Any], rule: str) -> dict[str, list[_Line]]:
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


def _contrast(first: list[_Line], second: list[_Line], margin: float | None) -> dict[str, Any]:
    """Rows of one text are one question, with the mean of their scores."""
    scored = [pair for pair in zip(first, second, strict=True) if None not in (pair[0].em, pair[1].em)]
    texts = [one.text for one, _ in scored]
    one, other = ([100.0 * bool(pair[side].em) for pair in scored] for side in (0, 1))
    found, graded = contrast_by_cluster(one, other, texts), None
    if scored[0][0].f1 is not None:
        one, other = ([100.0 * (pair[side].f1 or 0.0) for pair in scored] for side in (0, 1))
        graded = contrast_by_cluster(one, other, texts)
    figures = {**as_figures(found, graded), "n_distinct": found.n}
    if margin is not None:
        distinct = found.n == len(scored)
        figures["equivalence"] = _equivalence(found.n, found.wins, found.losses, margin) if distinct else None
    return figures


def _equivalence(n: int, wins: int, losses: int, margin: float) -> dict[str, Any]:
    found = equivalence_from_counts(n, wins, losses, margin, unit=100)
    return {**asdict(found), "interval": list(found.interval), "p": found.p}


def _adjust(contrasts: Sequence[dict[str, Any]]) -> None:
    for one, p in zip(contrasts, holm([one["p"] for one in contrasts]), strict=True):
        one["p_holm"] = p


def _asked(summary: Mapping[str, Any]) -> dict[str, float | None]:
    """What a run asked of all roles, every attempt included; an amount that is unknown for one is None."""
    roles = summary["consultations"].values()
    counts = {name: sum(role[name] for role in roles) for name in _COUNTS}
    return {**counts, **{name: _sum([role[name] for role in roles if role["calls"]]) for name in _AMOUNTS}}


def _sum(amounts: list[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


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
