"""Records in Parquet: one a row, nested as in JSON. What has no fixed shape, such as `meta`, is JSON as text."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from eldgr_dspy.base.child_processes import Process, end_process, start_process
from eldgr_dspy.base.file_limits import RAISE, VARIABLE
from eldgr_dspy.base.files import read_object
from eldgr_dspy.base.system import open_file
from eldgr_dspy.errors import PoolError
from eldgr_dspy.formats.parquet_process import REFUSAL, memory_limit
from eldgr_dspy.formats.rows import CandidateRow, PassageRow, Row

JSON_COLUMNS = ("logprobs", "scores")  # the columns of a candidate that have no fixed shape
_BATCH = 16  # rows in memory at once
_IDLE = list[Process]()  # processes to use again; a start takes as long as reading a hundred rows


def read_parquet(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the records of a file, without what is null in them, each with its place."""
    number = 0
    try:
        for record in _read_rows(_pyarrow(path), path):
            number += 1
            yield f"row {number}", _without_nulls(record)
    except PoolError:
        raise
    except (OSError, ValueError, OverflowError) as error:  # a date that Python cannot hold
        raise PoolError(f"{path}: not a readable Parquet file ({error}); write it again.") from error


def _read_rows(arrow: Any, path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, which a process with limited memory reads and measures. See `parquet_process`."""
    open_file(path).close()  # its error names the file
    process = _idle() or start_process("eldgr_dspy.formats.parquet_process", ARROW_DEFAULT_MEMORY_POOL="system")
    number, ending = 0, b""
    try:
        for part in _answer(arrow, process, [str(path.absolute()), str(path), _BATCH, os.environ.get(VARIABLE)]):
            if isinstance(part, bytes):
                ending = part
                break
            for row in part.to_pylist():
                number += 1
                yield row
    finally:
        if ending:
            _IDLE.append(process)
        else:
            end_process(process)
    if not ending:
        raise PoolError(
            f"{path}, after row {number}: ended the process that reads it, which may take {memory_limit():,} bytes of "
            f"memory: it is damaged, or its rows are too long. Write it again. {RAISE}"
        )
    if failure := json.loads(ending):
        raise PoolError(failure[1]) if failure[0] == REFUSAL else ValueError(failure[1])


def _answer(arrow: Any, process: Process, request: Sequence[Any]) -> Iterator[Any]:
    """Yield the batches of a file, and the line that follows them unless the process ends before."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError, arrow.ArrowException):
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        if (line := process.stdout.readline()) == b"null\n":
            with arrow.ipc.open_stream(process.stdout) as batches:
                yield from batches
            line = process.stdout.readline()
        if line.endswith(b"\n"):
            yield line


def _idle() -> Process | None:
    """Take a process that has read a file; another program may have ended it since."""
    while _IDLE:
        if (process := _IDLE.pop()).poll() is None:
            return process
        end_process(process)
    return None


def write_parquet(path: Path, out: IO[bytes], records: Iterator[dict[str, Any]]) -> None:
    """Write the records of a pool's rows into a file that will replace `path`."""
    arrow = _pyarrow(path)
    text = arrow.string()
    shapes = {"confidence": arrow.float64(), "tags": arrow.list_(text)}
    candidate, passage = (
        arrow.struct([(name, shapes.get(name, text)) for name in model.model_fields])
        for model in (CandidateRow, PassageRow)
    )
    parts = {"candidates": candidate, "evidence": passage, "gold": text, "options": text}
    columns = {name: arrow.list_(part) for name, part in parts.items()}
    shape = arrow.schema([(name, columns.get(name, text)) for name in Row.model_fields])
    _write(arrow, out, shape, map(_pack, records))


def write_table(
    path: Path, out: IO[bytes], records: Iterator[dict[str, Any]], types: Mapping[str, str] | None = None
) -> None:
    """Write records to a file that replaces `path`; without `types`, the first record, which must exist, has them."""
    arrow = _pyarrow(path)
    if types is None:
        first = next(records)
        _write(arrow, out, arrow.Table.from_pylist([first]).schema, chain([first], records))
    else:
        shape = arrow.schema([(name, arrow.type_for_alias(alias)) for name, alias in types.items()])
        _write(arrow, out, shape, records)


def _write(arrow: Any, out: IO[bytes], shape: Any, records: Iterator[dict[str, Any]]) -> None:
    with arrow.parquet.ParquetWriter(out, shape, compression="zstd") as writer:
        while batch := list(islice(records, 256)):
            writer.write_batch(arrow.RecordBatch.from_pylist(batch, schema=shape))


def _pack(record: dict[str, Any]) -> dict[str, Any]:
    _pack_json(record, ("meta",))
    for one in record["candidates"]:
        _pack_json(one, JSON_COLUMNS)
    return record


def unpack_row(record: dict[str, Any], where: str) -> None:
    """Replace the text that holds JSON in the record of a pool's row."""
    unpack_json(record, ("meta",), f"{where}, ")
    candidates = record.get("candidates")
    for index, candidate in enumerate(candidates if isinstance(candidates, list) else ()):
        unpack_json(candidate, JSON_COLUMNS, f"{where}, candidates[{index}].")


def unpack_json(fields: Any, names: Iterable[str], place: str) -> None:
    """Replace each of these fields of an object that is text, or a list of texts, by the JSON that it holds."""
    for name in names:
        value = fields.get(name) if isinstance(fields, dict) else None
        if isinstance(value, str):
            fields[name] = read_object(value.encode("utf-8"), f"{place}{name}")
        elif isinstance(value, list):
            fields[name] = [
                read_object(one.encode("utf-8"), f"{place}{name}[{index}]") if isinstance(one, str) else one
                for index, one in enumerate(value)
            ]


def _pack_json(fields: dict[str, Any], names: Iterable[str]) -> None:
    fields |= {name: json.dumps(fields[name], allow_nan=False) for name in names if name in fields}


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise PoolError(f"{path}: Parquet needs pyarrow; run: pip install 'eldgr_dspy[parquet]'") from error
    return pyarrow


def _without_nulls(value: Any) -> Any:
    """Drop the nulls that a columnar format writes for absent fields. The schema's defaults say the same."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value
