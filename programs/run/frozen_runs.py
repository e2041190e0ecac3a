"""What a freeze states of the run that its choice was made on: what was decided, and the program that sampled.

Where the code of this package has changed since, the run's recorded replies show whether it still decides the same.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from eldgr_dspy.base.differences import differences
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.figures.finished_run import RunRead, read_run
from eldgr_dspy.formats.journal_lines import PROGRAM
from eldgr_dspy.journal import read_journal
from eldgr_dspy.pools import Pool, pool_name
from eldgr_dspy.programs.run.fingerprints import digits
from eldgr_dspy.programs.run.plan import collected_folder
from eldgr_dspy.programs.run.run_directory import without_address
from eldgr_dspy.programs.run.settling import reopen, settle_again
from eldgr_dspy.rule.certifying import naming_question
from eldgr_dspy.rule.named_judges import Label, asked_by
from eldgr_dspy.rule.questions import Settings, own_names

_Decisions: TypeAlias = dict[str, dict[tuple[str, str], list[Any]]]
"""By rule, and by pool and question: answer, branch, and whether it is certified."""

_MOST_NAMES = 20


def collected_program(pool: Path) -> dict[str, Any] | None:
    """Return prompts and LMs of the program that a pool was collected from, or None if nothing states them."""
    journal, heads = collected_folder(pool) / "journal.jsonl", list[dict[str, Any]]()
    if not journal.is_file():
        return None
    next(read_journal(journal, heads, on_tear=lambda error: None), None)  # it is stated before the first sample
    programs = [head["details"] for head in heads if (head["kind"], head["name"]) == ("role", PROGRAM)]
    return sampling(programs[-1]) if programs else None


def sampling(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a freeze states of a program that samples, of its details."""
    return {name: details.get(name) for name in ("prompts", "lm")}


def stated_of_run(
    path: Path, beside: Path, settings: Settings, rules: Sequence[str], roles: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a freeze in the folder `beside` states of a finished run with these settings, rules and roles."""
    run = read_run(path, **_own(settings))
    if changes := differences(run.stated_settings, settings.to_json()):
        raise ArgumentError(f"{path}: must be a run with the settings that are frozen; got {'; '.join(changes)}.")
    asked = set[Label]()
    for name, pool in run.summary()["pools"].items():
        if lacking := [rule for rule in rules if rule not in pool["rules"]]:
            raise ArgumentError(
                f"{path}: has no decisions of {', '.join(lacking)} on {name!r}. Evaluate these rules, and freeze then."
            )
        asked |= {asked_by(rule, role) for rule in rules for role, n in pool["rules"][rule]["asked"].items() if n}
    asked -= {label for label, sums in run.totals.roles.items() if sums["recorded"]}  # a recording states no role
    heads = {label: head["details"] for label, head in run.heads_of("role").items() if label in asked & roles.keys()}
    if changes := differences(*({label: _choice(of[label]) for label in heads} for of in (heads, roles))):
        some = "; ".join(changes[:3])
        raise ArgumentError(f"{path}: must be a run that the frozen roles made; got {some}. Evaluate its pools anew.")
    before, pools = _decisions_of(run, rules), _pools(run, beside, ())
    if count := _changes(before, _decisions_now(run, pools, rules)):
        raise ArgumentError(
            f"{path}: is now decided otherwise on {count}. Evaluate its pools anew, and freeze that run."
        )
    programs = [one for pool in pools if (one := collected_program(pool.path)) is not None]
    if any(one != programs[0] for one in programs):
        raise ArgumentError(f"{path}: its pools were collected from several programs; freeze a run of one.")
    return {
        **({"program": programs[0]} if programs else {}),
        "recordings": {
            "run": Path(os.path.relpath(path, beside)).as_posix(),
            "decisions": {rule: _digest(before[rule]) for rule in rules},
        },
    }


def _choice(role: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details of a role without addresses, code and versions."""
    return {name: of for name, of in without_address(role).items() if name not in ("code", "versions")}


def require_same_decisions(
    recording: Mapping[str, Any], beside: Path, settings: Settings, rules: Sequence[str], places: Sequence[Path]
) -> str:
    """Decide a frozen run again by its recorded replies, and return a clause that says of how many questions."""
    path, *files = places or [beside / recording["run"]]  # where the run is now, then its pools that were moved
    run = read_run(path, **_own(settings))
    before = _decisions_of(run, rules)
    if any(_digest(before[rule]) != recording["decisions"].get(rule) for rule in rules):
        raise RunChangedError(f"{path}: its decisions are not those that were frozen. Give the run that was frozen.")
    if count := _changes(before, _decisions_now(run, _pools(run, beside, files), rules)):
        raise RunChangedError(
            f"{path} is now decided otherwise on {count}. Undo the change, or freeze the current state in another file."
        )
    return f"{path} is decided as before, {len(before[rules[0]]):,} questions"


def _own(settings: Settings) -> dict[str, object]:
    return {name: getattr(settings, name) for name in own_names(settings.to_json())}


def _pools(run: RunRead, beside: Path, files: Sequence[Path]) -> list[Pool]:
    """Open the pools of a run: given now, or where they were, as seen from here or from the folder of the freeze."""
    names = {pool_name(file) for file in files}
    was = {name: Path(str(head.get("path"))) for name, head in run.heads_of("pool").items() if name not in names}
    nearby = [beside / path for path in was.values() if not path.exists() and (beside / path).exists()]
    return reopen(run, [*run.summary()["pools"]], [*files, *nearby], "frozen_selector(..., recordings=[RUN, FILE])")


def _decisions_of(run: RunRead, rules: Sequence[str]) -> _Decisions:
    decisions: _Decisions = {rule: {} for rule in rules}
    for one in run.decisions(run.summary()):
        if one["rule"] in decisions:
            decisions[one["rule"]][one["pool"], one["id"]] = [one["answer"], one["branch"], one["certified"]]
    return decisions


def _decisions_now(run: RunRead, pools: Sequence[Pool], rules: Sequence[str]) -> _Decisions:
    """Return what this code decides on the run's recorded replies. An empty list if one is lacking."""
    decisions: _Decisions = {rule: {} for rule in rules}
    sizes = {name: pool["n"] for name, pool in run.summary()["pools"].items()}
    for pool, settlement in settle_again(run, rules, pools, sizes):
        with naming_question(pool.name, settlement.row.id):
            outcomes = settlement.outcomes()
        for rule, outcome in outcomes.items():
            one = outcome.decision
            decisions[rule][pool.name, settlement.row.id] = [one.answer, one.branch, one.certified] if one else []
    return decisions


def _changes(before: _Decisions, now: _Decisions) -> str:
    """Name the questions on which something else is decided. Empty if there is none."""
    keys = dict.fromkeys(key for rule in before for key in before[rule] if before[rule][key] != now[rule].get(key))
    names = [f"{pool}: {question}" for pool, question in keys]
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    total = max(map(len, before.values()), default=0)
    return f"{len(names):,} of {total:,} questions ({', '.join(names[:_MOST_NAMES])}{more})" if names else ""


def _digest(decisions: Mapping[tuple[str, str], Sequence[Any]]) -> str:
    return digits(json.dumps([[*key, *one] for key, one in decisions.items()]).encode())
