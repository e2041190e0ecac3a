"""What threads and tasks share: calls, the steps that yield them, and results in the order of the items."""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from eldgr_dspy.errors import brief

R = TypeVar("R")

OnStop: TypeAlias = Callable[[BaseException], None]
"""Called with what ends a map early: where the call that failed was made, and again on the way out."""


class Call(Protocol):
    """An action that may take long: made until the deadline, then kept, once, however long keeping takes."""

    @property
    def held(self) -> float:
        """Return for how many seconds it was held back so far; its deadline is that much later."""
        ...

    @property
    def failure(self) -> str | None:
        """Return why its last request failed; None if none did."""
        ...

    def make(self) -> Any:
        """Make the call in a thread, and return the reply or an error to be kept."""

    async def amake(self) -> Any:
        """Make the call in a task, and return the same."""

    def keep(self, said: Any) -> Any:
        """Keep the reply, or that it is late, and return what its steps are sent."""

    async def akept(self) -> None:
        """In a task, wait until what was kept is safe; in threads the steps do."""


Steps: TypeAlias = Generator[Call, Any, R]
"""An item's steps: yields the calls that may take long, is sent what was kept of each, and returns its result."""


def window_of(workers: int) -> int:
    """Return how many items are under way or finished and waiting for their turn."""
    return max(256, 16 * workers)


def late(seconds: float, call: Call) -> TimeoutError:
    """Return the failure of a call that is not done within `seconds`, with what the server did if it did anything."""
    said = "nothing was said" if call.failure is None else "no reply could be used"
    why = "" if call.failure is None else f" (the last request failed: {brief(call.failure, 180)})"
    return TimeoutError(f"{said} within {seconds:g} s; a longer --timeout waits longer{why}")


class Rows(Generic[R]):
    """The items that wait for a call, by their number, and the results that wait for their turn.

    Calls come first, because others wait for them: a result is used when no call is done and no item may start.
    """

    def __init__(self, rows: Iterable[Steps[R]], workers: int, give: Callable[[int, Call], None]) -> None:
        """Start with nothing under way; `give` gets the call of an item made."""
        self._rows, self._give = iter(rows), give
        # More than are under way, so that no worker waits for the next call; a single worker takes row by row.
        self._most = 4 * workers if workers > 1 else 1
        self._window = window_of(workers)
        self._steps = dict[int, Steps[R]]()
        self._results = dict[int, R]()
        self._begun = self._turn = 0
        self._more = True

    def begin(self) -> bool:
        """Take the first steps of the next item, if it may start; return whether anything is left to do."""
        if not self._blocked:
            steps = next(self._rows, None)
            if steps is None:
                self._more = False
            else:
                self._begun += 1
                self._send(self._begun - 1, steps, None)
        return self._more or self._begun > self._turn

    @property
    def waits(self) -> bool:
        """Whether nothing can be done before a call is done."""
        return self._blocked and self._turn not in self._results and self._begun > self._turn

    @property
    def due(self) -> bool:
        """Whether a result is to be used, if no call is done."""
        return self._blocked and self._turn in self._results

    def go_on(self, number: int, came: object) -> None:
        """Take the next steps of an item whose call is done."""
        self._send(number, self._steps.pop(number), came)

    def use(self) -> R:
        """Return the result that is due."""
        self._turn += 1
        return self._results.pop(self._turn - 1)

    @property
    def _blocked(self) -> bool:
        """Whether no further item may start."""
        full = len(self._steps) >= self._most or self._begun - self._turn >= self._window
        return not self._more or full or (self._turn in self._results and not self._steps)

    def _send(self, number: int, steps: Steps[R], came: object) -> None:
        try:
            call = steps.send(came)
        except StopIteration as stop:
            self._results[number] = stop.value
        else:
            self._steps[number] = steps
            self._give(number, call)


def noted(error: BaseException, failures: list[Exception], on_stop: OnStop) -> BaseException:
    """Keep a failure and report it; return it, or the error of reporting it."""
    if isinstance(error, Exception):
        failures.append(error)
        try:
            on_stop(error)
        except BaseException as further:  # noqa: BLE001 -- raised where the call is taken
            return further
    return error


def raise_first(failures: Sequence[Exception], error: BaseException) -> None:
    """Raise the first failure of a call if `error` is a later one; an interrupt never counts as a failure."""
    if failures and isinstance(error, Exception) and error is not failures[0]:
        raise failures[0] from failures[0].__cause__
