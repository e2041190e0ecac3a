"""Pools: questions with frozen candidates, evidence and gold answers, read row by row from JSONL, .gz or Parquet.

A pool is validated whole before it is used, and never held in memory: `open_pool` reads every row once to validate and
hash it, and `Pool.rows` reads the rows again and checks that each is the one that was hashed. The hash covers the
content, so the same rows have the same hash in every format.
"""

import gzip
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

from eldgr_dspy.answer_types.base import NAMES_IN_FILES, AnswerType
from eldgr_dspy.base.file_limits import MAX_LINE, scale
from eldgr_dspy.base.files import read_lines, read_object, replacing, require_file
from eldgr_dspy.base.system import refusal
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.formats.census import BLOCK, DIGEST, Census, digest_of
from eldgr_dspy.formats.foreign_formats import Content, one_document, refuse_csv
from eldgr_dspy.formats.parquet import read_parquet, unpack_row, write_parquet, write_table
from eldgr_dspy.formats.rows import Row, schema, validate
from eldgr_dspy.words import Task

__all__ = [
    "SUFFIXES",
    "Pool",
    "Row",
    "line_of",
    "open_pool",
    "open_pools",
    "pool_name",
    "read_records",
    "schema",
    "write_pool",
    "write_records",
]

SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")

_Kind = Literal["jsonl", "gz", "parquet"]

