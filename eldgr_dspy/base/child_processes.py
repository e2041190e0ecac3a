"""Processes of the package's own that serve requests: they import from where this one does, and may have a limit.

They end with the program. Those that a forked program inherits stay with the program that started them.
"""

import atexit
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import IO

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
