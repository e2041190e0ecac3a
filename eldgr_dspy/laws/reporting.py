"""Report what a check found: with the example that causes it, and a traceback without the checker's own frames.

This module uses only the standard library. Source: ours.
"""

from types import TracebackType
from typing import TypeVar

E = TypeVar("E", bound=Exception)

_MACHINERY = {"eldgr_dspy", "hypothesis", "dspy", "asyncio", "concurrent", "contextlib", "threading"}


def reported(error: E, example: str = "") -> E:
    """Return an exception as a check raises it.

    Its traceback starts at the first frame of the user's own code, so it is empty if our code raised it, and so does
    that of its cause. The example, if there is one, is its note: pytest and Python print notes below the message.
    """
    if example:
        error.add_note(f"Falsifying example:\n{example}")
    if error.__cause__ is None:
        error.__suppress_context__ = True
    else:
        error.__cause__.__traceback__ = _own_frames(error.__cause__.__traceback__)
    return error.with_traceback(_own_frames(error.__traceback__))


def _own_frames(frames: TracebackType | None) -> TracebackType | None:
    while frames is not None and _is_machinery(frames.tb_frame.f_globals.get("__name__", "")):
        frames = frames.tb_next
    return frames


def _is_machinery(module: str) -> bool:
    package = module.partition(".")[0]
    return package in _MACHINERY or package.startswith("hypothesis_")  # modules that Hypothesis makes up