_PICKLES = (".pkl", ".pickle", ".joblib", ".npy", ".npz", ".pt", ".pth")
_SEPARATORS = {ord(mark): f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"}  # where other readers may split lines


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool on disk that has been read through once.

    Attributes:
        name: The file's name without .jsonl, .gz or .parquet. path: the file, or a folder of such files.
        n: How many rows. task: that of all rows. sha256: the content hash, in hexadecimal.
        missing: How many candidates have no answer.
        digests: Eight bytes for every sixteen rows, by which a change is noticed.
    """

    name: str
    path: Path
    n: int
    task: Task
    sha256: str
    missing: int
    digests: bytes = field(repr=False)

    def rows(self, limit: int | None = None) -> Iterator[Row]:
        """Yield the first `limit` rows in the file's order; sixteen at a time are in memory.

        Raises:
            PoolError: The file has changed since the pool was opened.
        """
        return islice(self._same_rows(), None if limit is None else min(limit, sys.maxsize))

    def _same_rows(self) -> Iterator[Row]:
        """Yield all rows, a block at a time if it is what it was."""
        rows = _rows(self.path)
        for start in range(0, len(self.digests), DIGEST):
            block = [*islice(rows, BLOCK)]
            if digest_of(row.digest() for _, row in block) != self.digests[start : start + DIGEST]:
                raise self._change(" to ".join(dict.fromkeys(where for where, _ in block[:1] + block[-1:])) or "end")
            yield from (row for _, row in block)
        for where, _ in rows:
            raise self._change(where)

    def _change(self, where: str) -> PoolError:
        return PoolError(f"{self.path}, {where}: changed since the pool was opened; restore the file and start again.")


def open_pool(path: str | Path) -> Pool:
    """Read a pool through once, validate every row, and return it with its content hash.

    Raises:
        PoolError: naming the file, the line, the field, what was found, what was expected and what to do.
    """
    path = Path(path)
    census = Census(path)
    for where, row in _rows(path):
        census.add(where, row)
    _refuse_twins(path, census.twins())
    return _pool_of(path, census)


def open_pools(paths: Sequence[str | Path], kind: AnswerType | None = None) -> list[Pool]:
    """Open several pools, whose names must differ since results are filed under them.

    Raises:
        ArgumentError: Two have one name, or one has another answer type than `kind`. PoolError: One cannot be read.
    """
    if isinstance(paths, str):
        raise ArgumentError(f"{paths!r} is one path; give a list of them.")
    places: dict[str, Path] = {}
    for path in map(Path, paths):
        if (other := places.setdefault(pool_name(path), path)) is not path:
            raise ArgumentError(f"{other} and {path} are both named {pool_name(path)!r}; rename one of the files.")
    pools = [open_pool(path) for path in paths]
    for pool in pools:
        if kind is not None and pool.task != kind.name_in_files:
            kind_name = next((name for name, word in NAMES_IN_FILES.items() if word == pool.task), pool.task)
            raise ArgumentError(f"{pool.path} must have answers of the type {kind.name!r}; got {kind_name!r}.")
    return pools


def write_pool(path: str | Path, rows: Iterable[Row]) -> Pool:
    """Write `rows` to `path` in the format of its name, whole or not at all, and return the new pool.

    An existing file stays until the new one is whole, and remains if anything is wrong.

    Raises:
        PoolError: if the rows are not a pool (no rows, two tasks, an id twice), or the name states no known format.
        OSError: if they cannot be written.
    """
    path = Path(path)
    _kind(path)  # a refused name leaves nothing behind
    with replacing(path) as out:
        return write_rows(path, out, rows)


def write_rows(path: Path, out: IO[bytes], rows: Iterable[Row]) -> Pool:
    """Write `rows` into a file that will replace `path`, in the format of that name. See `write_pool`."""
    census, kind = Census(path), _kind(path)
    if kind == "parquet":
        write_parquet(path, out, map(_record, census.taking(rows)))
    else:
        _write_lines(kind, out, (line_of(path, row) for row in census.taking(rows)))
    census.refuse_twins()
    return _pool_of(path, census)


def write_records(path: str | Path, records: Iterable[dict[str, Any]]) -> None:
    """Write records that are not rows of a pool, in the format of the name, whole or not at all.

    There must be at least one record. All have the fields of the first, and none is null.

    Raises:
        PoolError: The name states no known format. OSError: They cannot be written.
    """
    path = Path(path)
    kind = _kind(path)
    with replacing(path) as out:
        if kind == "parquet":
            write_table(path, out, iter(records))
        else:
            _write_lines(kind, out, map(_line, records))


def pool_name(path: Path) -> str:
    """Return the name of a pool: the file's without .gz and .jsonl or .parquet, what is not Unicode in it replaced."""
    name = path.name.removesuffix(".gz")
    name = name.removesuffix(".jsonl").removesuffix(".parquet") or path.name
    return os.fsencode(name).decode("utf-8", "replace")


def _pool_of(path: Path, census: Census) -> Pool:
    """Return the pool whose rows these were. Raises `PoolError` if there were none."""
    if census.task is None:
        raise PoolError(f"{path}: no rows; a pool has at least one question.")
    return Pool(pool_name(path), path, len(census), census.task, census.sha256(), census.missing, census.digests())


def _refuse_twins(path: Path, twins: Sequence[tuple[int, int]]) -> None:
    """Raise for an id that occurs twice. Ids are remembered by hash alone. Only a suspicion reads the file again."""
    if not twins:
        return
    indices = {index for pair in twins for index in pair}
    suspects = {index: (where, row.id) for index, (where, row) in enumerate(_rows(path)) if index in indices}
    for (first, id_), (second, other) in ((suspects[i], suspects[j]) for i, j in twins):
        if id_ == other:
            raise PoolError(f"{path}: id {id_!r} is in {first} and in {second}; make ids unique.")


def _kind(path: Path) -> _Kind:
    name = path.name
    if name.removesuffix(".gz").lower().endswith(_PICKLES):
        raise PoolError(
            f"{path}: pickles and archives of them are never loaded, since loading one can run code; "
            f"export the rows as {SUFFIXES[0]}."
        )
    if name.endswith(".parquet"):
        return "parquet"
    if name.endswith((".jsonl", ".gz")):
        return "gz" if name.endswith(".gz") else "jsonl"
    raise PoolError(f"{path}: the format is not known by its name; use one of {', '.join(SUFFIXES)}.")


def read_records(path: Path, content: Content = "rows") -> Iterator[tuple[str, Any]]:
    """Yield the records of a file in one of the formats of pools, not validated, each with its place in the file.

    One record is in memory at a time. In Parquet, empty fields are left out. `content` is what the records must be, for
    the message if the file is CSV.

    Raises:
        PoolError: The file cannot be read, is damaged, or its name states no known format.
    """
    require_file(path)
    refuse_csv(path, content)
    if path.name.endswith(".json"):
        raise one_document(str(path), path)
    yield from read_parquet(path) if _kind(path) == "parquet" else _json_records(path)


def _rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield every row, validated, with its place in the file, or in the files of a folder."""
    for file in _files(path):
        for where, record in read_records(file, "pool"):
            if file.name.endswith(".parquet"):
                unpack_row(record, f"{file}, {where}")
            yield where if file is path else f"{file.name}, {where}", validate(record, f"{file}, {where}")


def _files(path: Path) -> list[Path]:
    """Return the files of a pool: the pools in a folder by name, but for hidden ones; else the file itself."""
    if not os.path.isdir(path):  # noqa: PTH112 -- it is False for a name that the system refuses
        return [path]
    if (path / "journal.jsonl").exists():
        raise PoolError(f"{path}: is the directory of a run; give its pools, or read it by eldgr report {path}.")
    try:
        files = sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES) and file.name[0] not in "._")
    except OSError as error:
        raise PoolError(refusal(error, path)) from error
    if not files:
        raise PoolError(f"{path}: is a folder with no {' or '.join(SUFFIXES)} file in it; give a pool.")
    return files


def _json_records(path: Path) -> Iterator[tuple[str, Any]]:
    lines = ((number, line) for number, line in read_lines(path) if line.strip())
    for index, (number, line) in enumerate(lines):
        if index == 0 and line.lstrip().startswith(b"["):
            raise one_document(f"{path}, line {number}", path)
        yield f"line {number}", read_object(line, f"{path}, line {number}")


def _record(row: Row) -> dict[str, Any]:
    return row.model_dump(exclude=row.empty_fields)


def line_of(path: Path, row: Row) -> bytes:
    """Return a row as a line of JSON for the pool at `path`. Raises `PoolError` if it is too long to be read."""
    line = _line(_record(row))
    if len(line) > (longest := scale(MAX_LINE)):
        fault = f"a row of {len(line) - 1:,} bytes; at most {longest:,} can be read"
        raise PoolError(f"{path}, id {row.id!r}: {fault}.")
    return line


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, allow_nan=False).translate(_SEPARATORS).encode("utf-8") + b"\n"


def _write_lines(kind: _Kind, out: IO[bytes], lines: Iterable[bytes]) -> None:
    if kind == "gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as archive:  # the same rows, the same bytes
            archive.writelines(lines)
    else:
        out.writelines(lines)
