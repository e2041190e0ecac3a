"""Run a plan with its roles in other processes, on Ray: workers consult, and this process journals and decides.

A worker is an actor, which asks several questions at once, each in a task of Ray. What it returns is journaled here
as if it had been asked here. So a lost worker costs what was under way, the same command resumes the run with Ray or
without it, and nothing else knows of Ray.
"""

import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

from eldgr_dspy.errors import ArgumentError, brief, describe_failure
from eldgr_dspy.figures.results.summary_fields import Summary
from eldgr_dspy.programs.lms.consulting import RoleOutput
from eldgr_dspy.programs.requests.metered_lms import admission
from eldgr_dspy.programs.requests.metering import Entry, current_meter, metering
from eldgr_dspy.programs.run.evaluation import Watcher, evaluate
from eldgr_dspy.programs.run.plan import Plan
from eldgr_dspy.programs.run.role_calls import RoleCall, calls_of_roles, metered_settings
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.named_judges import Label, role_of
from eldgr_dspy.words import Consulted

Prepare: TypeAlias = Callable[[], AbstractContextManager[tuple[Selector, Plan]]]
"""Makes the selector and the plan of a run. It is sent to each worker, which so has connections of its own."""

_SHARE = 0.5  # of a CPU, which a worker takes: the rest is for what is asked in a process of its own
_AGAIN = 2  # further processes in which a question is asked by itself
_STORE = 80 * 2**20  # bytes of Ray's object store, in which nothing is kept


class _Return(NamedTuple):
    """What a worker returns: what the role said or the call failed with, and what was sent for it, for `Meter.take`."""

    content: Mapping[str, Any]
    error: Exception | None
    usage: tuple[Sequence[Entry], int, int, str | None]


def evaluate_on_ray(prepare: Prepare, watcher: Watcher | None = None) -> Summary:
    """Run the plan that `prepare` makes as `evaluate` does, with the roles in processes of a Ray cluster.

    The plan's `workers` are under way at once, over all processes. There is a process for each CPU of the cluster, at
    most. `max_calls` and `max_cost` may be exceeded by what the questions under way take beyond a request each.

    Args:
        prepare: A function of a module that workers can import, or a `partial` of one. watcher: callbacks.

    Raises:
        ArgumentError: Ray is not installed or cannot be reached, or a worker makes a role otherwise than this process:
            it has another version of the package, or another environment. The rest as `evaluate` does.
    """
    try:
        import ray
    except ImportError as error:
        raise ArgumentError("The engine ray needs the package ray; run: pip install 'eldgr_dspy[ray]'") from error
    with prepare() as (selector, plan), _connect(ray):
        workers = _Workers(ray, prepare, plan.workers)
        try:
            return evaluate(selector, plan, watcher, workers.calls)
        finally:
            workers.end()


@contextmanager
def _connect(ray: Any) -> Iterator[None]:
    """Connect to the cluster that RAY_ADDRESS names, or start one here. A connection of the caller's is used."""
    if ray.is_initialized():
        yield
        return
    handler, options = signal.getsignal(signal.SIGTERM), dict[str, Any]()
    if not os.environ.get("RAY_ADDRESS"):
        options = {"address": "local", "include_dashboard": False, "object_store_memory": _STORE}
    try:
        try:
            ray.init(log_to_driver=False, logging_level="ERROR", **options)
        finally:
            if handler is not None and handler is not signal.getsignal(signal.SIGTERM):
                signal.signal(signal.SIGTERM, handler)  # Ray puts its own in the place of the command's
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ArgumentError(f"Ray could not be started or reached: {brief(error)}. Check RAY_ADDRESS.") from error
    try:
        yield
    finally:
        ray.shutdown()


