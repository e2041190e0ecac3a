"""Reserve requests in the journal before they are sent, so that a killed run knows how many it may have sent.

The journal has two such lines. `sent` bounds the requests that the run has sent so far. It is on the disk before the
first request beyond the last bound is sent, and is exact if a session ends in order. `lost` is how many requests of
earlier sessions were sent, or may have been, and are in no consultation; each session starts by settling it.
"""

from typing import Any

from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.journal import Journal
from eldgr_dspy.system import refusal

_KIND, _NAME = "reserved", "requests"


class Reserved:
    """How many requests of a run may have been sent, as its journal states it."""

    def __init__(self, journal: Journal | None = None) -> None:
        """Read what a journal states; with None the reservations are in memory alone."""
        self._journal = journal
        stated = [head["details"] for head in journal.heads if head["kind"] == _KIND] if journal is not None else []
        self._last: dict[str, Any] = stated[-1] if stated else {"lost": 0}

    @property
    def is_settled(self) -> bool:
        """Whether it is known how many requests of earlier sessions were lost."""
        return "sent" not in self._last

    @property
    def sent(self) -> int:
        """How many requests may have been sent; 0 unless this session has reserved any."""
        return int(self._last.get("sent", 0))

    def settle(self, journaled: int) -> int:
        """Return how many requests of earlier sessions were lost; `journaled` are in a consultation."""
        if not self.is_settled:
            self._state(lost=max(0, self.sent - journaled))
        return int(self._last["lost"])

    def extend(self, sent: int) -> None:
        """Make sure that it is on the disk that `sent` requests may have been sent.

        Args:
            sent: How many, those of earlier sessions included.

        Raises:
            RunStoppedError: if the disk cannot be written.
        """
        try:
            self._state(sent=sent)
        except OSError as error:
            raise RunStoppedError(refusal(error)) from error

    def _state(self, **details: int) -> None:
        if self._journal is not None:
            self._journal.append_head({"kind": _KIND, "name": _NAME, "details": details})
        self._last = details
