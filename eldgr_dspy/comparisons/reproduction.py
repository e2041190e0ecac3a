"""Reproduce the paper's tables: its results next to those of runs, and its contrasts recomputed from their counts.

Runs are matched to the paper's data by the given names, never by the names of their pools. Numbers here are percentages
and percentage points as in `summary.json`; the printed ones are in `eldgr_dspy.comparisons.published`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, Literal

from typing_extensions import TypedDict

from eldgr_dspy.comparisons.comparability import Here, SecondsAQuestion, comparable, not_comparable
from eldgr_dspy.comparisons.named_runs import NamedRun, named_runs
from eldgr_dspy.comparisons.published import CORRECTED, LABELS, LEGACY, PUBLISHED, Lead, PublishedScore, Selection
from eldgr_dspy.consultations import Consultation
from eldgr_dspy.figures.results.summary import Scores, WinsLosses
from eldgr_dspy.formatting import figure
from eldgr_dspy.statistics import contrast_from_counts
from eldgr_dspy.words import ROLES, Role, Task, is_role


class PublishedLead(TypedDict):
    """A lead, as printed."""

    delta: float
    ci: list[float]
    p: float


class Agreement(TypedDict):
    """Whether delta and p equal the printed ones in every digit."""

    delta: bool
    p: bool


class Recomputed(WinsLosses):
    """A published contrast, recomputed from its counts.

    Attributes:
        counts: Whether wins and losses are printed or implied.
        ends_apart: By how many questions, steps of 1/n, either end of the interval differs.
    """

    data: str
    against: str
    n: int
    counts: Literal["printed", "implied"]
    published: PublishedLead
    recomputed: PublishedLead
    agree: Agreement
    ends_apart: list[int]


class PublishedFigures(TypedDict):
    """The paper's results for the four selectors on one set of questions."""

    title: str
    table: str
    task: Task
    n: int
    rules: dict[str, Scores]
    leads: dict[str, PublishedLead]
    full_authority: float
    seconds: dict[str, float | None]
    homogeneous: int | None
    audit: dict[str, int] | None


class Beside(TypedDict):
    """The published results on some data, the run's results (None without a run), and sentences on comparability."""

    published: PublishedFigures
    here: Here | None
    comparable: list[str]
    not_comparable: list[str]


class Reproduction(TypedDict):
    """Every table of the paper as figures; `ablations` are the published ones, as numbers."""

    data: dict[str, Beside]
    contrasts: list[Recomputed]
    ablations: dict[str, Any]


def reproduce(runs: Iterable[str] = ()) -> Reproduction:
    """Return every table of the paper as numbers, with the results of runs next to them.

    Args:
        runs: Each `NAME=RUN` or `NAME=RUN:POOL` with the names of `PUBLISHED`, as for
            `eldgr_dspy.comparisons.named_runs.named_runs`; for a missing name only the paper's results are shown.

    Raises:
        ArgumentError: a name is unknown or given twice, or a run is on a pool of another task, is not finished or
            cannot be read whole.
        JournalError: a journal cannot be read.
    """
    by_name = named_runs(runs, {name: published.task for name, published in PUBLISHED.items()})
    return {
        "data": {name: _beside(published, by_name.get(name)) for name, published in PUBLISHED.items()},
        "contrasts": list(recomputed()),
        "ablations": {"corrected": _plain(asdict(CORRECTED)), "legacy": _plain(asdict(LEGACY))},
    }


def recomputed() -> Iterator[Recomputed]:
    """Yield the nine published contrasts, each recomputed by the package's statistics."""
    for name, selection in PUBLISHED.items():
        for against, lead in selection.leads.items():
            contrast = contrast_from_counts(selection.n, lead.wins, lead.losses, unit=100)
            ends = zip(contrast.interval, lead.interval, strict=True)
            yield {
                "data": name,
                "against": against,
                "n": selection.n,
                "wins": lead.wins,
                "losses": lead.losses,
                "counts": lead.counts,
                "published": _lead(lead),
                "recomputed": {"delta": contrast.delta, "ci": list(contrast.interval), "p": contrast.p},
                "agree": {"delta": agrees(contrast.delta, lead.delta), "p": agrees(contrast.p, lead.p)},
                "ends_apart": [abs(_steps(end, selection.n) - _steps(printed, selection.n)) for end, printed in ends],
            }


def agrees(value: float, printed: Decimal) -> bool:
    """Whether a value, rounded half up to the printed digits, equals the printed one."""
    return figure(value, _places(printed)) == f"{printed:f}"


