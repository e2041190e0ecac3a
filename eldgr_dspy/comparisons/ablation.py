"""Compare policies: one rule on the pools of several policies, question by question, as in the paper's ablation table.

Each run is on one policy's pool of the same questions. The candidates differ, so a difference is the policy's; the
questions and their gold answers must be the same. Percentages are numbers from 0 to 100, differences percentage points,
the row minus its reference.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from typing_extensions import TypedDict

from eldgr_dspy.comparisons.named_runs import NamedRun, named_runs
from eldgr_dspy.comparisons.published import CORRECTED, LEGACY
from eldgr_dspy.comparisons.rule_scores import RuleScores, contrast_of, require_the_same_questions, rule_scores_of
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.results.summary import Adjusted, Scores
from eldgr_dspy.formatting import questions
from eldgr_dspy.statistics import holm
from eldgr_dspy.words import CHANNELS, Task

REFERENCES = ("full", "grpo")
"""The references of the paper's table."""

_JUDGE_FREE = ("first", "majority")
_MADE_WITH: Mapping[str, Literal["settings", "role"]] = {"settings of the {}": "settings", "{}": "role"}


class PublishedRow(TypedDict, total=False):
    """The paper's results for a policy: scores, or a range of them."""

    em: float
    f1: float
    em_range: list[float]


class PolicyRow(Scores):
    """A policy: its run and pool, and the paper's results for a policy of that name."""

    run: str
    pool: str
    sha256: str
    published: PublishedRow | None


class PolicyContrast(Adjusted):
    """A policy against another; `p_holm` is within the contrasts against the same one."""

    published: int | None


class Ablation(TypedDict):
    """How one rule did on the pools of several policies; `contrasts` by the name they are against, then by name."""

    rule: str
    task: Task
    n: int
    n_scored: int
    runs: dict[str, PolicyRow]
    contrasts: dict[str, dict[str, PolicyContrast]]
    remarks: list[str]


def ablate(runs: Iterable[str], *, rule: str = "first", against: Sequence[str] = ()) -> Ablation:
    """Return how one rule did on the pools of several policies.

    Args:
        runs: Each `NAME=RUN` or `NAME=RUN:POOL`, as `eldgr_dspy.comparisons.named_runs` reads them; any names. A
            channel's name stands for the policy trained without it.
        rule: Whose answers are scored; `first` is what the policy itself answers.
        against: The names of the references; by default those of `full` and `grpo` that are given.

    Raises:
        ArgumentError: as `named_runs`; there are fewer than two runs or no reference; the runs differ in questions or
            gold answers; or the rule has no result in one.
        JournalError: a journal cannot be read.
    """
    by_name = named_runs(runs)
    references = _references(by_name, against)
    arms = {name: rule_scores_of(named, rule) for name, named in by_name.items()}
    require_the_same_questions(list(arms.values()))
    first = next(iter(by_name.values())).figures
    return {
        "rule": rule,
        "task": first["task"],
        "n": first["n"],
        "n_scored": first["n_scored"],
        "runs": {name: _row(name, arm, rule) for name, arm in arms.items()},
        "contrasts": {reference: _family(reference, arms) for reference in references},
        "remarks": list(_remarks(by_name, rule)),
    }


def _references(runs: Mapping[str, NamedRun], against: Sequence[str]) -> list[str]:
    if len(runs) < 2:
        raise ArgumentError(f"An ablation needs two or more runs; got {len(runs)}. Give them as full=RUN grpo=RUN.")
    for name in against:
        if name not in runs:
            raise ArgumentError(f"against must be one of {', '.join(runs)}; got {name!r}.")
    references = list(dict.fromkeys(against)) or [name for name in REFERENCES if name in runs]
    if not references:
        raise ArgumentError(
            f"No run is named full or grpo. Choose the run to compare the others with: {', '.join(runs)}."
        )
    return references


# -- figures ----------------------------------------------------------------------------------------------------------


def _row(name: str, arm: RuleScores, rule: str) -> PolicyRow:
    figures = arm.named.figures
    return {
        "run": arm.named.run.path.as_posix(),
        "pool": arm.named.pool,
        "sha256": arm.named.sha256,
        "em": figures["rules"][rule]["em"],
        "f1": figures["rules"][rule]["f1"],
        "published": _published(name, figures["task"]),
    }


def _published(name: str, task: Task) -> PublishedRow | None:
    """The paper's results for a name: on HotpotQA a row each, on GSM8K only full and the range of the drops."""
    if task == "retrieval":
        row = CORRECTED.rows.get(name)
        return None if row is None else {"em": float(row.em), "f1": float(row.f1)}
    if name == "full":
        return {"em": float(LEGACY.full)}
    return {"em_range": [float(end) for end in LEGACY.drops]} if name in CHANNELS else None


def _family(reference: str, arms: Mapping[str, RuleScores]) -> dict[str, PolicyContrast]:
    """Every other row against one of them; their probabilities are adjusted together."""
    others = {name: arm for name, arm in arms.items() if name != reference}
    contrasts = {name: contrast_of(arm, arms[reference]) for name, arm in others.items()}
    adjusted = holm([contrast["p"] for contrast in contrasts.values()])
    task = arms[reference].named.figures["task"]
    return {
        name: {**contrast, "p_holm": p, "published": _published_delta(name, reference, task)}
        for (name, contrast), p in zip(contrasts.items(), adjusted, strict=True)
    }


def _published_delta(name: str, reference: str, task: Task) -> int | None:
    row = CORRECTED.rows.get(name) if task == "retrieval" else None
    return row.over.get(reference) if row else None


def _remarks(runs: Mapping[str, NamedRun], rule: str) -> Iterator[str]:
    """Yield a sentence for each reason why a difference may not be the policy's."""
    first, *others = runs.values()
    if first.figures["n_scored"] < first.figures["n"]:
        yield (
            f"Scores are over the {questions(first.figures['n_scored'])} that have a gold answer, of "
            f"{first.figures['n']:,}."
        )
    by_content = dict[str, list[str]]()
    for name, named in runs.items():
        by_content.setdefault(named.sha256, []).append(name)
    for names in by_content.values():
        if len(names) > 1:
            yield f"{', '.join(names)}: the same pool, so a difference between them is not a policy's."
    if rule not in _JUDGE_FREE:
        for name in dict.fromkeys(name for other in others for name in _made_otherwise(first, other)):
            yield f"The runs differ in the {name}, which rule {rule!r} uses: a difference is not only the policy's."


def _made_otherwise(named: NamedRun, other: NamedRun) -> Iterator[str]:
    """Yield the settings and the roles that differ between two runs."""
    for said, kind in _MADE_WITH.items():
        first, second = named.run.stated(kind), other.run.stated(kind)
        for name in first:
            if name in second and first[name]["details"] != second[name]["details"]:
                yield said.format(name)
