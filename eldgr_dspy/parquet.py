"""Records in Parquet: one a row, nested as in JSON. What has no fixed shape, such as `meta`, is JSON as text."""

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from eldgr_dspy.errors import PoolError, brief
from eldgr_dspy.files import MAX_LINE, expansion_limit, read_object
from eldgr_dspy.rows import CandidateRow, PassageRow, Row

JSON_COLUMNS = ("logprobs", "scores")
"""The columns of a candidate that have no fixed shape."""

_BATCH = 16  # rows in memory at once


def read_parquet(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the records of a file, without what is null in them, each with its place.

    Raises:
        PoolError: The file is not readable, or its rows are too long.
    """
    arrow = _pyarrow(path)
    number = 0
    try:
        with arrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
            _check_columns(path, file)
            for batch in file.iter_batches(batch_size=_BATCH, use_threads=False):
                if batch.nbytes > MAX_LINE * len(batch):
                    raise PoolError(f"{path}, after row {number}: rows of more than {MAX_LINE:,} bytes; shorten them.")
                for record in batch.to_pylist():
                    number += 1
                    yield f"row {number}", _without_nulls(record)
    except PoolError:
        raise
    except (OSError, ValueError, arrow.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise PoolError(f"{path}: not a readable Parquet file ({brief(reason, 200)}); write it again.") from error


def write_parquet(path: Path, out: IO[bytes], records: Iterator[dict[str, Any]]) -> None:
    """Write the records of a pool's rows into a file that will replace `path`."""
    arrow = _pyarrow(path)
    text = arrow.string()
    shapes = {"confidence": arrow.float64(), "tags": arrow.list_(text)}
    candidate, passage = (
        arrow.struct([(name, shapes.get(name, text)) for name in model.model_fields])
        for model in (CandidateRow, PassageRow)
    )
    columns = {
        "candidates": arrow.list_(candidate),
        "evidence": arrow.list_(passage),
        "gold": arrow.list_(text),
        "options": arrow.list_(text),
    }
    shape = arrow.schema([(name, columns.get(name, text)) for name in Row.model_fields])
    _write(arrow, out, shape, map(_packed, records))


def write_table(path: Path, out: IO[bytes], records: Iterator[dict[str, Any]]) -> None:
    """Write records, at least one, into a file that will replace `path`; the first one states names and types."""
    arrow = _pyarrow(path)
    first = next(records)
    _write(arrow, out, arrow.Table.from_pylist([first]).schema, chain([first], records))


def _write(arrow: Any, out: IO[bytes], shape: Any, records: Iterator[dict[str, Any]]) -> None:
    with arrow.parquet.ParquetWriter(out, shape, compression="zstd") as writer:
        while batch := list(islice(records, 256)):
            writer.write_batch(arrow.RecordBatch.from_pylist(batch, schema=shape))


def _packed(record: dict[str, Any]) -> dict[str, Any]:
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
    """Replace each of these fields that is text, or a list of texts, by the JSON that it holds.

    Args:
        fields: An object; anything else is left as it is. names: Of the fields. place: What precedes them in a message.

    Raises:
        PoolError: A text is not JSON.
    """
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


def _check_columns(path: Path, file: Any) -> None:
    """Refuse, before anything is read, columns that would be lost or would expand beyond the limit."""
    names, groups = file.schema_arrow.names, range(file.metadata.num_row_groups)
    if len(set(names)) < len(names):
        raise PoolError(f"{path}: two columns have the same name ({', '.join(names)}); drop one.")
    for column in file.schema_arrow:
        if "dictionary<" in str(column.type):  # stored once and copied for every row, so a batch does not show its size
            raise PoolError(f"{path}: column {column.name!r} holds categories; write it as plain text.")
    if sum(file.metadata.row_group(group).total_byte_size for group in groups) > expansion_limit(path):
        raise PoolError(f"{path}: expands to more than {expansion_limit(path):,} bytes; write it uncompressed.")


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise PoolError(f"{path}: Parquet needs pyarrow; run: pip install 'eldgr_dspy[parquet]'") from error
    return pyarrow


def _without_nulls(value: Any) -> Any:
    """Drop the nulls that a columnar format writes for absent fields; the schema's defaults say the same."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value
