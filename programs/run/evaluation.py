"""A run: pools through every rule on identical consultations, into a directory that is the run's only state.

Everything is read and checked before the first call. Consultations are written to the journal as they come. Decisions,
scores, statistics, audit and report are then made from them, and can be made again without an LM.
"""

import gc
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import dspy

from eldgr_dspy.answer_types.comparing import Comparisons
from eldgr_dspy.errors import ArgumentError, NotAskedError
from eldgr_dspy.figures.record import journal_totals
from eldgr_dspy.figures.results.summary_fields import Summary
from eldgr_dspy.formats.journal_lines import comparison_records
from eldgr_dspy.pools import Pool, Row, open_pools
from eldgr_dspy.programs.lms.lms import sub_modules
from eldgr_dspy.programs.run.freezes import Freeze, read_freeze, require_match, require_program
from eldgr_dspy.programs.run.frozen_runs import collected_program
from eldgr_dspy.programs.run.plan import Plan, out_of
from eldgr_dspy.programs.run.recordings import Recordings, recordings_in
from eldgr_dspy.programs.run.results import FILES, Results, replacing_all
from eldgr_dspy.programs.run.role_calls import Books, RoleCall, RoleQuery, calls_of_roles, metered_settings, modules_of
from eldgr_dspy.programs.run.run_directory import RunDirectory, Statement, require_same
from eldgr_dspy.programs.run.scheduling import map_in_order
from eldgr_dspy.programs.run.settling import Settlement, choices
from eldgr_dspy.programs.run.signals import Signals, hold_signals
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.service.threads import reused_threads
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.certifying import inputs_of, naming_question
from eldgr_dspy.rule.consultations import Consultation, Heard, Key
from eldgr_dspy.rule.named_judges import Label, judge_in, role_of
from eldgr_dspy.rule.questions import Settings
from eldgr_dspy.rule.replies import journaled_reply
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.words import is_role

__all__ = ["Plan", "Watcher", "evaluate"]

Elsewhere: TypeAlias = Callable[[Mapping[Label, RoleCall]], Mapping[Label, RoleCall]]
"""Makes of the roles of a run those that are asked in other processes."""

_OBJECTS = 50_000  # of garbage: about ten megabytes at most


@dataclass(slots=True)
class Watcher:
    """Callbacks for a caller that watches a run. The default ones do nothing. Called from the run's own threads.

    Attributes:
        on_start: The number of questions. on_row: One of them is decided. on_consultation: One was made or looked up.
        on_interrupt: The run was interrupted, and now waits for the calls under way.
    """

    on_start: Callable[[int], None] = field(default=lambda total: None)
    on_row: Callable[[], None] = field(default=lambda: None)
    on_consultation: Callable[[Consultation], None] = field(default=lambda consultation: None)
    on_interrupt: Callable[[], None] = field(default=lambda: None)


