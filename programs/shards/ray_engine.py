"""Run the shards of a directory on Ray: one process for each worker, and one for the ledger of limits.

Ray starts processes and says when one has died. What is done is known from the directory alone. So a shard whose worker
died is run again by another one, from its journal.
"""

import os
import signal
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from eldgr_dspy.errors import ArgumentError, RunLockedError, RunStoppedError, brief
from eldgr_dspy.programs.file_locks import locked
from eldgr_dspy.programs.run.evaluation import Watcher
from eldgr_dspy.programs.run.failures import allowed_questions
from eldgr_dspy.programs.run.plan import require_path
from eldgr_dspy.programs.run.signals import Signals
from eldgr_dspy.programs.shards.claims import claimed
from eldgr_dspy.programs.shards.manifest import Sharded, read_sharded
from eldgr_dspy.programs.shards.ray_actors import LedgerActor, WorkerActor, ray_of, require_version
from eldgr_dspy.programs.shards.running import uncommitted
from eldgr_dspy.programs.shards.workers import Ended, Prepare, Progress, Worker

_TICK = 0.2  # seconds between two looks for signals
_LOOKS = 0.5  # seconds between two questions to a worker how far it is
_PATIENCE = 30.0  # seconds for a worker of a driver that was killed to end, and to release its shard
_TOGETHER = 2  # deaths at a shard, after which its questions are run one by one
_STUCK = 12  # deaths at a shard without a line in its journal, after which the run stops
_UNSTARTED = 3  # workers that died before they ran anything, after which the run stops
_STORE = 80 * 2**20  # bytes of Ray's object store, in which nothing is kept


class SuspectWarning(UserWarning):
    """Every process in which a question was asked has ended, so it counts as a question whose calls failed."""


def run_on_ray(
    directory: str | Path,
    prepare: Prepare,
    processes: int | None = None,
    address: str | None = None,
    watcher: Watcher | None = None,
) -> None:
    """Run every shard of a directory that is not done, in several processes of a Ray cluster.

    The directory must be on a file system that all machines of the cluster share. `max_calls`, `max_cost` and
    `max_failures` of the plan hold over all workers; its `workers` are those of each process.

    Args:
        directory: What `shard_pools` has written.
        prepare: Makes selector and plan; a function of a module that workers can import, or a `partial` of one.
        processes: How many processes; None for one a CPU of the cluster.
        address: Of a cluster; None for the one that Ray finds, or a new one on this machine.
        watcher: callbacks.

    Raises:
        ArgumentError: Ray is not installed or cannot be reached, or a worker has another version of the package.
        RunLockedError: another process runs this directory on Ray, or a shard of it.
        RunStoppedError: a limit is reached, or a shard ends each process that runs it. The rest as `run_shard` does.
        KeyboardInterrupt: as `evaluate` does; all workers wait for their calls under way.
    """
    ray, watcher = ray_of(), watcher or Watcher()
    require_path("directory", directory, "Workers share it. Run shards of a bucket by eldgr evaluate DIR --shard N.")
    directory = Path(directory).resolve()
    sharded = read_sharded(directory)
    busy = f"{directory}: another process runs it on Ray. Wait for it, or stop it."
    with locked(directory / ".engine.lock", busy):
        with prepare() as (selector, plan):
            claimed(sharded, selector, plan)
            rows = [shard.rows for shard in sharded.manifest.shards]
            allowed = allowed_questions("max_failures", plan.max_failures, sum(rows))
        if not (left := uncommitted(directory)):
            return
        watcher.on_start(sum(rows[number] for number in left))
        with _connected(ray, address, processes), LedgerActor(directory, plan.max_cost) as ledger, Signals() as signals:
            make = partial(Worker, directory=directory, prepare=prepare, allowed=allowed, ask=ledger.ask)
            driver = _Driver(ray, make, ledger, _Queue(sharded, left), watcher, signals)
            driver.run(min(len(left), processes or int(ray.cluster_resources()["CPU"])))


