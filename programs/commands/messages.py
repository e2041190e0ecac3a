"""Print what the command says on a terminal, tables apart: text from outside is shown there, and never obeyed."""

import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

import click

from eldgr_dspy.showing import display_text


def say(text: str) -> None:
    """Print a remark, an error or where something was written to standard error; nobody may be reading there."""
    with suppress(OSError):
        click.echo(display_text(text), err=True)


@contextmanager
def log_display() -> Iterator[None]:
    """Show what libraries log as text from outside is shown; ours is silent, as the command states the same itself."""
    make, ours, silent = logging.getLogRecordFactory(), logging.getLogger("eldgr_dspy"), logging.NullHandler()

    def record(*args: Any, **options: Any) -> logging.LogRecord:
        entry = make(*args, **options)
        with suppress(TypeError, ValueError):  # a message that does not fit its arguments is for logging to report
            entry.msg, entry.args = display_text(entry.getMessage()), None
        if entry.exc_info and entry.exc_info[0]:
            entry.exc_text = display_text("".join(traceback.format_exception(*entry.exc_info)).rstrip("\n"))
        return entry

    logging.setLogRecordFactory(record)
    ours.addHandler(silent)
    try:
        yield
    finally:
        ours.removeHandler(silent)
        logging.setLogRecordFactory(make)


def say_bugs() -> None:
    """Have the traceback of a bug, in whichever thread, shown as text from outside is: it may quote a server."""

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        say("".join(traceback.format_exception(kind, error, trace)).rstrip("\n"))

    def elsewhere(args: Any) -> None:
        show(args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)

    sys.excepthook = show
    threading.excepthook = sys.unraisablehook = elsewhere
