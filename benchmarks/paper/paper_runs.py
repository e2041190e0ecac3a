"""What a run measured, in the form of the paper's tables. Numbers are as in `summary.json`.

Runs are matched to the paper's data by the given names, never by the names of their pools.
"""

from collections.abc import Mapping, Sequence

from benchmarks.paper.comparability import Here
from benchmarks.paper.published import LABELS, SELECTIONS, Selection
from eldgr_dspy.comparisons.named_runs import NamedRun, named_runs
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.consultations import Consultation
from eldgr_dspy.words import ROLES


def runs_here(arguments: Sequence[str]) -> dict[str, Here]:
    """Return what runs measured, each given as `NAME=RUN` or `NAME=RUN:POOL` with a name of `SELECTIONS`."""
    runs = dict[str, Here]()
    for name, source in named_runs(arguments).items():
        if name not in SELECTIONS:
            raise ArgumentError(f"{name!r} is not known; give NAME=RUN with one of {', '.join(SELECTIONS)}.")
        runs[name] = found_in(source, _pool(source, SELECTIONS[name]))
    return runs


def _pool(source: NamedRun, selection: Selection) -> str:
    figures = {pool: source.summary["pools"][pool] for pool in source.pools}
    fitting = [pool for pool, of in figures.items() if of["task"] == selection.task and of["n_scored"]]
    if len(fitting) != 1:
        names = ", ".join(f"{pool!r} ({of['task']})" for pool, of in figures.items()) or "none"
        raise ArgumentError(
            f"{source} must have one scored pool of task {selection.task}; its pools are {names}. Say which, as "
            f"{source}:POOL."
        )
    return fitting[0]


def found_in(source: NamedRun, pool: str) -> Here:
    """Return what a run measured on a pool."""
    figures = source.summary["pools"][pool]
    leads = {row["against"]: row for row in figures["contrasts"] if row["rule"] == "eldgr"}
    authority = [row for row in figures["contrasts"] if (row["rule"], row["against"]) == ("judge", "majority")]
    consultations, roles = _consultations(source, pool), source.run.heads_of("role")
    return {
        "pool": pool,
        "n": figures["n"],
        "n_scored": figures["n_scored"],
        "n_failed": figures["n_failed"],
        "candidates": figures["candidates"],
        "rules": figures["rules"],
        "withheld": figures["withheld"],
        "leads": {rule: leads[rule] for rule in LABELS if rule in leads},
        "full_authority": authority[0] if authority else None,
        "audit": figures["audit"],
        "homogeneous": figures["audit"] and figures["audit"]["homogeneous"],
        "settings": source.run.stated_settings,
        "confirmation": source.summary["confirmation"],
        "remarks": source.summary["remarks"],
        "roles": {
            role: {
                "consultations": len({line.id for line in lines}),
                "abstained": sum(line.outcome == "abstained" for line in lines),
                "recorded": sum(line.recorded for line in lines),
                "calls": sum(line.calls for line in lines),
                "models": [*dict.fromkeys(line.asked for line in lines if line.asked)],
                "module": roles[role]["details"].get("module") if role in roles else None,
            }
            for role, lines in consultations.items()
            if lines
        },
        "seconds": _seconds(consultations, figures["n"]),
    }


def _consultations(source: NamedRun, pool: str) -> dict[str, list[Consultation]]:
    """The consultations of each role on the decided questions; every attempt counts, since each takes time."""
    ids = {row["id"] for row in source.run.decisions(source.summary) if row["pool"] == pool}
    by_role: dict[str, list[Consultation]] = {role: [] for role in ROLES}
    for consultation in source.run.consultations():
        if consultation.pool == pool and consultation.id in ids and consultation.role in by_role:
            by_role[consultation.role].append(consultation)
    return by_role


def _seconds(by_role: Mapping[str, Sequence[Consultation]], n: int) -> dict[str, float | None]:
    """Seconds a question; None if any reply was recorded, since a recording has no time of its own."""

    def mean(*roles: str) -> float | None:
        lines = [line for role in roles for line in by_role[role]]
        return None if any(line.recorded for line in lines) else sum(line.seconds or 0.0 for line in lines) / n

    return {"judge": mean("judge"), "verifier": mean("deriver", "repairer"), "both": mean(*ROLES)}