@contextmanager
def _connected(ray: Any, address: str | None, processes: int | None) -> Iterator[None]:
    """Connect to a cluster, or start one; a connection of the caller's is used, and stays."""
    if ray.is_initialized():
        yield
        return
    handler, options = signal.getsignal(signal.SIGTERM), dict[str, Any]()
    if address is not None:
        options["address"] = address
    elif not os.environ.get("RAY_ADDRESS"):
        options = {"include_dashboard": False, "num_cpus": processes, "object_store_memory": _STORE}
    try:
        try:
            ray.init(log_to_driver=False, logging_level="ERROR", **options)
        finally:
            if handler is not None and handler is not signal.getsignal(signal.SIGTERM):
                signal.signal(signal.SIGTERM, handler)  # Ray puts its own in the place of the command's
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = "Ray" if address is None else f"address={address!r:.200}"
        raise ArgumentError(f"{where} could not be started or reached: {brief(error)}") from error
    try:
        yield
    finally:
        ray.shutdown()


class _Queue:
    """The shards that are to be run, and how often a worker died at each."""

    def __init__(self, sharded: Sharded, left: list[int]) -> None:
        self.left = deque(left)
        self.busy: RunLockedError | None = None  # of a shard that another process keeps
        self._sharded = sharded
        self._waiting = dict[int, float]()  # shards of other processes, and when each is tried again
        self._since = dict[int, float]()
        self._deaths, self._stuck, self._sizes = Counter[int](), Counter[int](), dict[int, int]()

    def __bool__(self) -> bool:
        return bool(self.left or self._waiting)

    def next(self) -> int | None:
        """Return the shard to run next, if one may be."""
        for number, when in [*self._waiting.items()]:
            if when <= time.monotonic():
                del self._waiting[number]
                self.left.append(number)
        return self.left.popleft() if self.left else None

    def alone(self, number: int) -> bool:
        """Return whether the questions of a shard are to be run one by one."""
        return self._deaths[number] >= _TOGETHER

    def rows(self, number: int) -> int:
        """Return how many rows a shard has."""
        return self._sharded.shard(number).rows

    def died(self, number: int) -> None:
        """Put a shard back whose worker has died.

        Raises:
            RunStoppedError: too many have, and its journal has not grown meanwhile.
        """
        shard = self._sharded.shard(number)
        journal, size = self._sharded.run(shard) / "journal.jsonl", 0
        with suppress(FileNotFoundError):
            size = journal.stat().st_size
        self._stuck[number] = self._stuck[number] + 1 if size == self._sizes.get(number) else 1
        self._sizes[number] = size
        self._deaths[number] += 1
        self.left.appendleft(number)
        if self._stuck[number] >= _STUCK:
            raise RunStoppedError(
                f"{_STUCK} workers died one after the other at shard {shard.name}, and none of its questions could be "
                f"blamed. Run eldgr evaluate {self._sharded.path} --shard {number} to see why."
            )

    def refused(self, number: int, error: RunLockedError) -> None:
        """Put a shard back that another process is running; after a while leave it to that one."""
        now = time.monotonic()
        if now - self._since.setdefault(number, now) < _PATIENCE:
            self._waiting[number] = now + 1.0
        else:
            self.busy = error


