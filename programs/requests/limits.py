"""The limits of a run: how many questions may fail or have an unusable reply, and what the run may still send.

A request is admitted before it is sent, retries included. So a session never exceeds the limit on requests. The limit
on dollars is exceeded only by the amount that requests under way cost more than the dearest so far. A kill can add to
both what was under way at that moment.
"""

import math
import re
import threading
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from eldgr_dspy.errors import ArgumentError, RunStoppedError, brief, describe_failure
from eldgr_dspy.programs.lms.consulting import is_fatal
from eldgr_dspy.rule.consultations import Consultation, Key
from eldgr_dspy.rule.named_judges import Label

_RETRIES = 100
"""How many requests a run may retry beyond one for each reply that it got."""


def allowed_questions(name: str, limit: int | str, total: int) -> int:
    """Return a limit as a count: "5%" of `total` questions, rounded down, or the count itself."""
    text = str(limit).strip()
    share = re.fullmatch(r"(\d{1,3}(?:\.\d+)?)%", text)
    if share and Fraction(share[1]) <= 100:
        return int(total * Fraction(share[1]) / 100)  # exact: 9.2% of 750 is 69, and a float is just below
    if re.fullmatch(r"\d{1,9}", text):
        return int(text)
    raise ArgumentError(f"{name} must be a count such as 10 or a share such as 5%; got {limit!r}.")


class FailureBudget:
    """Counts the questions that fail, however many of their calls do, and their limit. From any thread.

    Whatever the limit, a run stops when `patience` consultations in a row have failed: the server is not there.
    Questions with an unusable reply have a limit of their own, `abstentions`; None allows any number.
    """

    def __init__(self, limit: int, patience: int = 16, abstentions: int | None = None) -> None:
        self.limit, self.patience, self.abstentions = limit, patience, abstentions
        self.failures: set[tuple[str, str]] = set()
        self.reason: str | None = None
        self._unusable: set[tuple[str, str]] = set()
        self._kinds = Counter[tuple[Label, str]]()
        self._examples = dict[tuple[Label, str], str]()
        self._in_a_row, self.has_success = 0, False
        self._lock = threading.Lock()

    def spend(self, key: Key, error: Exception) -> None:
        """Count the question of a call that failed; over the limit, or for a fatal failure, stop the run."""
        with self._lock:
            self.failures.add(key[:2])
            self._in_a_row += 1
            if is_fatal(error):
                remedy = "Mend its cause first; another model needs another --out."
                self.reason = f"The call can only fail again: {_full_stop(describe_failure(error))} {remedy}"
            elif not self.reason:
                n, last = len(self.failures), f"; the last: {_full_stop(describe_failure(error))}"
                if n > self.limit:
                    more = f"more than the {self.limit} that --max-failures allows"
                    self.reason = f"{n} question{'s' * (n > 1)} failed, {more}{last}"
                elif self._in_a_row >= self.patience:
                    self.reason = f"{self._in_a_row} calls in a row failed, so that the server seems to be away{last}"

    def hear(self, consultation: Consultation) -> None:
        """Count the question of a reply that cannot be used; a `RunStoppedError` if there are more than the limit."""
        why = consultation.abstention
        if self.abstentions is None or why is None or not why.unusable:
            return
        kind = (consultation.label, why.kind)
        with self._lock:
            self._unusable.add(consultation.key[:2])
            self._kinds[kind] += 1
            self._examples.setdefault(kind, why.reason)
            if len(self._unusable) <= self.abstentions:
                return
            self.reason = self.reason or self._too_unusable(len(self._unusable), self.abstentions)
        self.check()

    def _too_unusable(self, n: int, limit: int) -> str:
        sentence = f"{n} question{'s' * (n > 1)} had an unusable reply, and --max-abstentions allows {limit}"
        sentences = [f"{sentence}; give a higher limit to resume."]
        for role in dict.fromkeys(role for (role, _), _ in self._kinds.most_common()):
            kinds = [(kind, n) for kind, n in self._kinds.most_common() if kind[0] == role]
            (most, count), total = kinds[0], sum(n for _, n in kinds)
            example = _full_stop(brief(self._examples[most]))
            sentences.append(f"The {role} gave {total:,}, most often {most[1]} ({count:,}), such as: {example}")
        return " ".join(sentences)

    def earn(self) -> None:
        """Record that a call came through."""
        with self._lock:
            self._in_a_row, self.has_success = 0, True

    def check(self) -> None:
        if self.reason:
            raise RunStoppedError(self.reason)

    def stop(self, reason: str) -> None:
        self.reason = self.reason or reason


