"""How many questions may fail before a run stops, and how a failure is told."""

import threading

from eldgr_dspy.consultations import Key
from eldgr_dspy.errors import RunStoppedError, brief
from eldgr_dspy.programs.consulting import is_fatal


class FailureBudget:
    """How many questions may fail before a run stops, however many of their calls do. Counts from any thread.

    Whatever is allowed, a run stops when `patience` consultations in a row have failed: the server is away.
    """

    def __init__(self, allowed: int, patience: int = 16) -> None:
        self.allowed, self.patience = allowed, patience
        self.failed: set[tuple[str, str]] = set()
        self.stopped: str | None = None
        self._in_a_row = 0
        self._lock = threading.Lock()

    def spend(self, key: Key, error: Exception) -> None:
        """Count the question of a call that failed; beyond the budget, or for a fatal failure, stop the run."""
        with self._lock:
            self.failed.add(key[:2])
            self._in_a_row += 1
            if is_fatal(error):
                self.stopped = f"The call can only fail again: {_ended(error)}"
            elif not self.stopped:
                self.stopped = self._too_many(error)

    def _too_many(self, error: Exception) -> str | None:
        n, last = len(self.failed), f"; the last: {_ended(error)}"
        if n > self.allowed:
            return f"{n} question{'s' * (n > 1)} failed, more than the {self.allowed} that --max-failures allows{last}"
        if self._in_a_row >= self.patience:
            return f"{self._in_a_row} calls in a row failed, so that the server seems to be away{last}"
        return None

    def earn(self) -> None:
        """Take note that a call came through."""
        with self._lock:
            self._in_a_row = 0

    def check(self) -> None:
        """Raise `RunStoppedError` if the run is to stop."""
        if self.stopped:
            raise RunStoppedError(self.stopped)

    def stop(self, reason: str) -> None:
        """Stop the run: no call is begun after this."""
        self.stopped = self.stopped or reason


def _ended(error: Exception) -> str:
    said = describe_failure(error)
    return said if said.endswith((".", "…")) else f"{said}."


def describe_failure(error: Exception) -> str:
    """Return a failure in one line, without its traceback."""
    return f"{type(error).__name__}: {brief(' '.join(str(error).split()))}"
