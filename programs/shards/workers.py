"""A worker of an engine: a process that runs shards, one after the other, and says how far it is.

It knows no engine. `run` blocks; the other methods are called meanwhile, from other threads.
"""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from eldgr_dspy.consultations import Consultation
from eldgr_dspy.errors import EldgrError, RunStoppedError
from eldgr_dspy.programs.run.evaluation import Watcher
from eldgr_dspy.programs.run.failures import FailureBudget
from eldgr_dspy.programs.run.hooks import Hooks
from eldgr_dspy.programs.run.plan import Plan
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.shards.limits import Ask, SharedBudget, SharedSpending
from eldgr_dspy.programs.shards.manifest import name_of
from eldgr_dspy.programs.shards.running import run_shard
from eldgr_dspy.programs.shards.suspects import UnderWay, suspects_of

Prepare: TypeAlias = Callable[[], AbstractContextManager[tuple[Selector, Plan]]]
"""Makes the selector and the plan of a run; it is sent to each worker, which so has connections of its own."""


class Ended(NamedTuple):
    """How a shard ended in a worker.

    Attributes:
        error: What stopped it; None if it is done. suspects: the questions that were made to fail.
        warned: What it warned of.
    """

    error: EldgrError | OSError | None
    suspects: list[str]
    warned: list[Warning]


class Progress(NamedTuple):
    """How far a worker is.

    Attributes:
        number: The shard that it runs. rows: how many of its rows are decided.
        consultations: Those since the last time, without their texts.
    """

    number: int
    rows: int
    consultations: list[Consultation]


class Worker:
    """Runs shards of a directory, one at a time."""

    def __init__(self, name: str, directory: Path, prepare: Prepare, allowed: int, ask: Ask) -> None:
        """Take what to run.

        Args:
            name: Of this worker, for the ledger. directory: of shards. prepare: makes selector and plan.
            allowed: How many questions of all shards may fail. ask: reaches the ledger.
        """
        self._name, self._directory, self._prepare, self._allowed, self._ask = name, directory, prepare, allowed, ask
        self._number, self._rows = 0, 0
        self._heard = list[Consultation]()
        self._budget: FailureBudget | None = None
        self._stopped: str | None = None

    def run(self, number: int, *, alone: bool) -> Ended:
        """Run a shard to its end; `alone` takes one question at a time, and states which one is under way."""
        self._number, self._rows = number, 0
        error: EldgrError | OSError | None = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with self._prepare() as (selector, plan):
                    self._run(number, selector, plan, alone=alone)
            except (EldgrError, OSError) as stopped:
                error = stopped.with_traceback(None)
        suspects = suspects_of(self._file(number))
        return Ended(error, suspects, [one.message for one in caught if isinstance(one.message, Warning)])

    def progress(self) -> Progress:
        """Return how far this worker is."""
        heard, self._heard = self._heard, []
        return Progress(self._number, self._rows, heard)

    def stop(self, reason: str) -> None:
        """Make sure that no further call is started; those under way are waited for."""
        self._stopped = reason
        if self._budget is not None:
            self._budget.stop(reason)

    def _file(self, number: int) -> Path:
        return self._directory / "runs" / f".{name_of(number)}.under-way"

    def _run(self, number: int, selector: Selector, plan: Plan, *, alone: bool) -> None:
        path = self._file(number)
        path.parent.mkdir(exist_ok=True)
        with closing(UnderWay(path)) if alone else nullcontext() as under_way:

            def decided() -> None:
                self._rows += 1
                if under_way is not None:
                    under_way.end()
                if self._stopped is not None:
                    raise RunStoppedError(self._stopped)

            hooks = Hooks(budget=partial(self._made_budget, name_of(number)))
            if plan.max_cost is not None:
                hooks = replace(hooks, spending=partial(SharedSpending, self._ask, self._name))
            if under_way is not None:
                hooks, plan = replace(hooks, settle=under_way.settle), replace(plan, workers=1)
            watcher = Watcher(on_row=decided, on_consultation=self._hear)
            run_shard(self._directory, number, selector, plan, watcher, hooks)

    def _made_budget(self, shard: str, _: int, patience: int, abstentions: int | None) -> FailureBudget:
        self._budget = SharedBudget(self._ask, shard, self._allowed, patience, abstentions)
        if self._stopped is not None:
            self._budget.stop(self._stopped)
        return self._budget

    def _hear(self, consultation: Consultation) -> None:
        self._heard.append(replace(consultation, content=None, reason=None))
