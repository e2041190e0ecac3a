"""How many questions may fail, or have an unusable reply, before a run stops, and how a failure is shown."""

import re
import threading
from collections import Counter
from fractions import Fraction

from eldgr_dspy.consultations import Consultation, Key
from eldgr_dspy.errors import ArgumentError, RunStoppedError, brief, describe_failure
from eldgr_dspy.figures.abstention_kinds import is_unusable, kind_of
from eldgr_dspy.named_judges import Asked
from eldgr_dspy.programs.consulting import is_fatal


def allowed_questions(name: str, allowed: int | str, total: int) -> int:
    """Return a limit as a count: "5%" of `total` questions, rounded down, or the count itself."""
    text = str(allowed).strip()
    share = re.fullmatch(r"(\d{1,3}(?:\.\d+)?)%", text)
    if share and Fraction(share[1]) <= 100:
        return int(total * Fraction(share[1]) / 100)  # exact: 9.2% of 750 is 69, and a float is just below
    if re.fullmatch(r"\d{1,9}", text):
        return int(text)
    raise ArgumentError(f"{name} must be a count such as 10 or a share such as 5%; got {allowed!r}.")


class FailureBudget:
    """Counts the questions that fail, however many of their calls do, and their limit. From any thread.

    Whatever the limit, a run stops when `patience` consultations in a row have failed: the server is not there.
    Questions with an unusable reply have a limit of their own, `abstentions`; None allows any number.
    """

    def __init__(self, allowed: int, patience: int = 16, abstentions: int | None = None) -> None:
        self.allowed, self.patience, self.abstentions = allowed, patience, abstentions
        self.failed: set[tuple[str, str]] = set()
        self.stopped: str | None = None
        self._unusable: set[tuple[str, str]] = set()
        self._kinds = Counter[tuple[Asked, str]]()
        self._examples = dict[tuple[Asked, str], str]()
        self._in_a_row = 0
        self._lock = threading.Lock()

    def spend(self, key: Key, error: Exception) -> None:
        """Count the question of a call that failed; over the limit, or for a fatal failure, stop the run."""
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

    def hear(self, consultation: Consultation) -> None:
        """Count the question of a reply, also a recorded or an earlier one, if it cannot be used.

        Raises:
            RunStoppedError: they are more than the limit.
        """
        reason = consultation.reason or ""
        if self.abstentions is None or consultation.outcome != "abstained" or not is_unusable(reason):
            return
        kind = (consultation.label, kind_of(reason))
        with self._lock:
            self._unusable.add(consultation.key[:2])
            self._kinds[kind] += 1
            self._examples.setdefault(kind, reason)
            if len(self._unusable) <= self.abstentions:
                return
            self.stopped = self.stopped or self._too_unusable(len(self._unusable), self.abstentions)
        self.check()

    def _too_unusable(self, n: int, allowed: int) -> str:
        counted = f"{n} question{'s' * (n > 1)} had an unusable reply, and --max-abstentions allows {allowed}"
        roles: dict[Asked, None] = {role: None for (role, _), _ in self._kinds.most_common()}
        return " ".join([f"{counted}; give a higher limit to resume.", *map(self._often, roles)])

    def _often(self, role: Asked) -> str:
        """Return a sentence: how many unusable replies a role gave, and the most frequent reason."""
        kinds = [(kind, n) for kind, n in self._kinds.most_common() if kind[0] == role]
        (most, count), total = kinds[0], sum(n for _, n in kinds)
        said = _full_stop(brief(self._examples[most]))
        return f"The {role} gave {total:,}, most often {most[1]} ({count:,}), such as: {said}"

    def earn(self) -> None:
        """Record that a call came through."""
        with self._lock:
            self._in_a_row = 0

    def check(self) -> None:
        """Raise `RunStoppedError` if the run is to stop."""
        if self.stopped:
            raise RunStoppedError(self.stopped)

    def stop(self, reason: str) -> None:
        """Stop the run: no call is started after this."""
        self.stopped = self.stopped or reason


def _ended(error: Exception) -> str:
    return _full_stop(describe_failure(error))


def _full_stop(said: str) -> str:
    return said if said.endswith((".", "…")) else f"{said}."
