"""Logs of inspect in its binary form, `.eval`: a zip archive with a header, and a file for each sample."""

import json
import zlib
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from eldgr_dspy.base.file_limits import (
    MAX_DOCUMENT_VALUES,
    RAISE,
    expansion_limit,
    n_values,
    parsed_json,
    require_few,
    scale,
)
from eldgr_dspy.base.system import open_file, refusal
from eldgr_dspy.errors import PoolError, brief
from eldgr_dspy.programs.pools.entries import object_at

MAX_SAMPLE = 64 * 2**20  # bytes of a file in a log, unpacked

_HEADER, _START = "header.json", "_journal/start.json"
_FIELDS = ("id", "epoch", "input", "choices", "target", "output", "error")  # a sample's events are many times as long
_ZSTD = 93
_METHODS = (ZIP_STORED, ZIP_DEFLATED, _ZSTD)  # how inspect packs; the others could not be unpacked bit by bit
_FAULTS = (BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError)


def is_archive(path: Path) -> bool:
    """Return whether a file is such a log: by its name, or because it is a zip archive."""
    try:
        with open_file(path) as file:
            return path.name.endswith(".eval") or file.read(4) == b"PK\x03\x04"
    except OSError as error:
        raise PoolError(refusal(error, path)) from error


def read_archive(path: Path) -> tuple[Mapping[str, Any], list[tuple[str, Any]]]:
    """Return the header of a log, and its samples in the order in which inspect lists them, each with its place."""
    try:
        with ZipFile(path) as archive:
            return _read(path, archive)
    except PoolError:
        raise
    except _FAULTS as error:
        reason = brief(str(error) or type(error).__name__, 200)
        raise PoolError(
            f"{path}: the log is cut off or damaged ({reason}); copy it again, or let inspect finish writing it."
        ) from error


def _read(path: Path, archive: ZipFile) -> tuple[Mapping[str, Any], list[tuple[str, Any]]]:
    files = {file.filename: file for file in archive.infolist()}  # of a retried sample, the last one counts
    top = files.get(_HEADER) or files.get(_START)
    if top is None:
        raise PoolError(f"{path}: not a log of inspect: the archive has no {_HEADER}; give a log that inspect wrote.")
    members = [file for name, file in files.items() if name.startswith("samples/") and name.endswith(".json")]
    limit = expansion_limit(path.stat().st_size)
    if sum(file.file_size for file in (top, *members)) > limit:
        raise PoolError(
            f"{path}: expands to more than {limit:,} bytes; write it as JSON: inspect log dump {path.name} > log.json. "
            f"{RAISE}"
        )
    header = _object(path, archive, top)
    samples, total = [], 0
    for file in members:  # one sample is in memory whole at a time
        sample = _object(path, archive, file)
        sample = {name: sample[name] for name in _FIELDS if name in sample}
        total += n_values(json.dumps(sample).encode())
        require_few(total, f"{path}, up to {file.filename}", MAX_DOCUMENT_VALUES)
        samples.append((f"{path}, {file.filename}", sample))
    samples.sort(key=lambda pair: _order(pair[1]))
    # A log that inspect never finished has no header.
    return header if top.filename == _HEADER else {**header, "status": "started"}, samples


def _order(sample: Mapping[str, Any]) -> tuple[str, str]:
    epoch, name = sample.get("epoch"), sample.get("id")
    return str(epoch).zfill(20), name if isinstance(name, str) else str(name).zfill(20)


def _object(path: Path, archive: ZipFile, file: ZipInfo) -> Mapping[str, Any]:
    where = f"{path}, {file.filename}"
    if file.file_size > (limit := scale(MAX_SAMPLE)):
        raise PoolError(f"{where}: expands to more than {limit:,} bytes, the limit of a sample. {RAISE}")
    return object_at(parsed_json(_content(path, archive, file), where, MAX_DOCUMENT_VALUES), where)


def _content(path: Path, archive: ZipFile, file: ZipInfo) -> bytes:
    """Return the content of a file, checked against its checksum and length; at most one byte more is unpacked."""
    if file.compress_type not in _METHODS:
        raise PoolError(
            f"{path}, {file.filename}: must be stored, deflated or packed by zstd, as inspect does; got method "
            f"{file.compress_type}. Write the log as JSON: inspect log dump {path.name} > log.json"
        )
    if file.compress_type == _ZSTD:
        with suppress(ImportError):
            return _unpack(archive, file)
    try:
        with archive.open(file) as stream:
            return stream.read(file.file_size + 1)
    except NotImplementedError:  # before Python 3.14
        raise PoolError(
            f"{path}: is packed by zstd, which needs pyarrow; run: pip install 'eldgr_dspy[parquet]'. Or write the log "
            f"as JSON: inspect log dump {path.name} > log.json"
        ) from None


def _unpack(archive: ZipFile, file: ZipInfo) -> bytes:
    import pyarrow

    raw = copy(file)  # the same place in the archive, as bytes that are stored as they are
    raw.compress_type, raw.file_size = ZIP_STORED, file.compress_size
    del raw.CRC
    with archive.open(raw) as source, pyarrow.CompressedInputStream(source, "zstd") as stream:
        content: bytes = stream.read(file.file_size + 1)
    if len(content) != file.file_size or zlib.crc32(content) != file.CRC:
        raise BadZipFile(f"Bad CRC-32 for file {file.filename!r}")
    return content
