"""A consultation as the page of questions shows it: the model, the cost, and the reply, field by field."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from eldgr_dspy.consultations import Consultation
from eldgr_dspy.report.templates import clip
from eldgr_dspy.words import is_role

_LONGEST = 4_000  # characters of a field
_CELL = 300  # characters of a cell of a table
_ROWS, _COLUMNS = 64, 16  # of a table


def consultation(entry: Consultation) -> dict[str, Any]:
    """Return a consultation as plain text and tables."""
    fields = [(name, value) for name, value in (entry.content or {}).items() if not _is_table(value)]
    return {
        "role": entry.label,
        "outcome": entry.outcome,
        "reason": "" if entry.reason is None else clip(entry.reason, _LONGEST),
        "by": _by(entry),
        "took": list(_took(entry)),
        "fields": [[name, clip(_text(value), _LONGEST)] for name, value in fields],
        "tables": [_table(name, value) for name, value in (entry.content or {}).items() if _is_table(value)],
    }


def _by(entry: Consultation) -> str:
    if entry.recorded:
        return "recorded"
    if entry.asked is None:
        return entry.served or ("heuristic role, no LM" if is_role(entry.role) else "no LM of DSPy's")
    return entry.asked if entry.served in (None, entry.asked) else f"{entry.asked}, answered by {entry.served}"


def _took(entry: Consultation) -> Iterator[str]:
    yield f"{entry.calls} LM call{'' if entry.calls == 1 else 's'}"
    if entry.cached:
        yield f"{entry.cached} from the cache"
    if entry.attempt > 1:
        yield f"attempt {entry.attempt}"
    if entry.seconds is not None:
        yield f"{entry.seconds:.2f} s"
    if entry.prompt_tokens is not None:
        yield f"{entry.prompt_tokens:,} tokens in"
    if entry.completion_tokens is not None:
        yield f"{entry.completion_tokens:,} tokens out"
    if entry.cost is not None:
        yield f"{entry.cost:.4f} dollars"


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
    except RecursionError:  # as deep as the journal can be read
        return "nested too deeply to show"
