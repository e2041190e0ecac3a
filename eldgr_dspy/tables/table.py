"""A table as data: its columns are fields of the types of results, with their headings and a format each."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from eldgr_dspy.base.formatting import UNDEFINED, count_of, figure, interval, probability, signed
from eldgr_dspy.figures.record import total_of
from eldgr_dspy.figures.results import headings
from eldgr_dspy.figures.results.summary import Delta, RuleFigures, WinsLosses
from eldgr_dspy.words import Consulted

_FORMATS: Mapping[str, Callable[[Any], str]] = {
    "p": probability,
    "p_holm": probability,
    "delta": signed,
    "cost": partial(figure, places=4),
}
"""The fields that have a format of their own; others are shown by their kind of value."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as data: every row has one cell a header, and the first cell of a row names it.

    Attributes:
        lead: A sentence between title and table; empty for none. notes: sentences below.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    lead: str = ""


def difference(contrast: Delta) -> str:
    """Return a contrast's difference and interval, as `+2.40 [0.40, 4.60]`."""
    delta, ends = signed(contrast["delta"]), interval(contrast["ci"])
    return delta if ends == UNDEFINED else f"{delta} {ends}"


def record(contrast: WinsLosses) -> str:
    """Return wins and losses, as `20–8`."""
    return f"{count_of(contrast['wins'])}–{count_of(contrast['losses'])}"


_COMPOSED: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "difference": ("Δ [95% CI]", difference),
    "graded": ("Δ F1 [95% CI]", lambda of: difference(of["f1"])),
    "record": ("wins–losses", record),
}
"""Columns that show several fields of a record in one cell: their headings, and the cell."""


def table_of(
    title: str,
    named: str,
    kind: type,
    fields: str,
    rows: Mapping[str, Mapping[str, Any]] | Iterable[tuple[str, Mapping[str, Any]]],
    notes: Iterable[str] = (),
) -> Table:
    """Return a table with a row a record.

    Args:
        title: Its title. named: the heading of the names of the rows.
        kind: The type of the records.
        fields: Those that are columns, in order, separated by spaces; and `difference`, `graded` and `record`.
        rows: The records by name, or pairs of both where names repeat. notes: sentences below.
    """
    columns = fields.split()
    headers = (_COMPOSED[name][0] if name in _COMPOSED else headings(kind)[name] for name in columns)
    cells: Any = tuple(
        (label, *(_COMPOSED[name][1](of) if name in _COMPOSED else cell(name, of.get(name)) for name in columns))
        for label, of in (rows.items() if isinstance(rows, Mapping) else rows)
    )
    return Table(title, (named, *headers), cells, tuple(notes))


def cell(name: str, value: Any) -> str:
    """Return the value of a field as it is shown; a dash where it is undefined."""
    if isinstance(value, Mapping):
        return _of_several(value)
    if name in _FORMATS:
        return _FORMATS[name](value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | None):
        return count_of(value)
    if isinstance(value, str):
        return value
    return interval(value) if isinstance(value, list) else figure(value)


def _of_several(value: Mapping[str, Any]) -> str:
    """A difference with its interval, a figure with its interval and count, or flips as fixed–broken."""
    if "delta" in value:
        return difference({"delta": value["delta"], "ci": value["ci"]})
    if "value" in value:
        return f"{figure(value['value'])} {interval(value['ci'])} of {value['of']:,}"
    return f"{count_of(value['incorrect_to_correct'])}–{count_of(value['correct_to_incorrect'])}"


def per_question(calls: Mapping[Consulted, int], n: int) -> str:
    """Return calls a question over all roles, as `0.31`; a dash without questions."""
    return figure(sum(calls.values()) / n if n else None)


def tokens_of(figures: RuleFigures) -> int | None:
    """Return the tokens that a rule took, read and written, over all roles; None where unknown for any."""
    return total_of([*figures["tokens"].values()])
