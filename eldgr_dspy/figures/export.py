"""Decisions as one flat table, a row a question and rule, in CSV or in Parquet.

Lists and objects are JSON in a cell; a witness has a column for each field. Parquet keeps types and nulls. In CSV a
null is an empty cell, true and false are `true` and `false`, and a text that a spreadsheet would run as a formula gets
a `'` in front; so does one that begins with `'`, so that removing one `'` restores the text.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any
from unicodedata import category, normalize

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.decision_table import COLUMNS, ParquetDecisions, flat, pyarrow_for
from eldgr_dspy.figures.results.decision import Decided
from eldgr_dspy.files import replacing

SUFFIXES = (".csv", ".parquet")

_QUOTED = ("\t", "\r", "\n", "'")
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and a symbol by their category, and nothing is seen
_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?%?")


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
    if suffix == ".parquet":
        pyarrow_for(path)  # refused before anything is written
    with replacing(path) as out:
        return _write_csv(out, map(flat, decisions)) if suffix == ".csv" else _write_parquet(path, out, decisions)


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


def _write_parquet(path: Path, out: IO[bytes], decisions: Iterable[Decided]) -> int:
    table, n = ParquetDecisions(path, out), 0
    for n, decision in enumerate(decisions, start=1):  # noqa: B007 -- the count
        table.add(decision)
    table.close()
    return n
