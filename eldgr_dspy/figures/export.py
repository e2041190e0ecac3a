"""Decisions as one flat table, a row a question and rule, in CSV or in Parquet.

Lists and objects are JSON in a cell; a witness has a column for each field. Parquet keeps types and nulls. In CSV a
null is an empty cell, true and false are `true` and `false`, and a text that a spreadsheet would run as a formula gets
a `'` in front; so does one that begins with `'`, so that removing one `'` restores the text.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Any
from unicodedata import category, normalize

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.results.decision import Decided, Witnessed
from eldgr_dspy.files import replacing

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

SUFFIXES = (".csv", ".parquet")

_QUOTED = ("\t", "\r", "\n", "'")
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and a symbol by their category, and nothing is seen
_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?%?")
_BATCH = 1_000  # rows of a Parquet file in memory at once


def export(decisions: Iterable[Decided], path: Path) -> int:
    """Write decisions to a file in the format of its name, whole or not at all; return how many.

    Args:
        decisions: The rows of `decisions.jsonl`, taken one by one. path: ends in .csv or .parquet.

    Raises:
        ArgumentError: the name states no known format, or pyarrow is not there.
        OSError: it cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ArgumentError(f"{path}: the format is not known by its name; use one of {', '.join(SUFFIXES)}.")
    write = _write_csv if suffix == ".csv" else _parquet_writer(path)
    with replacing(path) as out:
        return write(out, map(flat, decisions))


def flat(decision: Decided) -> dict[str, Any]:
    """Return a line of `decisions.jsonl` as a row: the columns, each with text, a number, a truth value or None."""
    witness: Mapping[str, Any] = decision["witness"] or dict.fromkeys(_WITNESS)
    values: dict[str, Any] = {**decision, **{f"witness_{name}": witness[name] for name in _WITNESS}}
    return {name: _cell(name, values[name]) for name in COLUMNS}


def _cell(name: str, value: Any) -> Any:
    if name in _LISTS and value is not None:
        return json.dumps(value, ensure_ascii=False)
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


def _write_csv(out: IO[bytes], rows: Iterator[dict[str, Any]]) -> int:
    text, n = io.TextIOWrapper(out, encoding="utf-8", errors="replace", newline=""), 0
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for n, row in enumerate(rows, start=1):  # noqa: B007 -- the count
        writer.writerow(map(_csv_cell, row.values()))
    text.detach()
    return n


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return disarmed(value) if isinstance(value, str) else value


def disarmed(text: str) -> str:
    """Return a text that no spreadsheet reads as a formula: with a `'` in front if its first character could start one.

    That is the first one that is seen, in its compatibility form: a small or full-width sign counts as the sign itself.
    A plain number such as -5 or +3.2 is not a formula and stays. Source: OWASP, "CSV Injection".
    """
    if text[:1].isalnum() and text[:1].isascii():
        return text
    first = next(filter(_is_seen, text), "")
    is_formula = normalize("NFKC", first)[:1] in ("=", "+", "-", "@")
    return f"'{text}" if text.startswith(_QUOTED) or (is_formula and not _NUMBER.fullmatch(text)) else text


def _is_seen(character: str) -> bool:
    """Whether a character is visible by itself: not a space, control, format character or mark."""
    return category(character)[0] not in "CMZ" and character not in _FILLERS


def _parquet_writer(path: Path) -> Callable[[IO[bytes], Iterator[dict[str, Any]]], int]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ArgumentError(f"{path}: Parquet needs pyarrow; run: pip install 'eldgr_dspy[parquet]'") from error

    def type_of(name: str) -> Any:
        if name == "f1":
            return pyarrow.float64()
        return pyarrow.int64() if name in _INTEGERS else pyarrow.bool_() if name in _BOOLEANS else pyarrow.string()

    def write(out: IO[bytes], rows: Iterator[dict[str, Any]]) -> int:
        schema, n = pyarrow.schema([(name, type_of(name)) for name in COLUMNS]), 0
        with pyarrow.parquet.ParquetWriter(out, schema, compression="zstd") as writer:
            while batch := list(islice(rows, _BATCH)):
                writer.write_batch(pyarrow.RecordBatch.from_pylist(batch, schema=schema))
                n += len(batch)
        return n

    return write
