"""Rules on a run's replies: any rule, even one written later, decided from the journal without an LM.

Candidates, evidence and gold answers are in the pools and not in the journal. A pool is read again from where it was,
or from the file given now, and must have the content that the run used.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eldgr_dspy.errors import NotAskedError
from eldgr_dspy.figures.decided_rows import DecidedRows
from eldgr_dspy.figures.finished_run import RunRead
from eldgr_dspy.figures.record import judge_facts
from eldgr_dspy.figures.results.summary_fields import PoolFigures
from eldgr_dspy.figures.summary import pool_figures
from eldgr_dspy.pools import Pool
from eldgr_dspy.programs.run.recordings import ConsultationStore
from eldgr_dspy.programs.run.reopened_pools import reopen
from eldgr_dspy.programs.run.settling import Settled, choices
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import naming_question
from eldgr_dspy.rule.consultations import Consultation, Heard
from eldgr_dspy.rule.named_judges import Asked, for_judges, judge_in
from eldgr_dspy.rule.replies import journaled_reply
from eldgr_dspy.rule.rules import is_own, rule_named


@dataclass(frozen=True, slots=True)
class Redecisions:
    """The results of rules on the consultations of a run.

    Attributes:
        rules: Which rules. pools: the run's, as they were read.
        limit: How many questions of each pool were used, or None for all.
        figures: Those of each pool, as in `summary.json`.
    """

    rules: tuple[str, ...]
    pools: tuple[Pool, ...]
    limit: int | None
    figures: dict[str, PoolFigures]


def decide_again(run: RunRead, rules: Sequence[str], files: Sequence[Path] = ()) -> Redecisions:
    """Decide the questions of a run by rules, from its journal.

    For a finished run the questions are those that it decided. For another, all of its pools. A call that did not come
    through decides like a role that abstains, as it did in the run. A rule that needs a role which was never asked on
    some question is withheld: its figures are under `withheld`, the number of such questions by role.

    Args:
        run: The run. rules: names as `eldgr_dspy.rule.rules` takes them. The package's own that a finished run compared
            are added.
        files: Where pools are now that have been moved.

    Raises:
        ArgumentError: a rule is not known or failed, or a pool is not there. PoolError: a pool cannot be read.
        RunChangedError: a pool is not the one that the run was made on.
    """
    for rule in rules:
        rule_named(rule)
    counted = run.summary()["pools"] if run.finished() else {}
    before = [rule for pool in counted.values() for rule in (*pool["rules"], *pool["withheld"]) if not is_own(rule)]
    names = for_judges(tuple(dict.fromkeys([*before, *rules])), judges_of(run, before))
    pools = reopen(run, [*counted] or [*run.heads_of("pool")], files, "eldgr decide RUN FILE --rule NAME")
    sizes = {pool.name: counted[pool.name]["n"] if counted else pool.n for pool in pools}
    rows = {pool.name: DecidedRows(pool.task, names) for pool in pools}
    for pool, settled in settled_again(run, names, pools, sizes):
        with naming_question(pool.name, settled.row.id):
            settled.score(rows[pool.name])
    figures = {name: pool_figures(of, judge_facts(run.heads)) for name, of in rows.items()}
    cut = [n for pool in pools if (n := sizes[pool.name]) < pool.n]
    return Redecisions(names, tuple(pools), cut[0] if cut else None, figures)


def judges_of(run: RunRead, rules: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the judges of a run that have names, in the order of its rules, else by name."""
    judges = map(judge_in, (*rules, *run.totals.roles))
    return tuple(dict.fromkeys(judge for judge in judges if judge is not None))


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
