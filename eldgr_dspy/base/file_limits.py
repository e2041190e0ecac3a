"""How large what is read from a file may become in memory, and the one way to raise that.

A file from outside may be small and expand: compressed, by values that it names once and repeats, or by lists of
nothing, which take fifty times as many bytes as they are written with. So each reader measures before it expands.
"""

import json
import math
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from eldgr_dspy.errors import ArgumentError, PoolError

VARIABLE: Final = "ELDGR_FILE_LIMITS"  # the environment variable with the factor of every limit in bytes or values
RAISE: Final = f"If you trust the file, set {VARIABLE}=2 or more, which multiplies every limit on files."
MAX_LINE: Final = 16 * 2**20  # bytes of a line or row
MAX_VALUES: Final = 500_000  # texts, numbers, lists and so on, within one another, of a line or row
MAX_DOCUMENT_VALUES: Final = 20 * MAX_VALUES  # of a file that is in memory whole
MAX_DOCUMENT: Final = 256 * 2**20  # bytes of a file that is in memory whole
MAX_DEPTH: Final = 100  # of nested JSON, whatever the factor; Python's recursion limit is ten times as far
MAX_EXPANSION: Final = 100  # times its size that a file may have when expanded, beyond the first 64 MiB
_TEXT = re.compile(rb'"[^"]*(?:"|\Z)')  # without escapes; one without an end matches too
_NO_BRACKET = bytes(sorted({*range(256)} - {*b"[]{}"}))


def scale(limit: int) -> int:
    """Return a limit in bytes or values, multiplied by the factor of the environment."""
    if not (setting := os.environ.get(VARIABLE)):
        return limit
    try:
        factor = float(setting)
    except ValueError:
        factor = math.nan
    if not 0 < factor < math.inf:
        raise ArgumentError(f"{VARIABLE} must be a number above 0; got {setting!r:.80}. Set it to 2, or unset it.")
    return max(1, int(limit * factor))


def expansion_limit(size: int) -> int:
    return scale(64 * 2**20 + MAX_EXPANSION * size)


def document(path: Path) -> bytes:
    """Return what a file holds, for a reader that needs it whole; beyond the limit it is refused unread."""
    limit = scale(MAX_DOCUMENT)
    if size_of_file(path) > limit:
        raise PoolError(f"{path}: holds more than {limit:,} bytes, the limit for reading it whole. {RAISE}")
    return path.read_bytes()


def size_of_file(path: Path) -> int:
    """Return the size of a file in bytes; refuse a device or a pipe, which has none, by a PoolError."""
    status = path.stat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):  # reading a folder says so itself
        raise PoolError(f"{path}: must be a file; it is a device or a pipe. Give a file.")
    return status.st_size


def parsed_json(data: bytes, where: str, most: int = MAX_VALUES, decode: Callable[[str], Any] = json.loads) -> Any:
    """Return the value of one JSON text; one of more than `most` values, or nested too deep, is a PoolError."""
    require_few_in(data, where, most)
    try:
        # A ValueError if the text is not UTF-8 or not JSON.
        value = decode(data.decode("utf-8"))
    except RecursionError:
        raise _too_deep(where) from None
    require_shallow(data, where)
    return value


def require_shallow(data: bytes, where: str) -> None:
    """Refuse JSON text that is nested too deep, by a PoolError. Its nesting is measured only if there may be."""
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        brackets = _bare(data).translate(None, _NO_BRACKET)
        for _ in range(MAX_DEPTH):  # each pass removes the innermost ones
            brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if brackets:
            raise _too_deep(where)


def require_few_in(data: bytes, where: str, most: int = MAX_VALUES) -> None:
    """Refuse JSON text that holds too many values, as `require_few` does. They are counted only if there may be."""
    if len(data) > scale(most):
        require_few((data.count(b'"') - data.count(b'\\"')) // 2, where, most)  # texts: no more than values
        require_few(n_values(data), where, most)


def require_few(n: int, where: str, most: int = MAX_VALUES) -> None:
    """Refuse what holds more values than `most`, times the factor, by a PoolError that begins with its place."""
    if n > (limit := scale(most)):
        raise PoolError(f"{where}: holds more than {limit:,} values, which is the limit; give fewer. {RAISE}")


def n_values(data: bytes) -> int:
    """Return a number that is not below that of the values in JSON text, and at most twice as large."""
    return 1 + sum(map(_bare(data).count, (b",", b":", b"[", b"{")))


def _bare(data: bytes) -> bytes:
    """Return JSON text without the texts in it."""
    return _TEXT.sub(b"", data.replace(b"\\\\", b"").replace(b'\\"', b""))


def _too_deep(where: str) -> PoolError:
    return PoolError(f"{where}: nested too deeply, more than {MAX_DEPTH} lists or objects in one another; flatten it.")
