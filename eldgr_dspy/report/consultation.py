"""A consultation as the page of questions shows it: by whom, what it took, and what was said, field by field."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from eldgr_dspy.consultations import Consultation
from eldgr_dspy.report.templates import clip

_LONGEST = 4_000  # characters of a field
_CELL = 300  # characters of a cell of a table
_ROWS, _COLUMNS = 64, 16  # of a table


def consultation(one: Consultation) -> dict[str, Any]:
    """Return a consultation as plain text and tables."""
    fields = [(name, found) for name, found in (one.content or {}).items() if not _is_table(found)]
    return {
        "role": one.role,
        "outcome": one.outcome,
        "reason": "" if one.reason is None else clip(one.reason, _LONGEST),
        "by": _by(one),
        "took": list(_took(one)),
        "fields": [[name, clip(_text(found), _LONGEST)] for name, found in fields],
        "tables": [_table(name, found) for name, found in (one.content or {}).items() if _is_table(found)],
    }


def _by(one: Consultation) -> str:
    if one.recorded:
        return "recorded"
    if one.asked is None:
        return "embedded, no LM"
    return one.asked if one.served in (None, one.asked) else f"{one.asked}, answered by {one.served}"


def _took(one: Consultation) -> Iterator[str]:
    yield f"{one.calls} LM call{'' if one.calls == 1 else 's'}"
    if one.cached:
        yield f"{one.cached} from the cache"
    if one.attempt > 1:
        yield f"attempt {one.attempt}"
    if one.seconds is not None:
        yield f"{one.seconds:.2f} s"
    if one.prompt_tokens is not None:
        yield f"{one.prompt_tokens:,} tokens in"
    if one.completion_tokens is not None:
        yield f"{one.completion_tokens:,} tokens out"
    if one.cost is not None:
        yield f"{one.cost:.4f} dollars"


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _table(name: str, rows: list[Mapping[str, Any]]) -> dict[str, Any]:
    columns = list(dict.fromkeys(column for row in rows for column in row))[:_COLUMNS]
    cells = [[clip(_text(row.get(column)), _CELL) for column in columns] for row in rows[:_ROWS]]
    return {"name": name, "columns": columns, "rows": cells, "more": max(0, len(rows) - _ROWS)}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.4g}"
    try:
        return "—" if value is None else json.dumps(value, ensure_ascii=False)
    except RecursionError:  # as deep as the journal could just be read
        return "nested beyond writing down"
