"""Every exception that the package raises on purpose.

Each message is a whole sentence: what was given, what was expected, what to do. The command prints only the message,
never a traceback of one of these errors. Text from outside is shown as `eldgr_dspy.showing` shows it.
"""

import inspect
from typing import TypeVar

from eldgr_dspy.redaction import redact
from eldgr_dspy.showing import display_text

T = TypeVar("T")


class EldgrError(Exception):
    """Base of all errors raised on purpose."""

    def __str__(self) -> str:
        return display_text(super().__str__())


class ArgumentError(EldgrError, ValueError):
    """An argument is outside what its function accepts."""


class CertificateError(ArgumentError):
    """A user's certificate raised, or returned something that is not a certificate."""


class PoolError(EldgrError, ValueError):
    """A pool, or one of its rows, cannot be read."""


class JournalError(EldgrError, ValueError):
    """A journal line cannot be read."""


class RunChangedError(EldgrError, ValueError):
    """A run directory belongs to a run with another pool, prompt, model or setting."""


class RunLockedError(EldgrError, RuntimeError):
    """Another process is writing to the run directory."""


class RunStoppedError(EldgrError, RuntimeError):
    """A run stopped before its end. Its results are kept, and the same command resumes it."""


class NotAskedError(EldgrError, LookupError):
    """A rule needs a consultation that was never made. A missing reply is not an abstention."""


class UnexecutableError(EldgrError, ValueError):
    """An arithmetic expression is not one that may be executed, or has no value."""


class ReplyError(EldgrError, ValueError):
    """A role's reply has an invalid value, and `on_error="raise"` was set."""


class ScoringError(EldgrError, RuntimeError):
    """A scorer failed while a reward was computed, which ends the training."""


def result_of(value: T, what: str, instead: str) -> T:
    """Return what a user's function returned. `instead` ends the message.

    Raises:
        ArgumentError: `what` is async. A coroutine is closed, so that Python does not warn about it later.
    """
    if inspect.iscoroutine(value):
        value.close()
    if inspect.isawaitable(value) or inspect.isasyncgen(value):
        raise ArgumentError(f"{what} is async, and it was called without await; {instead}.")
    return value


def describe_failure(error: Exception) -> str:
    """Return an error in one line, without its traceback."""
    return f"{type(error).__name__}: {brief(' '.join(str(error).split()))}"


def brief(value: object, longest: int = 300) -> str:
    """Return foreign text as a message quotes it: as `display_text` returns it, and cut with an ellipsis if long."""
    text = display_text(redact(str(value))[: longest + 1_000])  # a credential that is cut in two would not be found
    if len(text) <= longest:
        return text
    head, _, _ = text[: longest + 1].rpartition(" ")
    return f"{(head or text[:longest]).rstrip()} …"
