"""The paper, rebuilt: its figures beside those of runs in its form, and its contrasts computed again from their counts.

Runs stand for the paper's data by name, never by the names of their pools. Figures here are percentages and percentage
points as in `summary.json`; what is printed is in `eldgr_dspy.comparisons.published`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from eldgr_dspy.comparisons.comparability import comparable, not_comparable
from eldgr_dspy.comparisons.named_runs import NamedRun, named_runs
from eldgr_dspy.comparisons.published import CORRECTED, LABELS, LEGACY, PUBLISHED, Lead, PublishedScore, Selection
from eldgr_dspy.formatting import figure
from eldgr_dspy.journal import Consultation
from eldgr_dspy.statistics import contrast_from_counts
from eldgr_dspy.words import ROLES, Role

_FLIPS = ("preserved", "judge_overrides", "repair_overrides", "correct_to_incorrect", "incorrect_to_correct")


def reproduce(runs: Iterable[str] = ()) -> dict[str, Any]:
    """Return every table of the paper as figures, with what runs came to beside them.

    Args:
        runs: Each `NAME=RUN` or `NAME=RUN:POOL`, the names being those of `PUBLISHED`, as for
            `eldgr_dspy.comparisons.named_runs.named_runs`; a name that is left out has nothing beside it.

    Returns:
        `data`: for each name of `PUBLISHED` what is `published`, what is `here` (None without a run), and sentences on
        what is `comparable` and what is `not_comparable`; `contrasts`: the nine, see `recomputed`; `ablations`: what is
        published of them.

    Raises:
        ArgumentError: a name is none of the paper's or comes twice, or a run is on a pool of another task, is not
            finished or cannot be read whole.
        JournalError: a journal cannot be read.
    """
    found = named_runs(runs, {name: published.task for name, published in PUBLISHED.items()})
    return {
        "data": {name: _beside(published, found.get(name)) for name, published in PUBLISHED.items()},
        "contrasts": list(recomputed()),
        "ablations": {"corrected": _plain(asdict(CORRECTED)), "legacy": _plain(asdict(LEGACY))},
    }


def recomputed() -> Iterator[dict[str, Any]]:
    """Yield the nine published contrasts, each computed again from its wins, losses and n by the package's statistics.

    Of each: `data` and `against`; `n`, `wins`, `losses`, and whether these `counts` are printed or implied; `published`
    and `recomputed`, with `delta`, `ci` and `p`; whether delta and p `agree` to every printed digit; and `ends_apart`,
    by how many questions (steps of 1/n) either end of the interval differs.
    """
    for name, selection in PUBLISHED.items():
        for against, lead in selection.leads.items():
            found = contrast_from_counts(selection.n, lead.wins, lead.losses, unit=100)
            ends = zip(found.interval, lead.interval, strict=True)
            yield {
                "data": name,
                "against": against,
                "n": selection.n,
                "wins": lead.wins,
                "losses": lead.losses,
                "counts": lead.counts,
                "published": _lead(lead),
                "recomputed": {"delta": found.delta, "ci": list(found.interval), "p": found.p},
                "agree": {"delta": agrees(found.delta, lead.delta), "p": agrees(found.p, lead.p)},
                "ends_apart": [abs(_steps(end, selection.n) - _steps(printed, selection.n)) for end, printed in ends],
            }


def agrees(value: float, printed: Decimal) -> bool:
    """Whether a value, rounded half up to the digits that are printed, is what is printed."""
    return figure(value, _places(printed)) == f"{printed:f}"


def _places(printed: Decimal) -> int:
    return -int(printed.as_tuple().exponent)


def _steps(end: float | Decimal, n: int) -> int:
    """An end of an interval in percentage points, in questions."""
    return round(float(end) * n / 100)


# -- what is published ------------------------------------------------------------------------------------------------


def _beside(published: Selection, run: NamedRun | None) -> dict[str, Any]:
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
            "audit": published.audit and dict(published.audit),
        },
        "here": here,
        "comparable": [] if here is None else list(comparable(here, published)),
        "not_comparable": [] if here is None else list(not_comparable(here, published)),
    }


def _score(score: PublishedScore) -> dict[str, float | None]:
    return {"em": float(score.em), "f1": None if score.f1 is None else float(score.f1)}


def _lead(lead: Lead) -> dict[str, Any]:
    return {"delta": float(lead.delta), "ci": [float(end) for end in lead.interval], "p": float(lead.p)}


def _plain(value: Any) -> Any:
    """A value with numbers in the place of decimals."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


