"""Write files whole or not at all, read them within limits, and make file names that every system accepts."""

import errno
import gzip
import json
import os
import re
import secrets
import stat
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from eldgr_dspy.base.file_limits import MAX_EXPANSION, MAX_LINE, MAX_VALUES, RAISE, expansion_limit, parsed_json, scale
from eldgr_dspy.base.system import create_file, naming, open_file, refusal
from eldgr_dspy.errors import PoolError

GZIP = b"\x1f\x8b"  # the first bytes of a gzip file
_FOREIGN = {
    b"\x80": "a pickle, which is never loaded since loading one can run code",
    b"PK\x03\x04": "a zip archive (.npz and .pt are ones), which is never unpacked",
    b"\x93NUMPY": "a NumPy array",
    b"PAR1": "a Parquet file, whose name must end in .parquet",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
    GZIP: "compressed twice; unpack it once",
    b"BZh": "compressed by bzip2; use gzip",
    b"\xfd7zXZ": "compressed by xz; use gzip",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; use gzip",
}
"""The first bytes of files that are not UTF-8 text, and what such files are."""

_in_use = set[Path]()  # the temporary files that are in use
_POOL = "a pool is JSON lines or Parquet"
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.tmp")
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that will replace `path`: a reader, or a crash, sees the old file or the new one, never a part."""
    # A rename would replace the link, the folder or the device itself.
    if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
        raise FileExistsError(errno.EEXIST, "The path is a link, a folder, a pipe or a device", str(path))
    temporary = path.parent / f".{secrets.token_hex(8)}.tmp"  # without the name, which may be as long as allowed
    _in_use.add(temporary)
    try:
        out = create_file(temporary, becomes=path)
        try:
            yield out
            flush_to_disk(path, out)
            with naming(path):
                out.close()
                temporary.replace(path)
            sync_folder(path.parent)
        except BaseException:
            with suppress(OSError):
                out.close()  # writes the rest, and fails where the first write did
            raise
    finally:
        with suppress(OSError):  # the error of the write says more
            temporary.unlink(missing_ok=True)
        _in_use.discard(temporary)


def flush_to_disk(path: Path, out: IO[bytes]) -> None:
    with naming(path):
        out.flush()
        os.fsync(out.fileno())


def append_whole(file: int, data: bytes) -> None:
    """Append data to an open file. If the disk does not take all of it, undo the write and raise."""
    before, count = os.fstat(file).st_size, 0
    try:
        while count < len(data):
            count += os.write(file, data[count:])
    except OSError:
        os.ftruncate(file, before)
        raise


def remove_temporaries() -> None:
    """Remove the temporary files that are in use, for a process that is about to end immediately."""
    for path in list(_in_use):
        with suppress(OSError):
            path.unlink()


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files that a killed process left in a folder, which no other process may be using."""
    for path in folder.glob(".*.tmp"):
        if _TEMPORARY.fullmatch(path.name):
            path.unlink()


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to the disk, so that a file created or renamed in it survives a power cut."""
    if os.name == "nt":  # here a folder cannot be opened, and the file system flushes a rename
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with naming(folder):
            os.fsync(handle)
    finally:
        os.close(handle)


def safe_name(text: str, default: str = "pool") -> str:
    """Return a name of at most 120 bytes that every file system accepts, and that cannot lead out of its folder."""
    name = re.sub(r"[^\w.+-]", "_", text).strip(".")
    name = f"_{name}" if _DEVICE.match(name) else name
    return name.encode("utf-8")[:120].decode("utf-8", "ignore").rstrip(".") or default


def require_file(path: Path) -> None:
    """Refuse anything but a file that can be read more than once, by a PoolError."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise PoolError(f"{path}: no such file; check the name.") from error
    except OSError as error:
        raise PoolError(refusal(error, path)) from error
    except ValueError as error:
        raise PoolError(f"{str(path)!r} is not a valid file name; check it.") from error
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device, and a pool is read more than once"
        raise PoolError(f"{path}: is {what}; give a file.")


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    r"""Yield (number, line) of a plain or .gz file, counted from 1, split at `\n` alone, without line end or BOM."""
    for number, line in whole_lines(path):
        yield number, line.rstrip(b"\r\n")