@dataclass
class Run:
    """A run under way."""

    plan: Plan
    pools: Sequence[Pool]
    settings: Settings
    roles: Mapping[Label, RoleCall]
    recordings: Recordings
    books: Books
    watcher: Watcher

    def __post_init__(self) -> None:
        self._decisions = set[int]()
        self._comparisons = comparison_records(self.books.journal.heads)
        self._late = {key: {*Comparisons(of).late} for key, of in self._comparisons.items()}

    def settle(self, pool: str, row: Row) -> Generator[RoleQuery, Consultation, Settlement]:
        """Decide one row by every rule; yields each question to a role that must be asked, and is sent the answer."""
        # What is recorded of comparing its answers is not compared again.
        records = [*self._comparisons.get((pool, row.id), ()), *self.recordings.comparisons(pool, row.id)]
        case = Case(row.to_question(Comparisons(records) if records else None), self.settings)
        self._record_comparisons(pool, case, row.id)
        consultations = dict[Label, Consultation]()
        steps, replies = choices(case, self.plan.rules), dict[Label, Heard]()
        reply: Heard | NotAskedError | None = None
        while True:
            try:
                with naming_question(pool, row.id):
                    label = steps.send(reply)
            except StopIteration as stop:
                return Settlement(row, case, stop.value, consultations)
            consultation = self._find((pool, row.id, label))
            if isinstance(consultation, NotAskedError):
                reply = consultation
                continue
            if consultation is None:
                call = self._call(label)
                inputs = inputs_of(case, role_of(label), replies, call.module)
                query = RoleQuery((pool, row.id, label), case, call, self.books, inputs)
                consultation = query.keep(query.make()) if query.call.heuristic else (yield query)
                self.books.journal.flush(query.upto)  # before anything is decided from it
                reply = query.reply
            else:
                reply = journaled_reply(case.question, consultation)
            consultations[label], replies[label] = consultation, reply
            self.watcher.on_consultation(consultation)
            self.books.budget.hear(consultation)

    def _record_comparisons(self, pool: str, case: Case, id: str) -> None:
        """Journal which answers to a question could not be compared in time, unless that is there already."""
        comparisons, key = case.type.comparisons, (pool, id)
        if comparisons is not None and comparisons.is_close and self._late.get(key) != {*comparisons.late}:
            self.books.journal.append_head({"kind": "comparisons", "name": pool, "details": comparisons.record(id)})
            self._late[key] = {*comparisons.late}

    def _find(self, key: Key) -> Consultation | NotAskedError | None:
        """Return what is journaled or recorded, or None if the role must be asked."""
        if (consultation := self.books.journal.find(key)) is not None:
            return consultation
        self.books.budget.check()
        entry = self.recordings.find(key)
        if isinstance(entry, Consultation):
            self.books.journal.append(entry)
        return entry

    def _call(self, label: Label) -> RoleCall:
        call, role, judge = self.roles[label], role_of(label), judge_in(label)
        if call.without_lm:
            remedy = f"--{role} MODEL or --lm MODEL" if judge is None else f"--judges {judge}=MODEL"
            if not is_role(role):
                label, remedy = f"certificate {self.settings.own}", "it one by set_lm in its module, give --lm MODEL"
            raise ArgumentError(f"The {label} has no LM: give {remedy}, or configure one by dspy.configure(lm=...).")
        return call

    def end(self, pool: Pool, settlement: Settlement) -> None:
        """Note that a row is decided and counted: only then it is known which answers were compared too late."""
        if self.plan.limit:
            self._decisions.add(hash((pool.name, settlement.row.id)))
        self._record_comparisons(pool.name, settlement.case, settlement.row.id)
        self.watcher.on_row()

    def has_decided(self, pool: str, question: str) -> bool:
        """Return whether a question, by its id, was decided: without a limit every question of the pools was."""
        if self.plan.limit:
            return hash((pool, question)) in self._decisions
        return any(pool == one.name for one in self.pools)


def evaluate(
    selector: Selector, plan: Plan, watcher: Watcher | None = None, elsewhere: Elsewhere | None = None
) -> Summary:
    """Run a plan with a selector's roles and settings, in threads, and return the summary that it wrote.

    Args:
        selector: Its roles are asked, its settings hold for every pool. A pool states its own answer type.
        plan: What to do. watcher: callbacks.
        elsewhere: Makes of the roles those that are asked in other processes; None to ask in this one.

    Raises:
        PoolError, ArgumentError: before any call, naming file, line and remedy.
        RunChangedError, RunLockedError: if the directory belongs to another run or is in use.
        RunStoppedError: if a limit of the plan is reached. All paid replies are in the journal. The same plan, with a
            higher limit if need be, resumes the run.
        KeyboardInterrupt: on ctrl-C, once the calls under way have been awaited and journaled. A second one abandons
            them. The same plan resumes the run. In the main thread, Python handlers of SIGINT and SIGTERM are called
            when the run checks for signals, and not when they arrive.
    """
    argument: object = selector
    if not isinstance(argument, Selector):
        names = [name for name, value in getattr(argument, "__dict__", {}).items() if isinstance(value, Selector)]
        remedy = f"Give its selector, the attribute {names[0]!r}" if names else "Give a Selector, such as Selector()"
        raise ArgumentError(f"selector must be a Selector; got {type(argument).__name__}. {remedy}.")
    out, inputs = out_of(plan), Preparation(selector, plan)
    pools, watcher, signals = inputs.pools, watcher or Watcher(), Signals()
    total = sum(min(pool.n, plan.limit or pool.n) for pool in pools)
    lock = None if inputs.freeze is None else inputs.freeze.sha256
    with (
        signals,  # noted from here on; the run checks for them whenever it writes something
        RunDirectory(out, fresh=plan.fresh) as directory,
        rarer_collections(),
        reused_threads(),
        metered_settings(),
        selector.reading(),
        ExitStack() as resources,
    ):
        roles = calls_of_roles(selector, plan.judges)
        if elsewhere is not None:
            roles = {**elsewhere(roles)}
        journal = directory.journal
        directory.claim_freeze(lock)
        inputs.require_same_as(out, journal.heads, journal.consultations(), roles)
        directory.claim(*inputs.statements, paths={pool.name: str(pool.path) for pool in pools})
        books = Books(directory, plan, total, plan.max_abstentions)
        resources.callback(books.spending.close)
        files = resources.enter_context(replacing_all(out, total))
        results = Results(out, pools, plan.rules, files, signals.look, None if lock is None else {"lock": lock})
        watcher.on_start(total)
        signals.look()
        stop = partial(books.stop, "run", watcher.on_interrupt)
        run = Run(plan, pools, selector.settings, roles, inputs.recordings, books, watcher)
        for pool in pools:
            settle, rows_read = partial(run.settle, pool.name), pool.rows(plan.limit)
            with map_in_order(settle, rows_read, plan.workers, plan.timeout, stop, signals.look) as rows:
                for settlement in rows:
                    results.add(pool, settlement)
                    run.end(pool, settlement)
        summary = results.finish(journal.heads, journal_totals(journal.consultations(), run.has_decided))
        with hold_signals():
            resources.close()
        return summary


