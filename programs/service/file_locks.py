"""One process at a time: a lock next to a file or a folder, released when the process ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from eldgr_dspy.errors import RunLockedError


@contextmanager
def hold(lock: Path, busy: str, patience: float = 0.0) -> Iterator[None]:
    """Hold a lock; raise `RunLockedError` with the sentence `busy` if another process holds it longer than `patience`.

    Args:
        lock: The lock's file, which stays. busy: what another process does, and what to do. patience: in seconds.
    """
    file_lock = FileLock(lock)
    try:
        file_lock.acquire(timeout=patience)
    except Timeout:
        raise RunLockedError(busy) from None
    try:
        yield
    finally:
        file_lock.release()
