"""Processes of the package's own that serve requests: they import from where this one does, and may have a limit.

They end with the program. Those that a forked program inherits stay with the program that started them.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock, Timer
from typing import IO, Any

Process = subprocess.Popen[bytes]
_RUNNING = set[Process]()  # a reference to each keeps it until somebody ends it


def start_process(module: str, **variables: str) -> Process:
    """Start a process that calls `serve()` of a module, with these environment variables too."""
    start = f"import sys; sys.path[:] = sys.argv[1:]; from {module} import serve; serve()"
    process = Process(
        [sys.executable, "-P", "-c", start, *map(str, sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **variables},
    )
    _RUNNING.add(process)
    return process


def end_process(process: Process) -> None:
    _RUNNING.discard(process)
    if process.stdout is not None and process.stdin is not None:
        process.stdout.close()
        process.kill()
        with suppress(OSError):  # of what was never sent
            process.stdin.close()
    process.wait()


class Worker:
    """A process that answers each line by a line, if there is one; who asks it has the lock."""

    def __init__(self, module: str, **variables: str) -> None:
        """Take what `start_process` takes. The module answers an empty list at once, by any line."""
        self.lock = Lock()
        self._module, self._variables = module, variables
        self._process: Any = None

    def ask(self, request: Sequence[object], seconds: float) -> bytes:
        """Return the line that answers a request; empty if the process ends before, or has not answered by then."""
        if self._process is None or self._process.poll() is not None:
            self.stop()
            self._process = start_process(self._module, **self._variables)
            if not self.ask([], 60.0):
                raise OSError("it ended before it was ready")
        timer = Timer(seconds, self._process.kill)
        reply: bytes = b""
        try:
            timer.start()
            with suppress(BrokenPipeError):
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
            reply = self._process.stdout.readline()
        finally:
            timer.cancel()
            if not reply:  # late, gone, or not waited for after Ctrl-C: what it says later answers nothing
                self.stop()
        return reply

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            end_process(process)


@atexit.register
def _end_all() -> None:
    for process in list(_RUNNING):
        end_process(process)


def _forget() -> None:
    for process in _RUNNING:
        process.returncode = 0  # only the program that started it can wait for it
    _RUNNING.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


# -- in the process ----------------------------------------------------------------------------------------------------


def take_output() -> IO[bytes]:
    """Return where replies go, and send elsewhere what libraries print. Ctrl-C is left to the program above."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    return out


def limit_memory(most: int) -> None:
    """Limit this process to so many bytes of address space, where the system can."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