def _places(printed: Decimal) -> int:
    return -int(printed.as_tuple().exponent)


def _steps(end: float | Decimal, n: int) -> int:
    """An end of an interval in percentage points, in questions."""
    return round(float(end) * n / 100)


# -- what is published ------------------------------------------------------------------------------------------------


def _beside(published: Selection, run: NamedRun | None) -> Beside:
    here = None if run is None else found_in(run)
    return {
        "published": {
            "title": published.title,
            "table": published.table,
            "task": published.task,
            "n": published.n,
            "rules": {rule: _score(score) for rule, score in published.scores.items()},
            "leads": {against: _lead(lead) for against, lead in published.leads.items()},
            "full_authority": float(published.full_authority),
            "seconds": _plain(asdict(published.seconds)),
            "homogeneous": published.homogeneous,
            "audit": None if published.audit is None else dict(published.audit),
        },
        "here": here,
        "comparable": [] if here is None else list(comparable(here, published)),
        "not_comparable": [] if here is None else list(not_comparable(here, published)),
    }


def _score(score: PublishedScore) -> Scores:
    return {"em": float(score.em), "f1": None if score.f1 is None else float(score.f1)}


def _lead(lead: Lead) -> PublishedLead:
    return {"delta": float(lead.delta), "ci": [float(end) for end in lead.interval], "p": float(lead.p)}


def _plain(value: Any) -> Any:
    """A value with each `Decimal` replaced by a float."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


# -- what a run measured ----------------------------------------------------------------------------------------------


def found_in(named: NamedRun) -> Here:
    """Return what a run measured, in the form of the paper's tables.

    Raises:
        ArgumentError: the run cannot be read whole.
    """
    pool = named.figures
    leads = {row["against"]: row for row in pool["contrasts"] if row["rule"] == "eldgr"}
    authority = [row for row in pool["contrasts"] if (row["rule"], row["against"]) == ("judge", "majority")]
    asked = _asked(named)
    stated = named.run.stated("role")
    return {
        "run": named.run.path.as_posix(),
        "pool": named.pool,
        "sha256": named.sha256,
        "n": pool["n"],
        "n_scored": pool["n_scored"],
        "n_failed": pool["n_failed"],
        "candidates": pool["candidates"],
        "rules": {rule: pool["rules"][rule] for rule in LABELS if rule in pool["rules"]},
        "withheld": {rule: why for rule, why in pool["withheld"].items() if rule in LABELS},
        "leads": {rule: leads[rule] for rule in LABELS if rule in leads},
        "full_authority": authority[0] if authority else None,
        "audit": pool["audit"],
        "homogeneous": pool["audit"] and pool["audit"]["homogeneous"],
        "settings": named.run.stated_settings,
        "confirmation": named.summary["confirmation"],
        "remarks": named.summary["remarks"],
        "roles": {
            role: {
                "consultations": counts.consultations,
                "abstained": counts.abstained,
                "recorded": counts.recorded,
                "calls": counts.calls,
                "models": counts.models,
                "module": stated[role]["details"].get("module") if role in stated else None,
            }
            for role, counts in asked.items()
            if counts.consultations
        },
        "seconds": _seconds(asked, pool["n"]),
    }


@dataclass(slots=True)
class _Asked:
    """The consultations of a role on a pool; every attempt counts, since each takes time."""

    consultations: int = 0
    abstained: int = 0
    recorded: int = 0
    calls: int = 0
    models: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, consultation: Consultation) -> None:
        self.consultations += 1
        self.abstained += consultation.outcome == "abstained"
        self.recorded += consultation.recorded
        self.calls += consultation.calls
        self.seconds += consultation.seconds or 0.0
        if consultation.asked and consultation.asked not in self.models:
            self.models.append(consultation.asked)


def _asked(named: NamedRun) -> dict[Role, _Asked]:
    """The roles that were asked on the decided questions."""
    ids = {row["id"] for row in named.run.decisions(named.summary) if row["pool"] == named.pool}
    asked: dict[Role, _Asked] = {role: _Asked() for role in ROLES}
    for consultation in named.run.consultations():
        if consultation.pool == named.pool and consultation.id in ids and is_role(consultation.role):
            asked[consultation.role].add(consultation)
    return asked


def _seconds(asked: Mapping[Role, _Asked], n: int) -> SecondsAQuestion:
    def mean(*roles: Role) -> float | None:
        recorded = any(asked[role].recorded for role in roles)
        return None if recorded else sum(asked[role].seconds for role in roles) / n

    return {"judge": mean("judge"), "verifier": mean("deriver", "repairer"), "both": mean(*ROLES)}