class Spending:
    """The requests and dollars of a run, those of earlier sessions included. Counts from any thread."""

    def __init__(
        self, max_calls: int | None = None, max_cost: float | None = None, before: Iterable[Consultation] = ()
    ) -> None:
        """Take the limits, None for none, and what the journal holds; recorded consultations cost nothing.

        If the dearest request of a consultation is not journaled with it, each is assumed to have cost the same.
        Requests that were under way when a session was killed are in no journal, and do not count.
        """
        self._max_calls, self._max_cost = max_calls, max_cost
        self._calls = self._under_way = self._replies = self._retries = 0
        self._cost: float | None = 0.0
        self._dearest: float | None = None
        self._is_closed = False
        self._lock = threading.Lock()
        if max_calls is not None or max_cost is not None:
            for entry in before:
                self._calls += entry.calls
                if entry.calls and entry.answered and not entry.recorded:
                    dearest = entry.cost if entry.cost is None else entry.dearest or entry.cost / entry.calls
                    self._add(entry.cost, dearest)

    def _add(self, cost: float | None, dearest: float | None) -> None:
        self._cost = None if self._cost is None or cost is None else math.fsum((self._cost, cost))
        if dearest is not None:
            self._dearest = max(self._dearest or 0.0, dearest)

    def admit(self) -> bool:
        """Admit one request, or raise `RunStoppedError`. Return False if it must wait until those under way return."""
        with self._lock:
            if self._is_closed:
                raise RunStoppedError("The run has ended.")
            total = self._calls + self._under_way
            if self._max_calls is not None and total >= self._max_calls:
                raise RunStoppedError(
                    f"{total} request{' was' if total == 1 else 's were'} sent, and --max-calls allows "
                    f"{self._max_calls}; give a higher limit to resume."
                )
            if self._max_cost is not None and not self._affordable(self._max_cost):
                return False
            self._under_way += 1
            return True

    def _sum(self) -> float:
        return (self._cost or 0.0) + self._under_way * (self._dearest or 0.0)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True

    def _affordable(self, limit: float) -> bool:
        """Return whether one more request stays below the limit. While the price is unknown, one is sent at a time."""
        if self._cost is None:
            raise RunStoppedError(
                "A reply came without a price, so --max-cost cannot be enforced; limit the requests with --max-calls."
            )
        if self._dearest is None:
            return not self._under_way and limit > 0
        if self._sum() + self._dearest <= limit:  # if none under way is dearer than the dearest so far
            return True
        if self._under_way:
            return False
        raise RunStoppedError(
            f"${self._sum():.4f} was spent and the dearest request took ${self._dearest:.4f}, so one more may exceed "
            f"the ${limit:g} that --max-cost allows; give a higher limit to resume."
        )

    def send(self, n: int) -> None:
        """Count requests beyond an admitted one that another process has sent; 0 or fewer change nothing."""
        with self._lock:
            self._under_way += max(0, n)

    def withdraw(self) -> None:
        """Take back a request that was admitted and not sent."""
        with self._lock:
            self._under_way -= 1

    def count_failure(self) -> None:
        """Count a request that was not answered with a reply. Its cost is not known, and counted as 0."""
        with self._lock:
            self._under_way -= 1
            self._calls += 1

    def count_reply(self, cost: float | None) -> None:
        """Count a request that was answered; its cost in dollars, None if unknown."""
        with self._lock:
            self._under_way -= 1
            self._calls += 1
            self._replies += 1
            self._add(cost, cost)

    def count_late_reply(self, cost: float | None) -> None:
        """Count the cost in dollars of a request that has been counted as not answered."""
        with self._lock:
            self._add(cost, cost)

    def may_retry(self) -> bool:
        """Count a request that will be retried, unless too many were."""
        with self._lock:
            if self._retries >= _RETRIES + self._replies:
                return False
            self._retries += 1
            return True


def _full_stop(text: str) -> str:
    return text if text.endswith((".", "…")) else f"{text}."