class _Workers:
    """The workers of a run, as this process sees them."""

    def __init__(self, ray: Any, prepare: Prepare, at_once: int) -> None:
        self._ray, self._prepare = ray, prepare
        n = max(1, min(at_once, int(ray.cluster_resources().get("CPU", 1))))
        factory = ray.remote(_Worker).options(num_cpus=_SHARE, max_restarts=-1, max_concurrency=-(-at_once // n))
        self._actors = [factory.remote(prepare) for _ in range(n)]
        self._alone = ray.remote(_ask_alone).options(num_cpus=_SHARE, max_retries=_AGAIN)
        self._under_way, self._lock = [0] * n, Lock()

    def calls(self, roles: Mapping[Label, RoleCall]) -> dict[Label, RoleCall]:
        """Return the roles as workers ask them, once all workers make the same ones; heuristic roles stay here."""
        here = {label: call.fingerprint for label, call in roles.items()}
        for machine, fingerprints in self._ray.get([actor.describe.remote() for actor in self._actors]):
            for label, fingerprint in here.items():
                if fingerprints.get(label) != fingerprint:
                    raise ArgumentError(
                        f"{machine}: the {label} must be made as in this process; it has another fingerprint there. "
                        "Install the same versions on all machines, and set the same variables."
                    )
        return {
            label: call if call.heuristic else replace(call, elsewhere=partial(self._ask_with_meter, label))
            for label, call in roles.items()
        }

    def _ask_with_meter(self, label: Label, inputs: Mapping[str, object], _: Consulted) -> RoleOutput:
        """Ask a role. What was sent for it is reported to the meter of the consultation."""
        for seconds in admission():
            time.sleep(seconds)
        meter: Any = current_meter()  # a role with an LM is asked under a meter
        try:
            result = self._ask(label, inputs)
        except BaseException as error:
            meter.fail(error)
            raise
        meter.take(*result.usage)
        if result.error is not None:
            raise result.error
        return RoleOutput(result.content)

    def _ask(self, label: Label, inputs: Mapping[str, object]) -> _Return:
        """Ask a role in the worker that has least to do. If the worker dies, ask in processes of its own."""
        with self._lock:
            place = min(range(len(self._actors)), key=self._under_way.__getitem__)
            self._under_way[place] += 1
        try:
            result: _Return = self._ray.get(self._actors[place].ask.remote(label, inputs))
            return result
        except self._ray.exceptions.RayActorError:
            pass  # perhaps because of another question that it was asking
        finally:
            with self._lock:
                self._under_way[place] -= 1
        try:
            result = self._ray.get(self._alone.remote(self._prepare, label, inputs))
            return result
        except self._ray.exceptions.WorkerCrashedError as error:
            raise ConnectionError(f"{_AGAIN + 2} processes in which it was asked ended: {brief(error)}") from error

    def end(self) -> None:
        for actor in self._actors:
            with suppress(Exception):  # it may have ended
                self._ray.kill(actor)


class _Worker:
    """A process that asks roles, several questions at once."""

    def __init__(self, prepare: Prepare) -> None:
        self._resources = ExitStack()  # until the process ends
        selector, plan = self._resources.enter_context(prepare())
        self._resources.enter_context(metered_settings())
        self._resources.enter_context(selector.reading())
        self._calls = calls_of_roles(selector, plan.judges)
        self._context = copy_context()

    def describe(self) -> tuple[str, dict[Label, str]]:
        """Return the name of the machine, and the fingerprints of the roles."""
        return os.uname().nodename, {label: call.fingerprint for label, call in self._calls.items()}

    def ask(self, label: Label, inputs: Mapping[str, object]) -> _Return:
        """Ask a role; threads do so at the same time."""
        return self._context.copy().run(self._ask, label, inputs)

    def _ask(self, label: Label, inputs: Mapping[str, object]) -> _Return:
        content: Mapping[str, Any] = {}
        error = None
        with metering() as meter:
            try:
                content = self._calls[label].ask(inputs, role_of(label)).content
            except Exception as cause:  # noqa: BLE001 -- raised in the process that decides
                error = _portable(cause)
        return _Return(content, error, (meter.entries, meter.n_failures, len(meter.cache_hits), meter.failure))


def _ask_alone(prepare: Prepare, label: Label, inputs: Mapping[str, object]) -> _Return:
    """Ask one question in a process that asks no other at the time."""
    return _Worker(prepare).ask(label, inputs)


def _portable(error: Exception) -> Exception:
    """Return an error that another process can read, with its class if it can be."""
    with suppress(Exception):
        if type(pickle.loads(pickle.dumps(error))) is type(error):  # noqa: S301 -- ours
            return error
    return RuntimeError(describe_failure(error))
