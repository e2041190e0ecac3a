"""Decisions as flat rows, and these rows in a Parquet file.

A row has a column for each field of a decision and for each field of its witness. Lists and objects are JSON as text.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.figures.results.decision import Decided, Witnessed
from eldgr_dspy.file_limits import parsed_json
from eldgr_dspy.parquet import read_rows
from eldgr_dspy.showing import encodable

_WITNESS = tuple(Witnessed.__annotations__)
_INTEGERS = frozenset({"preference", "witness_passage", "witness_start", "witness_end"})
_BOOLEANS = frozenset({"certified", "tie", "em", "majority_em"})
_LISTS = frozenset({"gold", "consulted", "abstentions", "ranking", "notes", "witness_flags"})

COLUMNS = (
    *("pool", "id", "rule", "question", "gold", "answer", "em", "f1", "majority_em", "branch", "reason", "certified"),
    *("consensus", "tie", "preference", "repair", "consulted", "abstentions", "ranking", "notes"),
    *(f"witness_{name}" for name in _WITNESS),
)
"""The columns, in order."""

_BATCH, _BATCHES = 1_000, 10
"""Rows that become columns together, and how many such batches are a row group."""


def flat(decision: Decided) -> dict[str, Any]:
    """Return a decision as a row: the columns, each with text, a number, a truth value or None."""
    witness: Mapping[str, Any] = decision["witness"] or dict.fromkeys(_WITNESS)
    values: dict[str, Any] = {**decision, **{f"witness_{name}": witness[name] for name in _WITNESS}}
    return {name: _cell(name, values[name]) for name in COLUMNS}


def _cell(name: str, value: Any) -> Any:
    if name in _LISTS and value is not None:
        return encodable(json.dumps(value, ensure_ascii=False))
    return encodable(value) if isinstance(value, str) else value


def nested(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decision of a row, the reverse of `flat`; whether it is one is not checked.

    Raises:
        ValueError: A list or an object is not JSON.
    """
    values = {
        name: parsed_json(value.encode(), name) if name in _LISTS and isinstance(value, str) else value
        for name, value in row.items()
    }
    witness = {name: values.pop(f"witness_{name}", None) for name in _WITNESS}
    return {**values, "witness": witness if witness["passage"] is not None else None}


class ParquetDecisions:
    """A Parquet file of decisions in the making; a few thousand rows are in memory."""

    def __init__(self, path: Path, out: IO[bytes]) -> None:
        """Begin the file.

        Args:
            path: Its name, for messages. out: the open file.

        Raises:
            ArgumentError: pyarrow is not installed.
        """
        self._arrow, self._n = pyarrow_for(path), 0
        self._schema = self._arrow.schema([(name, self._type_of(name)) for name in COLUMNS])
        self._writer = self._arrow.parquet.ParquetWriter(out, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._batches: list[Any] = []

    def _type_of(self, name: str) -> Any:
        if name == "f1":
            return self._arrow.float64()
        if name in _INTEGERS:
            return self._arrow.int64()
        return self._arrow.bool_() if name in _BOOLEANS else self._arrow.string()

    def add(self, decision: Decided) -> None:
        """Add a decision."""
        self._rows.append(flat(decision))
        if len(self._rows) == _BATCH:
            self._pack()
            if len(self._batches) == _BATCHES:
                self._write()

    def close(self) -> None:
        """Write the rest and the end of the file, which stays open."""
        self._pack()
        self._write()
        self._writer.close()

    def _pack(self) -> None:
        if self._rows:
            self._batches.append(self._arrow.RecordBatch.from_pylist(self._rows, schema=self._schema))
            self._rows = []

    def _write(self) -> None:
        if self._batches:
            self._writer.write_table(self._arrow.Table.from_batches(self._batches))
            self._batches = []


def parquet_decisions(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the decisions of a Parquet file in order; whether they are decisions is not checked.

    Raises:
        ArgumentError: pyarrow is not installed, or the file expands beyond a limit. OSError: it cannot be read.
        ValueError: it is not such a file.
    """
    try:
        yield from map(nested, read_rows(pyarrow_for(path), path, _BATCH))
    except PoolError as error:
        raise ArgumentError(str(error)) from error


def pyarrow_for(path: Path) -> Any:
    """Return pyarrow.

    Raises:
        ArgumentError: It is not installed; the message names the file that needs it.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ArgumentError(f"{path}: Parquet needs pyarrow; run: pip install 'eldgr_dspy[parquet]'") from error
    return pyarrow
