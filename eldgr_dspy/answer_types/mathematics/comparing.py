"""Compare mathematical expressions in a process of their own, which is killed and replaced when a pair takes too long.

`math-verify` limits its time by SIGALRM, which works in the main thread only and cannot interrupt a long calculation
with whole numbers. So its own limits are off, and the process has one. It starts at the first comparison, serves all
threads one at a time, and ends with the program. A forked program starts its own.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib.util import find_spec
from threading import Lock, Timer
from time import monotonic
from typing import Any, Final, NamedTuple

from eldgr_dspy.errors import ArgumentError

SECONDS: Final = 3.0
"""The processor time that the comparison of one pair may take, both ways together."""

_BY_THE_CLOCK: Final = 10
"""How many times as long a pair may take by the clock: other programs may be busy, and some systems limit only this."""

_START: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; from eldgr_dspy.answer_types.mathematics.worker import serve; serve()"
)


class Compared(NamedTuple):
    """Whether two expressions are equal, None if it could not be found out, and the processor time it took."""

    equal: bool | None
    seconds: float


def require_installed() -> None:
    """Raise an ArgumentError unless `math-verify` is installed."""
    if find_spec("math_verify") is None:
        raise ArgumentError("Answers of type 'math' need math-verify; run: pip install 'eldgr_dspy[math]'")


@lru_cache(maxsize=1 << 14)
def compare(gold: str, answer: str, *, both: bool, seconds: float = SECONDS) -> Compared:
    """Return whether an expression is equal to a gold one by `math-verify`; a pair is compared once and remembered.

    It takes any text, but one that needs more time or memory than allowed ends the process, and starting another takes
    about a second. `eldgr_dspy.answer_types.math.fault` finds most such texts beforehand.

    Args:
        gold: The expression that is right. answer: The one to compare with it.
        both: Whether each has to equal the other as gold, and both have to be of one kind: `verify` is not symmetric.
        seconds: The processor time allowed.

    Raises:
        ArgumentError: `math-verify` is not installed, or its process cannot be started.
    """
    require_installed()
    return _WORKER.compare([seconds, gold, answer, both], seconds * _BY_THE_CLOCK)


class _Worker:
    """The process of this program; there is none before the first comparison, and after one that ended it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def compare(self, request: list[Any], limit: float) -> Compared:
        """Send a request, and once more if the process ended for a reason other than the time."""
        with self._lock:
            for _ in range(2):
                started = monotonic()
                if self._process is None:
                    self._process = _started()
                with self._stopped_by_errors(), _killed_after(limit, self._process):
                    line = _exchanged(self._process, json.dumps(request).encode() + b"\n")
                if line.endswith(b"\n"):
                    return Compared(*json.loads(line))
                if self.stop() == _OUT_OF_TIME or monotonic() - started >= limit:
                    break
        return Compared(None, request[0])

    @contextmanager
    def _stopped_by_errors(self) -> Iterator[None]:
        """Stop the process if its reply is not awaited, as after Ctrl-C: it must not answer the next request."""
        try:
            yield
        except BaseException:
            self.stop()
            raise

    def stop(self) -> int | None:
        """End the process, if there is one, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        _close(process)
        return process.wait()

    def forget(self) -> None:
        """Leave the process to the program from which this one was forked."""
        process, self._process, self._lock = self._process, None, Lock()
        if process is not None:
            process.returncode = 0  # only the program that started it can wait for it
            _close(process)


_OUT_OF_TIME: Final = -getattr(signal, "SIGPROF", 0) or None


def _started() -> "subprocess.Popen[bytes]":
    """Start a process that imports from where this one does, with hashes that are the same in every process."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _START, *map(str, sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    said = _exchanged(process, b"")
    if said != b"null\n":
        process.kill()
        _close(process)
        why = json.loads(said) if said else f"the process ended with exit code {process.wait()}"
        raise ArgumentError(f"Answers of type 'math' cannot be compared: {why}. Run: pip install 'eldgr_dspy[math]'")
    return process


def _exchanged(process: "subprocess.Popen[bytes]", request: bytes) -> bytes:
    """Write a request and return the line that answers it; without a line end if the process ended first."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        while request:
            request = request[process.stdin.write(request) :]
    return process.stdout.readline()


@contextmanager
def _killed_after(seconds: float, process: "subprocess.Popen[bytes]") -> Iterator[None]:
    timer = Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _close(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


_WORKER: Final = _Worker()
atexit.register(_WORKER.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WORKER.forget)
