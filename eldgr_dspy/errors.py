"""Every exception that the package raises on purpose.

Each message is a whole sentence: what was given, what was expected, what to do. The command prints the message alone;
a traceback from one of these is never shown to a user of the command. Text from outside is shown in a message as
`eldgr_dspy.showing` shows it, wherever it is printed or logged. Several messages are made with `settled` and `brief`.
"""

import inspect
from typing import TypeVar

from eldgr_dspy.redaction import redacted
from eldgr_dspy.showing import shown

T = TypeVar("T")


class EldgrError(Exception):
    """Base of all errors raised on purpose."""

    def __str__(self) -> str:
        return shown(super().__str__())


class ArgumentError(EldgrError, ValueError):
    """An argument is outside what its function accepts."""


class PoolError(EldgrError, ValueError):
    """A pool, or one of its rows, cannot be read."""


class JournalError(EldgrError, ValueError):
    """A journal line cannot be read."""


class RunChangedError(EldgrError, ValueError):
    """A run directory was made with another pool, prompt, model or setting."""


class RunLockedError(EldgrError, RuntimeError):
    """Another process is writing to the run directory."""


class RunStoppedError(EldgrError, RuntimeError):
    """A run stopped before its end; what it had is kept and the same command goes on."""


class NotAskedError(EldgrError, LookupError):
    """A rule needs a consultation that was never made; absence is not abstention."""


class UnexecutableError(EldgrError, ValueError):
    """An arithmetic expression is not one that may be executed, or has no value."""


class ReplyError(EldgrError, ValueError):
    """A role's reply has a value that it may not have, and `on_error="raise"` was asked for."""


class ScoringError(EldgrError, RuntimeError):
    """A scorer failed while a reward was computed, and `on_error="raise"` was asked for."""


_AHEAD = 1_000  # characters behind what is quoted that are looked at


def settled(value: T, what: str, instead: str) -> T:
    """Return what a function of the user's gave that was called without await.

    Raises:
        ArgumentError: `what` is async, so that it gave something that is still to be awaited; `instead` says what to
            do. A coroutine is closed, so that nothing warns of it later.
    """
    if inspect.iscoroutine(value):
        value.close()
    if inspect.isawaitable(value) or inspect.isasyncgen(value):
        raise ArgumentError(f"{what} is async, and it was called without await; {instead}.")
    return value


def brief(said: object, longest: int = 300) -> str:
    """Return another's words as a message quotes them: as `shown` returns them, and cut, with an ellipsis, if long."""
    text = shown(redacted(str(said))[: longest + _AHEAD])  # a credential that is cut in two would not be found
    if len(text) <= longest:
        return text
    head, _, _ = text[: longest + 1].rpartition(" ")
    return f"{(head or text[:longest]).rstrip()} …"