class Preparation:
    """What a run is made from, read and checked before anything is written: pools, recordings, a freeze."""

    def __init__(self, selector: Selector, plan: Plan) -> None:
        _require_own_folder(out_of(plan))
        self.pools = open_pools(plan.pools, selector.settings.type)
        _require_new_questions(selector, plan, self.pools)
        self.recordings = Recordings(plan.replay, plan.recorded_for, plan.judges)
        self.recordings.require_made_for(self.pools, selector.settings.type)
        self.freeze = _freeze_of(plan, selector)
        self.statements: list[Statement] = [("settings", "rule", selector.settings.to_json())]
        for pool in self.pools:
            self.statements.append(("pool", pool.name, {"sha256": pool.sha256, "rows": pool.n, "task": pool.task}))

    def require_same_as(
        self,
        out: Path,
        heads: Sequence[Mapping[str, Any]],
        entries: Iterable[Consultation],
        roles: Mapping[Label, RoleCall],
    ) -> None:
        """Refuse what the run in `out` was not started with: other settings, pools, roles or recordings."""
        self.recordings.refuse_changes(entries, self.pools, {label: call.model for label, call in roles.items()})
        require_same(out, heads, [*self.statements, *(("role", label, call.details) for label, call in roles.items())])


def _require_own_folder(out: Path) -> None:
    """Refuse a folder with files that a run would replace and no journal, not even one that a fresh run set aside."""
    names = [name for name in FILES if (out / name).exists()]
    if names and not any(out.glob("journal.jsonl*")):
        raise ArgumentError(
            f"out={str(out)!r} must be new or the directory of a run; it has no journal.jsonl, and the run would "
            f"replace its {' and '.join(names)}. Give another --out, or move what is there."
        )


def _freeze_of(plan: Plan, selector: Selector) -> Freeze | None:
    """Return the freeze of a plan, None without one; before anything is opened or written."""
    if plan.freeze is None:
        return None
    for path in recordings_in(plan.replay).values():
        raise ArgumentError(
            f"replay={str(path)!r} would replace the roles that are frozen; give no --replay with --freeze."
        )
    freeze = read_freeze(Path(plan.freeze))
    require_match(freeze, selector, plan.rules, plan.judges)
    for path in map(Path, plan.pools):
        require_program(freeze, collected_program(path), str(path))
    return freeze


def _require_new_questions(selector: Selector, plan: Plan, pools: Sequence[Pool]) -> None:
    """Refuse a judge that was trained on questions of a pool: they may be in no figure."""
    for label, judge in modules_of(selector, plan.judges).items():
        parts = [part for _, part in sub_modules(judge, dspy.Module)]  # a panel may have a member that was trained
        questions: set[str] = set().union(*(getattr(part, "trained_questions", ()) for part in parts))
        for pool in pools if questions else ():
            overlap = sum(1 for row in pool.rows(plan.limit) if folded_question(row.question) in questions)
            if overlap:
                raise ArgumentError(
                    f"The {label} was trained on {overlap:,} of the {pool.n:,} questions of {pool.path}, which may be "
                    "in no figure. Split the pool with eldgr pool split, train on one part and evaluate the other."
                )


_before = list[tuple[int, int, int]]()  # the thresholds that each run under way has found, the first to start first
_lock = threading.Lock()


@contextmanager
def rarer_collections() -> Iterator[None]:
    """Look for cycles less often inside the block. The last of several runs to end restores what the first found.

    A run makes many objects that live as long as their question, and few cycles: a seventh of the time of its questions
    was spent looking for them (`python -m benchmarks.throughput`).
    """
    with _lock:
        _before.append(gc.get_threshold())
        youngest, *older = _before[-1]
        if 0 < youngest < _OBJECTS:  # at 0 the user has switched it off
            gc.set_threshold(_OBJECTS, *older)
    try:
        yield
    finally:
        with _lock:
            thresholds = _before.pop()
            if not _before:
                gc.set_threshold(*thresholds)
