"""Processes of Ray that each hold one object of ours: the workers and the ledger."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from eldgr_dspy.errors import ArgumentError, RunStoppedError
from eldgr_dspy.figures.finished_run import installed_version
from eldgr_dspy.programs.shards.limits import Ask, Ledger


def ray_of() -> Any:
    """Return the package Ray. Raises `ArgumentError` if it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise ArgumentError("The engine ray needs the package ray; run: pip install 'eldgr_dspy[ray]'") from error
    return ray


class LedgerActor:
    """The ledger of limits in a process on the driver's machine, which so survives the loss of any other."""

    def __init__(self, directory: Path, max_cost: float | None) -> None:
        """Start the process."""
        ray = ray_of()
        here = ray.get_runtime_context().get_node_id()
        near = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        self._actor = ray.remote(_holder()).options(num_cpus=0, scheduling_strategy=near).remote()
        ray.get(self._actor.hold.remote(partial(Ledger, directory, max_cost)))

    def __enter__(self) -> "LedgerActor":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ray_of().kill(self._actor)

    @property
    def ask(self) -> Ask:
        """What reaches the ledger from any process."""
        return partial(_asked, self._actor)


def _asked(actor: Any, name: str, *arguments: Any) -> Any:
    """Call a method of the ledger, and wait for what it returns."""
    ray = ray_of()
    try:
        return ray.get(actor.call.remote(name, *arguments))
    except ray.exceptions.RayActorError as error:
        raise RunStoppedError("The process that counts failures and costs has died.") from error


class WorkerActor:
    """A process that runs shards, as the driver sees it. What its methods return arrives at a reference of Ray's.

    Attributes:
        name: Its name for the ledger. number: the shard that it runs; None if it runs none.
    """

    def __init__(self, name: str) -> None:
        """Ask for a process with one CPU; `hello` arrives when there is one."""
        self.name = name
        self.number: int | None = None
        self._actor = ray_of().remote(_holder()).options(num_cpus=1, max_concurrency=3).remote()

    def hello(self) -> Any:
        """Ask for the machine's name and the version of the package there; see `require_version`."""
        return self._actor.hello.remote()

    def hold(self, make: Callable[..., Any]) -> Any:
        """Have the worker made in the process."""
        return self._actor.hold.remote(partial(make, self.name))

    def run(self, number: int, *, alone: bool) -> Any:
        """Have a shard run; an `Ended` arrives."""
        self.number = number
        return self._actor.call.remote("run", number, alone=alone)

    def progress(self) -> Any:
        """Ask how far it is; a `Progress` arrives."""
        return self._actor.call.remote("progress")

    def stop(self, reason: str) -> None:
        """Have no further call started."""
        self._actor.call.remote("stop", reason)

    def kill(self) -> None:
        """End the process at once."""
        with suppress(Exception):  # it may have ended
            ray_of().kill(self._actor)


def require_version(machine: str, version: str | None) -> None:
    """Refuse a worker with another version of the package than this process has, or without it."""
    if version != (mine := installed_version()):
        raise ArgumentError(
            f"Workers must have eldgr_dspy {mine}, as this process has; got {version or 'none'} on {machine}. Install "
            f"{mine} there."
        )


def _holder() -> type:
    """Return the class of the processes. It is sent as code, so that it also runs where the package is missing."""

    class Holder:
        """Holds an object, and calls its methods."""

        def hello(self) -> tuple[str, str | None]:
            import platform
            from importlib.metadata import PackageNotFoundError, version

            try:
                return platform.node(), version("eldgr_dspy")
            except PackageNotFoundError:
                return platform.node(), None

        def hold(self, make: Any) -> None:
            self.held = make()

        def call(self, name: str, *arguments: Any, **options: Any) -> Any:
            return getattr(self.held, name)(*arguments, **options)

    return Holder