# -- what a run came to -----------------------------------------------------------------------------------------------


def found_in(named: NamedRun) -> dict[str, Any]:
    """Return what a run came to, in the form of the paper's tables.

    Returns:
        `run`, `pool` and its `sha256`; `n`, `n_scored`, `n_failed`, `candidates`; `rules` with their scores, and which
        are `withheld`; `leads` of eldgr and `full_authority` (judge against majority) as contrasts of `summary.json`;
        `audit`; `homogeneous`; `settings`; `confirmation` and `remarks`, as the summary has them; `roles`: for each
        that was asked on the pool how often, of which models, and its module; and `seconds` a question.

    Raises:
        ArgumentError: the run cannot be read whole.
    """
    pool = named.figures
    leads = {one["against"]: _contrast(one) for one in pool["contrasts"] if one["rule"] == "eldgr"}
    authority = [one for one in pool["contrasts"] if (one["rule"], one["against"]) == ("judge", "majority")]
    audit = pool["audit"]
    return {
        "run": named.run.path.as_posix(),
        "pool": named.pool,
        "sha256": named.sha256,
        **{key: pool[key] for key in ("n", "n_scored", "n_failed")},
        "candidates": pool.get("candidates"),
        "rules": {rule: _only(pool["rules"][rule], "em", "f1") for rule in LABELS if rule in pool["rules"]},
        "withheld": {rule: dict(why) for rule, why in pool["withheld"].items() if rule in LABELS},
        "leads": {rule: leads[rule] for rule in LABELS if rule in leads},
        "full_authority": _contrast(authority[0]) if authority else None,
        "audit": audit and _only(audit, *_FLIPS),
        "homogeneous": audit and audit["homogeneous"],
        "settings": asdict(named.run.settings),
        "confirmation": _confirmation(named),
        "remarks": list(named.summary["remarks"]),
        **_consultations(named),
    }


def _only(figures: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: figures[key] for key in keys}


def _contrast(found: Mapping[str, Any]) -> dict[str, Any]:
    return _only(found, "delta", "ci", "p", "wins", "losses")


def _confirmation(named: NamedRun) -> dict[str, Any] | None:
    """Under which lock the run is, and how often the pool had been seen."""
    found = named.summary.get("confirmation")
    return found and {"lock": found["lock"], "seen_before": found["seen_before"].get(named.pool, 0)}


@dataclass(slots=True)
class _Asked:
    """What a role was asked on a pool; every attempt counts, as it does for who waits."""

    consultations: int = 0
    abstained: int = 0
    recorded: int = 0
    calls: int = 0
    models: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def take(self, one: Consultation) -> None:
        self.consultations += 1
        self.abstained += one.outcome == "abstained"
        self.recorded += one.recorded
        self.calls += one.calls
        self.seconds += one.seconds or 0.0
        if one.asked and one.asked not in self.models:
            self.models.append(one.asked)


def _consultations(named: NamedRun) -> dict[str, Any]:
    """Who was asked on the questions that were decided, and the seconds that this took a question."""
    ids = {row["id"] for row in named.run.decisions(named.summary) if row["pool"] == named.pool}
    asked: dict[Role, _Asked] = {role: _Asked() for role in ROLES}
    for one in named.run.consultations():
        if one.pool == named.pool and one.id in ids:
            asked[one.role].take(one)
    stated = named.run.stated("role")
    counts = ("consultations", "abstained", "recorded", "calls", "models")
    roles = {
        role: {
            **_only(asdict(found), *counts),
            "module": stated[role]["details"].get("module") if role in stated else None,
        }
        for role, found in asked.items()
        if found.consultations
    }
    return {"roles": roles, "seconds": _seconds(asked, named.figures["n"])}


def _seconds(asked: Mapping[Role, _Asked], n: int) -> dict[str, float | None]:
    """Seconds a question; None where anything was recorded, since a recording has no time of its own."""

    def mean(*roles: Role) -> float | None:
        recorded = any(asked[role].recorded for role in roles)
        return None if recorded else sum(asked[role].seconds for role in roles) / n

    return {"judge": mean("judge"), "verifier": mean("deriver", "repairer"), "both": mean(*ROLES)}
