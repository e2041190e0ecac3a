"""Rules on what a run has asked: any rule, also one that was written later, decided from the journal without an LM.

Candidates, evidence and gold answers are in the pools and not in the journal; a pool is read again where it was, or
where it is said to be now, and has to have the content that the run was made on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Abstention, Reply
from eldgr_dspy.decision import RULES, drive
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.finished import RunRead
from eldgr_dspy.journal import Consultation, Key
from eldgr_dspy.pools import Pool, open_pools, pool_name
from eldgr_dspy.replies import read_reply
from eldgr_dspy.rules import rule_named
from eldgr_dspy.summary import Outcome, Tally
from eldgr_dspy.words import ROLES, Role


@dataclass(frozen=True, slots=True)
class Redecided:
    """What rules come to on the consultations of a run.

    Attributes:
        rules: Which rules. pools: the run's, as they were read.
        limit: How many questions of each pool were taken; None for all.
        summary: The figures, as in `summary.json` without those of consultations.
    """

    rules: tuple[str, ...]
    pools: tuple[Pool, ...]
    limit: int | None
    summary: dict[str, Any]


class _NeverAskedError(Exception):
    """A rule needs a role that was not asked."""

    def __init__(self, role: Role) -> None:
        super().__init__(role)
        self.role: Role = role


def decide_again(run: RunRead, rules: Sequence[str], files: Sequence[Path] = ()) -> Redecided:
    """Decide the questions of a run by rules, from what its journal holds.

    Of a finished run the questions are those that it decided; of another, all of its pools. A call that did not come
    through decides as a silent role does, as it did in the run. A rule that needs a role which was never asked on some
    question is withheld: its figures are under `withheld`, the number of such questions by role.

    Args:
        run: The run. rules: names as `eldgr_dspy.rules` takes them. The package's own that a finished run compared
            stand beside them.
        files: Where pools are that are not where they were.

    Raises:
        ArgumentError: a rule is not known or failed, or a pool is not there. PoolError: a pool cannot be read.
        RunChangedError: a pool is not the one that the run was made on.
    """
    for rule in rules:
        rule_named(rule)
    counted = run.summary()["pools"] if run.finished() else {}
    before = {rule for pool in counted.values() for rule in (*pool["rules"], *pool["withheld"])}
    names = tuple(dict.fromkeys([*(rule for rule in RULES if rule in before), *rules]))
    pools = _pools(run, [*counted] or [*run.stated("pool")], files)
    sizes = {pool.name: counted[pool.name]["n"] if counted else pool.n for pool in pools}
    figures = _figures(run, names, pools, sizes)
    cut = [n for pool in pools if (n := sizes[pool.name]) < pool.n]
    return Redecided(names, tuple(pools), cut[0] if cut else None, {"pools": figures})


def _pools(run: RunRead, names: Sequence[str], files: Sequence[Path]) -> list[Pool]:
    """Open the pools of a run, where they are said to be or else where they were, and hold them to its statements."""
    given = {pool_name(path): path for path in files}
    for name, path in given.items():
        if name not in names:
            made = ", ".join(map(repr, names))
            raise ArgumentError(f"{path}: {run.path} was not made on a pool {name!r}; it was made on {made}.")
    stated = run.stated("pool")
    pools = open_pools([given.get(name) or _where(run, name, stated[name]) for name in names])
    for pool in pools:
        made_on = stated[pool.name]["details"]["sha256"]
        if pool.sha256 != made_on:
            raise RunChangedError(
                f"{pool.path}: {run.path} was made on another pool {pool.name!r} (sha256 {made_on!r:.80}) than this "
                f"one ({pool.sha256!r}); give the file that it was made on."
            )
    return pools


def _where(run: RunRead, name: str, head: Mapping[str, Any]) -> Path:
    path = head.get("path")
    if isinstance(path, str) and Path(path).is_file():
        return Path(path)
    was = f"which was {path!r} and is not there" if isinstance(path, str) else "and does not say where it was"
    raise ArgumentError(
        f"{run.path} was made on a pool {name!r}, {was}; give its file: eldgr decide RUN FILE --rule NAME "
        f"(sha256 {head['details']['sha256']:.16}..., {head['details']['rows']:,} questions)."
    )


def _figures(
    run: RunRead, rules: Sequence[str], pools: Sequence[Pool], sizes: Mapping[str, int]
) -> dict[str, dict[str, Any]]:
    known: dict[Key, Consultation] = {one.key: one for one in run.consultations()}
    figures = {}
    for pool in pools:
        tally = Tally(pool.task, rules)
        for row in pool.rows(sizes[pool.name]):
            case, used = Case(row.to_question(), run.settings), dict[Role, Consultation]()
            asked: dict[Role, Consultation] = {
                role: known[key] for role in ROLES if (key := (pool.name, row.id, role)) in known
            }
            outcomes = {rule: _outcome(case, rule, asked, used) for rule in rules}
            failed: list[Role] = [role for role, one in used.items() if one.outcome == "failed"]
            tally.add(case, row.gold, outcomes, failed)
        figures[pool.name] = tally.summary()
    return figures


def _outcome(case: Case, rule: str, asked: Mapping[Role, Consultation], used: dict[Role, Consultation]) -> Outcome:
    """What a rule decides on the consultations of a question; those that it needs are put into `used`."""
    replies: dict[Role, Reply] = {}

    def reply(role: Role) -> Reply:
        if role not in asked:
            raise _NeverAskedError(role)
        used[role] = asked[role]
        replies[role] = _reply(asked[role], case)
        return replies[role]

    try:
        choice = drive(case.rule(rule)(case), reply)
    except _NeverAskedError as error:
        return Outcome(None, missing=error.role)
    needed = [asked[role] for role in replies]
    calls: dict[Role, int] = {one.role: one.calls for one in needed}
    return Outcome(case.record(choice, replies), None, calls, sum(one.seconds or 0.0 for one in needed))


def _reply(one: Consultation, case: Case) -> Reply:
    if one.outcome == "ok":
        return read_reply(one.role, one.content or {}, case.question.answers, len(case.question.passages))
    return Abstention(f"failed: {one.reason}" if one.outcome == "failed" else one.reason or "no reason given")
