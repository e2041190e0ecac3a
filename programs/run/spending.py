"""What a run may still send: its limits on requests and dollars, and how often it may retry.

A request is admitted before it is sent, retries included, and reserved on the disk. So the limit on requests is never
exceeded, however the process ends. The limit on dollars is exceeded only by the amount that requests under way cost
more than the dearest so far.
"""

import math
import threading
from collections.abc import Iterable
from contextlib import suppress

from eldgr_dspy.consultations import Consultation
from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.programs.run.reservations import Reserved

_RETRIES = 100
"""How many requests a run may retry beyond one for each reply that it got."""

_LARGEST_BLOCK, _BLOCKS = 64, 100
"""Requests are reserved in blocks: at most this many at once, and at most a hundredth of what the limits allow."""


class Spending:
    """The requests and dollars of a run, those of earlier sessions included. Counts from any thread."""

    def __init__(
        self,
        max_calls: int | None = None,
        max_cost: float | None = None,
        before: Iterable[Consultation] = (),
        reserved: Reserved | None = None,
    ) -> None:
        """Take the limits, None for none, and what the journal holds; recorded consultations cost nothing.

        Everything journaled as paid counts, including consultations that failed. The dearest request of a consultation
        that took several is journaled with it; if it is not, each is assumed to have cost the same. A request that a
        kill has lost counts as sent, and as having cost as much as the dearest.
        """
        self._max_calls, self._max_cost = max_calls, max_cost
        self._calls = self._under_way = self._replies = self._retries = self._lost = 0
        self._cost: float | None = 0.0
        self._dearest: float | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._reserved = reserved or Reserved()
        if self._is_limited or not self._reserved.is_settled:
            for entry in before:
                self._count(entry)
            self._lost = self._reserved.settle(self._calls)

    @property
    def _is_limited(self) -> bool:
        return self._max_calls is not None or self._max_cost is not None

    @property
    def _sent(self) -> int:
        """How many requests the run has sent, or is about to."""
        return self._calls + self._lost + self._under_way

    def _count(self, entry: Consultation) -> None:
        self._calls += entry.calls
        if entry.calls and entry.answered and not entry.recorded:
            self._add(entry.cost, entry.cost if entry.cost is None else entry.dearest or entry.cost / entry.calls)

    def _add(self, cost: float | None, dearest: float | None) -> None:
        self._cost = None if self._cost is None or cost is None else math.fsum((self._cost, cost))
        if dearest is not None:
            self._dearest = max(self._dearest or 0.0, dearest)

    def admit(self) -> bool:
        """Admit one request; False if it must wait until those under way return.

        Raises:
            RunStoppedError: if a limit would be exceeded.
        """
        with self._lock:
            if self._closed:
                raise RunStoppedError("The run has ended.")
            if self._max_calls is not None and self._sent >= self._max_calls:
                lost = f" ({self._lost} of them may have been, just before a session was killed)" if self._lost else ""
                raise RunStoppedError(
                    f"{self._sent} request{' was' if self._sent == 1 else 's were'} sent{lost}, and --max-calls allows "
                    f"{self._max_calls}; give a higher limit to resume."
                )
            if self._max_cost is not None and not self._affordable(self._max_cost):
                return False
            if self._is_limited and self._sent >= self._reserved.sent:
                self._reserved.extend(self._sent + self._block())
            self._under_way += 1
            return True

    def _block(self) -> int:
        """Return how many requests to reserve, at least one; a kill wastes those of them that were not sent."""
        allowed = [] if self._max_calls is None else [self._max_calls - self._sent]
        if self._max_cost is not None:
            left = self._max_cost - self._spent()
            allowed.append(0 if self._dearest is None else int(left / max(self._dearest, left * 1e-6)))
        return max(1, min(_LARGEST_BLOCK, *(n // _BLOCKS for n in allowed)))

    def _spent(self) -> float:
        """Return the dollars, including what lost requests and requests under way may have cost."""
        return (self._cost or 0.0) + (self._lost + self._under_way) * (self._dearest or 0.0)

    def close(self) -> None:
        """Admit no more, and state how many requests were sent, including abandoned ones."""
        with self._lock:
            self._closed = True
            if self._sent < self._reserved.sent:
                with suppress(RunStoppedError):  # then the bound stands
                    self._reserved.extend(self._sent)

    def _affordable(self, limit: float) -> bool:
        """Return whether one more request stays below the limit, if none under way is dearer than the dearest so far.

        As long as the price is unknown, only one request is sent at a time.
        """
        if self._cost is None:
            raise RunStoppedError(
                "A reply came without a price, so --max-cost cannot be enforced; limit the requests with --max-calls."
            )
        if self._dearest is None:
            return not self._under_way and limit > 0
        if self._spent() + self._dearest <= limit:
            return True
        if self._under_way:
            return False
        raise RunStoppedError(
            f"${self._spent():.4f} was spent and the dearest request took ${self._dearest:.4f}, so one more may exceed "
            f"the ${limit:g} that --max-cost allows; give a higher limit to resume."
        )

    def withdraw(self) -> None:
        """Take back a request that was admitted and not sent."""
        with self._lock:
            self._under_way -= 1

    def failed(self) -> None:
        """Count a request that was not answered with a reply; its cost is not known, and counted as 0."""
        with self._lock:
            self._under_way -= 1
            self._calls += 1

    def answered(self, cost: float | None) -> None:
        """Count a request that was answered, with its cost in dollars, None if unknown."""
        with self._lock:
            self._under_way -= 1
            self._calls += 1
            self._replies += 1
            self._add(cost, cost)

    def answered_late(self, cost: float | None) -> None:
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
