"""Decisions as one flat table, a row a question and rule, in CSV or in Parquet."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin
from unicodedata import category, normalize

from typing_extensions import get_type_hints

from eldgr_dspy.base.files import replacing
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.results.decision_fields import Decided, Witnessed
from eldgr_dspy.formats.parquet import write_table
from eldgr_dspy.showing import encodable

SUFFIXES = (".csv", ".parquet")

_HINTS: Mapping[str, Any] = {
    **{name: hint for name, hint in get_type_hints(Decided).items() if name != "witness"},
    **{f"witness_{name}": hint | None for name, hint in get_type_hints(Witnessed).items()},
}
COLUMNS = tuple(_HINTS)  # the fields of a decision, then those of its witness

_PARQUET: Mapping[object, str] = {bool: "bool", int: "int64", float: "double"}
_LISTS = tuple(name for name, hint in _HINTS.items() if get_origin(hint) in (list, dict))
_TYPES = {
    name: next((_PARQUET[of] for of in get_args(hint) or (hint,) if of in _PARQUET and name not in _LISTS), "string")
    for name, hint in _HINTS.items()
}

_STARTS = ("\t", "\r", "\n", "'")
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and a symbol by their category, and nothing is seen
_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?%?( \[-?\d+\.\d+, -?\d+\.\d+\])?")  # a difference may have its interval


def export(decisions: Iterable[Decided], path: Path) -> int:
    """Write decisions to a file in the format of its name, whole or not at all; return how many."""
    suffix, n = path.suffix.lower(), 0
    if suffix not in SUFFIXES:
        raise ArgumentError(f"{path}: the format is not known by its name; use one of {', '.join(SUFFIXES)}.")

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal n
        for decision in decisions:
            n += 1
            yield flat(decision)

    with replacing(path) as out:
        if suffix == ".csv":
            text = io.TextIOWrapper(out, encoding="utf-8", errors="replace", newline="")
            writer = csv.writer(text)
            writer.writerow(COLUMNS)
            writer.writerows(map(_csv_cell, row.values()) for row in rows())
            text.detach()
        else:
            write_table(path, out, rows(), _TYPES)
    return n


def flat(decision: Decided) -> dict[str, Any]:
    """Return a decision as a row: the columns, each with text, a number, a truth value or None."""
    values: dict[str, Any] = {**decision}
    values |= {f"witness_{name}": value for name, value in (values.pop("witness") or {}).items()}
    return {name: _cell(values.get(name)) for name in COLUMNS}


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return encodable(json.dumps(value, ensure_ascii=False))
    return encodable(value) if isinstance(value, str) else value


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return disarm(value) if isinstance(value, str) else value


def disarm(text: str) -> str:
    """Return the text so that no spreadsheet reads it as a formula: with a `'` in front if it could start one."""
    if text[:1].isalnum() and text[:1].isascii():
        return text
    # A small or full-width sign counts as the sign itself; a plain number such as -5 or +3.2 is not a formula.
    # Source: OWASP, "CSV Injection".
    first = next(filter(_is_seen, text), "")
    is_formula = normalize("NFKC", first)[:1] in ("=", "+", "-", "@")
    return f"'{text}" if text.startswith(_STARTS) or (is_formula and not _NUMBER.fullmatch(text)) else text


def _is_seen(character: str) -> bool:
    """Whether a character is visible by itself: not a space, control, format character or mark."""
    return category(character)[0] not in "CMZ" and character not in _FILLERS
