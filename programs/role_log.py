"""Log a role that abstains or whose call fails, once for each kind of reason, so that no log is flooded.

The logger is `eldgr_dspy`. A reply that cannot be used and a failed call are warnings; an abstention that the role
states itself, such as a repairer that finds no span, is only information.
"""

import logging
import threading

from eldgr_dspy.consultations import Abstention
from eldgr_dspy.errors import brief
from eldgr_dspy.showing import on_one_line

LOGGER = logging.getLogger("eldgr_dspy")

MOST_KINDS = 256
"""The most kinds that are logged in a process; errors of a role module of the user's may have any name."""

_logged = set[tuple[str, str]]()
_lock = threading.Lock()


def log_silence(role: str, why: Abstention) -> None:
    """Log that a role abstained or failed, unless this kind of reason was logged for it before. From any thread.

    Args:
        role: Which role, or `certificate`.
        why: Its abstention.
    """
    kind = why.kind
    with _lock:
        if (role, kind) in _logged or len(_logged) >= MOST_KINDS:
            return
        _logged.add((role, kind))
    said = brief(on_one_line(why.text if why.failed else why.reason))
    more = "Further ones of this kind are not logged."
    if why.failed:
        LOGGER.warning("A call of the %s failed: %s. %s", role, said.rstrip("."), more)
    elif why.unusable:
        LOGGER.warning("The %s gave no usable reply (%s): %s. %s", role, kind, said.rstrip("."), more)
    else:
        LOGGER.info("The %s abstained: %s. %s", role, said.rstrip("."), more)


def forget_logged() -> None:
    """Log every kind once more."""
    with _lock:
        _logged.clear()
