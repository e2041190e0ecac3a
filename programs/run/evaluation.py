"""A run: pools through every rule on identical consultations, into a directory that is the run's only state.

Everything is read and checked before the first call. Consultations are written to the journal as they come. Decisions,
scores, statistics, audit and report are then made from them, and can be made again without an LM.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

import dspy

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.consultations import Consultation
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.decision_table import pyarrow_for
from eldgr_dspy.figures.finished_run import DECISIONS
from eldgr_dspy.figures.record import JournalTotals, Questions
from eldgr_dspy.figures.results.summary import Summary
from eldgr_dspy.journal import read_journal
from eldgr_dspy.pools import Pool, open_pools
from eldgr_dspy.programs.lms import sub_modules
from eldgr_dspy.programs.run.confirmation import confirmation_of, state_lock
from eldgr_dspy.programs.run.counted import Counted
from eldgr_dspy.programs.run.failures import FailureBudget, allowed_questions
from eldgr_dspy.programs.run.plan import Plan, out_of, rows_of
from eldgr_dspy.programs.run.recordings import Recordings
from eldgr_dspy.programs.run.reservations import Reserved
from eldgr_dspy.programs.run.results import Results, files_of, replacing_all
from eldgr_dspy.programs.run.role_calls import calls_of_roles, metered_settings, modules_of
from eldgr_dspy.programs.run.run_directory import RoleStatements, RunDirectory, Statement, require_same
from eldgr_dspy.programs.run.runner import Runner, Settled
from eldgr_dspy.programs.run.scheduling import (
    amap_ordered,
    at_once,
    in_thread,
    map_ordered,
    rarer_collections,
    reused_threads,
)
from eldgr_dspy.programs.run.signals import Signals, signals_held
from eldgr_dspy.programs.run.spending import Spending
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.splitting import folded_question

__all__ = ["Plan", "Watcher", "aevaluate", "evaluate"]


@dataclass(slots=True)
class Watcher:
    """Callbacks for a caller that watches a run; the default ones do nothing. Called from the run's own threads.

    Attributes:
        on_start: The number of questions. on_row: One of them is decided. on_consultation: One was made or looked up.
        on_interrupt: The run was interrupted, and now waits for the calls under way.
    """

    on_start: Callable[[int], None] = field(default=lambda total: None)
    on_row: Callable[[], None] = field(default=lambda: None)
    on_consultation: Callable[[Consultation], None] = field(default=lambda consultation: None)
    on_interrupt: Callable[[], None] = field(default=lambda: None)


def evaluate(selector: Selector, plan: Plan, watcher: Watcher | None = None) -> Summary:
    """Run a plan with a selector's roles and settings, in threads, and return the summary that it wrote.

    Args:
        selector: Its roles are asked, its settings hold for every pool (its own `task` is not used: a pool states its).
        plan: What to do. watcher: callbacks.

    Raises:
        PoolError, ArgumentError: before any call, naming file, line and remedy.
        RunChangedError, RunLockedError: if the directory belongs to another run or is in use.
        RunStoppedError: if a limit of the plan is reached. All paid replies are in the journal; the same plan, with a
            higher limit if need be, resumes the run.
        KeyboardInterrupt: on ctrl-C, once the calls under way have been awaited and journaled; a second one abandons
            them. The same plan resumes the run. In the main thread, Python handlers of SIGINT and SIGTERM are called
            when the run checks for signals, and not when they arrive.
    """
    _require_selector(selector)
    signals = Signals()
    with _opened(selector, plan, watcher or Watcher(), signals) as run:
        for pool in run.counting():
            settle, rows_read = partial(run.runner.settle, pool.name), rows_of(pool, plan)
            with map_ordered(settle, rows_read, plan.workers, plan.timeout, run.stop, signals.look) as rows:
                for settled in rows:
                    run.add(pool, settled)
        return run.finish()


async def aevaluate(selector: Selector, plan: Plan, watcher: Watcher | None = None) -> Summary:
    """Run a plan as `evaluate` does, in tasks of the running event loop instead of threads.

    If it is cancelled, it waits for the calls under way; if it is cancelled again, it abandons them.
    """
    _require_selector(selector)
    with _opened(selector, plan, watcher or Watcher(), Signals(())) as run:  # cancelling is the event loop's
        for pool in run.counting():
            settle, rows_read = partial(run.runner.settle, pool.name), rows_of(pool, plan)
            taking = in_thread if answer_type(pool.task).pooled else at_once  # comparing answers may take long
            async with amap_ordered(settle, rows_read, plan.workers, plan.timeout, run.stop, taking) as rows:
                async for settled in rows:
                    await taking(partial(run.add, pool, settled))
        return await asyncio.to_thread(run.finish)


def _require_selector(selector: object) -> None:
    """Refuse an object that is not a selector; if it is a program that holds one, name the attribute."""
    if isinstance(selector, Selector):
        return
    held = [name for name, value in getattr(selector, "__dict__", {}).items() if isinstance(value, Selector)]
    remedy = f"Give its selector, the attribute {held[0]!r}" if held else "Give a Selector, such as Selector()"
    raise ArgumentError(f"selector must be a Selector; got {type(selector).__name__}. {remedy}.")


@contextmanager
def _opened(selector: Selector, plan: Plan, watcher: Watcher, signals: Signals) -> Iterator["_Run"]:
    """Read and check everything, then open the run directory and state the settings of the run.

    From then on signals are noted; the run checks for them whenever it writes something.
    """
    pools = open_pools(plan.pools, selector.settings.type)
    _require_unseen(selector, plan, pools)
    recordings = Recordings(plan.replay, plan.recorded_for, plan.judges)
    recordings.require_made_for(pools, selector.settings.type)
    total = sum(min(pool.n, plan.limit or pool.n) for pool in pools)
    budget = FailureBudget(
        allowed_questions("max_failures", plan.max_failures, total),
        max(16, 2 * plan.workers),
        None if (most := plan.max_abstentions) is None else allowed_questions("max_abstentions", most, total),
    )
    out = out_of(plan)
    if plan.decisions == "parquet":
        pyarrow_for(out / DECISIONS["parquet"])  # refused before anything is asked
    confirmation = confirmation_of(plan, out, pools, selector)
    with (
        signals,
        RunDirectory(out, fresh=plan.fresh) as directory,
        rarer_collections(),
        reused_threads(),
        metered_settings(),
        selector.reading(),
        ExitStack() as results,
    ):
        roles = calls_of_roles(selector, plan.judges)
        models = {asked: call.model for asked, (call, _) in roles.items()}
        recordings.require_unchanged(read_journal(directory.journal.path), pools, models)
        state = RoleStatements(directory, {role: stated for role, (_, stated) in roles.items()})
        paths = {pool.name: str(pool.path) for pool in pools}
        state_lock(directory, confirmation)
        made_with = statements(selector, pools)
        require_same(out, directory.journal.heads, [*made_with, *state.statements()])
        directory.claim(*made_with, paths=paths)
        reserved = Reserved(directory.journal)
        spending = Spending(plan.max_calls, plan.max_cost, read_journal(directory.journal.path), reserved)
        runner = Runner(
            {role: call for role, (call, _) in roles.items()},
            selector.settings,
            plan.rules,
            directory.journal,
            recordings,
            budget,
            spending,
            state.claim,
            watcher.on_consultation,
        )
        results.callback(spending.close)
        files = results.enter_context(replacing_all(out, files_of(plan, total)))
        whole = () if plan.limit else [pool.name for pool in pools]
        run = _Run(pools, runner, watcher, Results(out, Counted(plan.rules), files, signals.look), whole)
        if confirmation is not None:
            run.results.confirmation = confirmation.begin()
        watcher.on_start(total)
        signals.look()
        yield run
        with signals_held():
            results.close()


def _require_unseen(selector: Selector, plan: Plan, pools: Sequence[Pool]) -> None:
    """Refuse a judge that was trained on questions of a pool: they may be in no figure."""
    for asked, judge in modules_of(selector, plan.judges).items():
        parts = [part for _, part in sub_modules(judge, dspy.Module)]  # a panel may have a member that was trained
        trained: set[str] = set().union(*(getattr(part, "trained_questions", ()) for part in parts))
        for pool in pools if trained else ():
            seen = sum(1 for row in rows_of(pool, plan) if folded_question(row.question) in trained)
            if seen:
                raise ArgumentError(
                    f"The {asked} was trained on {seen:,} of the {pool.n:,} questions of {pool.path}, which may be "
                    "in no figure. Split the pool with eldgr pool split, train on one part and evaluate the other."
                )


def statements(selector: Selector, pools: Sequence[Pool]) -> list[Statement]:
    """Return the settings that a run states, except its roles."""
    contents = [(pool.name, {"sha256": pool.sha256, "rows": pool.n, "task": pool.task}) for pool in pools]
    return [("settings", "rule", selector.settings.to_json()), *(("pool", name, content) for name, content in contents)]


class _Run:
    """A run under way: takes settled rows in order, pool by pool, and hands them to its results."""

    def __init__(
        self, pools: Sequence[Pool], runner: Runner, watcher: Watcher, results: Results, whole: Collection[str]
    ) -> None:
        self.pools, self.runner, self.results = pools, runner, results
        self._watcher, self._decided = watcher, Questions(whole)

    def stop(self, error: BaseException) -> None:
        """Make sure that no further call is started."""
        self.runner.budget.stop("The run was stopped.")
        if isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
            self._watcher.on_interrupt()

    def counting(self) -> Iterator[Pool]:
        """Yield the pools, each once it is counted, even if it has no rows."""
        for pool in self.pools:
            self.results.counted.begin(pool)
            yield pool

    def finish(self) -> Summary:
        """Write the results, and return the summary."""
        journal = self.runner.journal
        return self.results.finish(journal.heads, JournalTotals(read_journal(journal.path), self._decided))

    def add(self, pool: Pool, settled: Settled) -> None:
        """Take a row: count it, and write its decisions."""
        self._decided.add(pool.name, settled.row.id)
        self.results.add(pool, settled)
        self.runner.record_comparisons(pool.name, settled.case, settled.row.id)
        self._watcher.on_row()