class _Driver:
    """Gives shards to workers, replaces the workers that die, and says how far they are."""

    def __init__(
        self,
        ray: Any,
        make: Callable[..., Worker],
        ledger: LedgerActor,
        queue: _Queue,
        watcher: Watcher,
        signals: Signals,
    ) -> None:
        self._ray, self._make, self._ledger, self._queue = ray, make, ledger, queue
        self._watcher, self._signals = watcher, signals
        self._workers, self._idle = dict[str, WorkerActor](), list[WorkerActor]()
        self._awaited = dict[Any, tuple[WorkerActor, Callable[[WorkerActor, Any], None]]]()
        self._seen, self._said = Counter[int](), set[str]()
        self._started, self._unstarted, self._halting = 0, 0, False
        self._looked = time.monotonic()

    def run(self, processes: int) -> None:
        """Run all shards in so many processes."""
        try:
            for _ in range(processes):
                self._start()
            while self._queue or self._running:
                self._give()
                self._wait()
        except BaseException as error:
            self._halt(error)
            raise
        finally:
            for worker in self._workers.values():
                worker.kill()
        if self._queue.busy is not None:
            raise self._queue.busy

    @property
    def _running(self) -> list[WorkerActor]:
        return [worker for worker in self._workers.values() if worker.number is not None]

    def _start(self) -> None:
        self._started += 1
        worker = WorkerActor(f"{os.getpid()}-{self._started}")
        self._workers[worker.name] = worker
        self._awaited[worker.hello()] = worker, self._greeted

    def _greeted(self, worker: WorkerActor, said: tuple[str, str | None]) -> None:
        require_version(*said)
        self._awaited[worker.hold(self._make)] = worker, self._ready

    def _ready(self, worker: WorkerActor, _: object) -> None:
        self._unstarted = 0
        self._idle.append(worker)

    def _give(self) -> None:
        while self._idle and (number := self._queue.next()) is not None:
            worker = self._idle.pop()
            self._awaited[worker.run(number, alone=self._queue.alone(number))] = worker, self._ended

    def _wait(self) -> None:
        """Take what has arrived within a moment."""
        if not self._awaited:
            time.sleep(_TICK)
            return self._signals.look()
        for reference in self._ray.wait([*self._awaited], timeout=_TICK)[0]:
            worker, take = self._awaited.pop(reference)
            try:
                arrived = self._ray.get(reference)
            except self._ray.exceptions.RayTaskError as error:
                worker.number = None
                raise error.cause from error
            except self._ray.exceptions.RayActorError as error:
                self._died(worker, error)
            else:
                take(worker, arrived)
        if time.monotonic() - self._looked >= _LOOKS:
            self._looked = time.monotonic()
            asked = {worker.name for worker, take in self._awaited.values() if take == self._progressed}
            for worker in self._running:
                if worker.name not in asked:
                    self._awaited[worker.progress()] = worker, self._progressed
        self._signals.look()

    def _ended(self, worker: WorkerActor, ended: Ended) -> None:
        number, worker.number = worker.number, None
        assert number is not None
        self._idle.append(worker)
        for warning in ended.warned:
            if str(warning) not in self._said:
                self._said.add(str(warning))
                warnings.warn(warning, stacklevel=2)
        if isinstance(ended.error, RunLockedError):
            self._queue.refused(number, ended.error)
        elif ended.error is not None:
            raise ended.error
        else:
            self._decided(number, self._queue.rows(number))
            for id in ended.suspects:
                said = f"Question {id!r} ended every process in which it was asked, and counts as failed."
                warnings.warn(SuspectWarning(said), stacklevel=2)

    def _progressed(self, worker: WorkerActor, progress: Progress) -> None:
        for consultation in progress.consultations:
            self._watcher.on_consultation(consultation)
        if progress.number == worker.number:
            self._decided(progress.number, progress.rows)

    def _decided(self, number: int, rows: int) -> None:
        for _ in range(self._seen[number], rows):
            self._watcher.on_row()
        self._seen[number] = max(self._seen[number], rows)

    def _died(self, worker: WorkerActor, error: Exception) -> None:
        """Replace a worker, and put its shard back."""
        if self._workers.pop(worker.name, None) is None:
            return  # it was said before
        worker.kill()
        self._ledger.ask("lose", worker.name)
        if worker in self._idle:
            self._idle.remove(worker)
        number, worker.number = worker.number, None
        if self._halting:
            return
        if number is not None:
            self._queue.died(number)
        else:
            self._unstarted += 1
            if self._unstarted >= _UNSTARTED:
                raise RunStoppedError(f"{_UNSTARTED} workers in a row died before they ran a shard: {brief(error)}")
        self._start()

    def _halt(self, error: BaseException) -> None:
        """Stop all workers, and wait for their calls under way; a further interrupt abandons these."""
        self._halting = True
        if isinstance(error, KeyboardInterrupt):
            self._watcher.on_interrupt()
        for worker in self._running:
            worker.stop("The run was stopped.")
        while self._running:
            with suppress(Exception):  # the first error is raised
                self._wait()
