"""Rules on a run's replies: any rule, even one written later, decided from the journal and the pools without an LM.

The pools are opened where they were, or at the files given now, and only with the content that they had.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eldgr_dspy.errors import ArgumentError, NotAskedError, RunChangedError
from eldgr_dspy.figures.decided_rows import DecidedRows
from eldgr_dspy.figures.finished_run import RunRead
from eldgr_dspy.figures.record import judge_facts
from eldgr_dspy.figures.results.summary_fields import PoolFigures
from eldgr_dspy.figures.summary import pool_figures
from eldgr_dspy.pools import Pool, open_pools, pool_name
from eldgr_dspy.programs.run.recordings import ConsultationStore
from eldgr_dspy.programs.run.settling import Settled, choices
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import naming_question
from eldgr_dspy.rule.consultations import Consultation, Heard
from eldgr_dspy.rule.named_judges import Asked, for_judges, judge_in
from eldgr_dspy.rule.replies import journaled_reply
from eldgr_dspy.rule.rules import is_own, rule_named


@dataclass(frozen=True, slots=True)
class Redecisions:
    """The results of rules on the consultations of a run, on `limit` questions of each pool, or on all."""

    rules: tuple[str, ...]
    pools: tuple[Pool, ...]
    limit: int | None
    figures: dict[str, PoolFigures]


def decide_again(run: RunRead, rules: Sequence[str], files: Sequence[Path] = ()) -> Redecisions:
    """Decide the questions of a run by rules, from its journal.

    For a finished run the questions are those that it decided. For another, all of its pools. A call that did not come
    through decides like a role that abstains, as it did in the run. A rule that needs a role which was never asked on
    some question is withheld: its figures are under `withheld`, the number of such questions by role. The package's own
    rules that a finished run compared are added. `files` says where moved pools are now.

    Raises:
        ArgumentError: A rule is not known or failed, or a pool is not there. PoolError: A pool cannot be read.
        RunChangedError: A pool is not the one that the run was made on.
    """
    for rule in rules:
        rule_named(rule)
    counted = run.summary()["pools"] if run.finished() else {}
    before = [rule for pool in counted.values() for rule in (*pool["rules"], *pool["withheld"]) if not is_own(rule)]
    judges = dict.fromkeys(filter(None, map(judge_in, (*before, *run.totals.roles))))
    names = for_judges([*dict.fromkeys([*before, *rules])], judges)
    pools = reopen(run, [*counted] or [*run.heads_of("pool")], files, "eldgr decide RUN FILE --rule NAME")
    sizes = {pool.name: counted[pool.name]["n"] if counted else pool.n for pool in pools}
    rows = {pool.name: DecidedRows(pool.task, names) for pool in pools}
    for pool, settled in settled_again(run, names, pools, sizes):
        with naming_question(pool.name, settled.row.id):
            settled.score(rows[pool.name])
    figures = {name: pool_figures(of, judge_facts(run.heads)) for name, of in rows.items()}
    cut = [n for pool in pools if (n := sizes[pool.name]) < pool.n]
    return Redecisions(names, tuple(pools), cut[0] if cut else None, figures)


def settled_again(
    run: RunRead, rules: Sequence[str], pools: Sequence[Pool], sizes: Mapping[str, int]
) -> Iterator[tuple[Pool, Settled]]:
    """Yield the first rows of each pool, as many as `sizes` says, with what each rule chooses on the run's replies."""
    settings, store = run.settings, ConsultationStore(run.consultations())
    for pool in pools:
        for row in pool.rows(sizes[pool.name]):
            case, consultations = Case(run.question(pool.name, row), settings), dict[Asked, Consultation]()
            steps = choices(case, rules)
            reply: Heard | NotAskedError | None = None
            while True:
                try:
                    with naming_question(pool.name, row.id):
                        label = steps.send(reply)
                except StopIteration as stop:
                    yield pool, Settled(row, case, stop.value, consultations)
                    break
                if (entry := store.find((pool.name, row.id, label))) is None:
                    reply = NotAskedError(f"The run never asked the {label}.")
                else:
                    consultations[label], reply = entry, journaled_reply(case.question, entry)


def reopen(run: RunRead, names: Sequence[str], files: Sequence[Path], command: str) -> list[Pool]:
    """Return the pools of a run with these names, at `files` if they were moved; `command` is what gives such a file.

    Raises:
        ArgumentError, PoolError: a pool is not there or cannot be read, or a file is not one of these.
        RunChangedError: a pool is not the one that the run was made on.
    """
    moved = {pool_name(path): path for path in files}
    for name, path in moved.items():
        if name not in names:
            names_there = ", ".join(map(repr, names))
            raise ArgumentError(f"{path}: {run.path} was not made on a pool {name!r}; it was made on {names_there}.")
    statements = run.heads_of("pool")
    paths = [moved.get(name) or _where(run, name, statements[name], command) for name in names]
    pools = open_pools(paths, None if run.ungiven else run.settings.type)
    for pool in pools:
        made_on = statements[pool.name]["details"]["sha256"]
        if pool.sha256 != made_on:
            raise RunChangedError(
                f"{pool.path}: {run.path} was made on another pool {pool.name!r} (sha256 {made_on!r:.80}) than this "
                f"one ({pool.sha256!r}); give the file that it was made on."
            )
    return pools


def _where(run: RunRead, name: str, head: Mapping[str, Any], command: str) -> Path:
    path = head.get("path")
    if isinstance(path, str) and Path(path).exists():
        return Path(path)
    was = f"which was {path!r} and is not there" if isinstance(path, str) else "and does not say where it was"
    raise ArgumentError(
        f"{run.path} was made on a pool {name!r}, {was}; give its file: {command} "
        f"(sha256 {head['details']['sha256']:.16}..., {head['details']['rows']:,} questions)."
    )
