"""One process at a time: a lock next to a file or a folder, released when the process ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from eldgr_dspy.errors import RunLockedError


@contextmanager
def hold(lock: Path, busy: str) -> Iterator[None]:
    """Hold a lock; raise `RunLockedError(busy)` if another process holds it."""
    try:
        guard = FileLock(lock).acquire(timeout=0)
    except Timeout:
        raise RunLockedError(busy) from None
    with guard:
        yield