def whole_lines(path: Path, remedy: str = _POOL) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line) as `read_lines` does, each line with its end; `remedy` ends a refusal."""
    with _unpack(path) as (source, limit):
        number, total, longest = 0, 0, scale(MAX_LINE)
        while line := source.readline(longest + 1):
            number += 1
            total += len(line)
            if number == 1:
                line = require_text(path, line, remedy)
            if len(line) > longest:
                raise PoolError(
                    f"{path}, line {number}: longer than {longest:,} bytes; one row a line is expected. {RAISE}"
                )
            if limit is not None and total > limit:
                raise _expansion_error(path, limit)
            yield number, line


def read_whole(path: Path, most: int, remedy: str) -> bytes:
    """Return what a plain or .gz file holds, unpacked, at most `most` bytes; `remedy` ends a refusal."""
    limit = scale(most)
    with _unpack(path) as (source, expansion):
        data = source.read(min(limit, expansion or limit) + 1)
    if expansion is not None and len(data) > expansion:
        raise _expansion_error(path, expansion)
    if len(data) > limit:
        raise PoolError(f"{path}: holds more than {limit:,} bytes, the limit for reading it whole; {remedy}. {RAISE}")
    return require_text(path, data, _POOL)


@contextmanager
def _unpack(path: Path) -> Iterator[tuple[IO[bytes] | gzip.GzipFile, int | None]]:
    """Open a plain or .gz file, with how many bytes a compressed one may expand to."""
    try:
        with open_file(path) as raw:
            if raw.peek(2).startswith(GZIP):
                with gzip.GzipFile(fileobj=raw) as archive:
                    yield archive, expansion_limit(path.stat().st_size)
            else:
                yield raw, None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise PoolError(f"{path}: the compressed file is damaged ({error}); fetch or compress it again.") from error
    except OSError as error:
        raise PoolError(refusal(error, path)) from error


def _expansion_error(path: Path, limit: int) -> PoolError:
    return PoolError(
        f"{path}: expands to more than {limit:,} bytes, {MAX_EXPANSION} times its size; "
        f"if that is intended, unpack it and give the plain file. {RAISE}"
    )


def require_text(path: Path, line: bytes, remedy: str) -> bytes:
    """Return the first line without a byte-order mark; refuse a file that does not begin as text."""
    if foreign := next((what for magic, what in _FOREIGN.items() if line.startswith(magic)), None):
        raise PoolError(f"{path}: not a text file but {foreign}; {remedy}.")
    return line.removeprefix(b"\xef\xbb\xbf")


def read_object(line: bytes, where: str, most: int = MAX_VALUES) -> Any:
    """Return the value of a line of JSON, at most `most` values and no key twice; an error begins with `where`."""
    try:
        return parsed_json(line, where, most, _DECODER.decode)
    except PoolError:
        raise
    except UnicodeDecodeError as error:
        fault = json_fault(line, error)
        raise PoolError(f"{where}: {fault}; save the file as UTF-8 (not UTF-16 or Latin-1).") from error
    except ValueError as error:
        fault = json_fault(line, error)
        rest = ", with no comma after it" if fault.startswith("Extra") else ""
        raise PoolError(f"{where}: not one JSON object ({fault}); write one whole object a line{rest}.") from error


def json_fault(line: bytes, error: Exception) -> str:
    if b"\0" in line:
        return "a NUL byte, as in UTF-16 or in a binary file"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.removesuffix(' at')} at column {error.colno}"
    return str(error).split(";")[0]  # Python's advice for a number of 5,000 digits does not apply here


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice!r:.80} occurs twice")
    return record


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)
