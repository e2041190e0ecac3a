"""Log what goes wrong in a service: each kind at most once a minute, with the count since, so that no log is flooded.

The logger is `eldgr_dspy`. A reply that cannot be used and a failed call are warnings. An abstention that the role
states itself, such as a repairer that finds no span, is only information.
"""

import logging
import threading
from collections.abc import Callable
from time import monotonic

from eldgr_dspy.errors import brief
from eldgr_dspy.rule.consultations import Abstention
from eldgr_dspy.showing import on_one_line

EVERY = 60
"""Seconds between two lines of one kind."""

MOST_KINDS = 256
"""The most kinds that are told apart. Later ones are one kind. Errors of a role of the user's may have any name."""

_LOGGER = logging.getLogger("eldgr_dspy")


class RareLog:
    """A log of lines by kind, from any thread."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.kinds = dict[tuple[str, ...], tuple[float, int]]()  # when last logged, and how often not logged since
        self._clock, self._lock = clock, threading.Lock()

    def log(self, level: int, kind: tuple[str, ...], message: str) -> None:
        """Log a message without its full stop, unless its kind was logged within the last minute."""
        with self._lock:
            if kind not in self.kinds and len(self.kinds) >= MOST_KINDS:
                kind = ()
            now = self._clock()
            last, since = self.kinds.get(kind, (None, 0))
            is_due = last is None or now - last >= EVERY
            self.kinds[kind] = (now, 0) if is_due else (last or 0.0, since + 1)
        if is_due:
            more = (
                "Further ones are logged at most once a minute" if last is None else f"{since} more since the last line"
            )
            _LOGGER.log(level, "%s. %s.", message.rstrip("."), more)


LOG = RareLog()
"""The log of this process."""


def log_silence(role: str, why: Abstention, log: RareLog = LOG) -> None:
    """Log that a role, the `certificate` or the `scorer` abstained or failed."""
    level, reason = logging.WARNING, brief(on_one_line(why.text if why.failed else why.reason))
    if why.failed:
        message = f"A call of the {role} failed: {reason}"
    elif why.unusable:
        message = f"The {role} gave no usable reply ({why.kind}): {reason}"
    else:
        level, message = logging.INFO, f"The {role} abstained: {reason}"
    log.log(level, (role, why.kind), message)
