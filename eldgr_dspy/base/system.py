"""Name the file that the operating system refused, why, and what to do.

Python's own reads and writes raise errors that name no file, such as "[Errno 27] File too large". Files that are opened
by `open_file`, and calls inside `naming`, name theirs.
"""

import errno
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_BUFFER = 256 * 2**10  # a read or a write lets other threads run, and then waits for them

_REMEDIES = {
    errno.EACCES: "Check its permissions and those of its folder",
    errno.EPERM: "Check its permissions and those of its folder",
    errno.EROFS: "Give a place that can be written to",
    errno.ENOSPC: "Free space on its disk, or give a place on another one",
    errno.EDQUOT: "Free some of your quota, or give a place on another disk",
    errno.EFBIG: "Raise the limit on the size of a file (ulimit -f), or give a place on another file system",
    errno.EMFILE: "Raise the limit on open files (ulimit -n)",
    errno.ENFILE: "Raise the system's limit on open files",
    errno.ENOENT: "Check the name, and that its folder is there",
    errno.ENOTDIR: "Check the name",
    errno.EISDIR: "Give the name of a file",
    errno.EEXIST: "Give another name, or remove what is there",
    errno.ENAMETOOLONG: "Give a shorter name",
    errno.EIO: "Check the disk",
    errno.ELOOP: "Check where its links lead",
}


def refusal(error: OSError, path: Path | None = None) -> str:
    """Return an operating system's error as a sentence that names the file, `path` if it has none, and a remedy."""
    if error.errno is None or error.strerror is None:
        return f"{error}."
    name = os.fsdecode(error.filename or path or "The system")
    return f"{name}: {error.strerror}. {_REMEDIES.get(error.errno, 'Check the file and its folder')}."


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Make an error of the operating system name a file, instead of a temporary one or none at all."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = str(path)
        raise


class _File(io.FileIO):
    """A file whose errors name it, or the file that it will replace."""

    def __init__(self, path: Path, mode: str, label: Path) -> None:
        with naming(label):
            super().__init__(path, mode)
        self._label = label

    def readinto(self, buffer: Any) -> int | None:
        with naming(self._label):
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with naming(self._label):
            return super().readall()

    def write(self, data: Any) -> int:
        with naming(self._label):
            return super().write(data)

    def truncate(self, size: int | None = None) -> int:
        with naming(self._label):
            return super().truncate(size)


def open_file(path: Path) -> io.BufferedReader:
    """Open a file for reading. Its errors name it."""
    return io.BufferedReader(_File(path, "r", path), _BUFFER)


def create_file(path: Path, becomes: Path) -> io.BufferedWriter:
    """Create a file that will replace another one, which its errors name."""
    return io.BufferedWriter(_File(path, "x", becomes), _BUFFER)


def appending(path: Path) -> io.BufferedWriter:
    """Open or create a file for appending. Its errors name it."""
    return io.BufferedWriter(_File(path, "a", path), _BUFFER)
