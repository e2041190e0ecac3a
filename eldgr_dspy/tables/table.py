"""A table as data: its columns are fields of the types of results, with their headings and a format each."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from eldgr_dspy.answer_types import shown_type
from eldgr_dspy.base.formatting import UNDEFINED, count_of, figure, interval, probability, with_sign
from eldgr_dspy.figures.results import headings
from eldgr_dspy.figures.results.summary_fields import Delta, WinsLosses
from eldgr_dspy.words import Task

NO_REPORT = "a server did not report it, or the price of a model is not known."  # what a dash means

_FORMATS: Mapping[str, Callable[[Any], str]] = {
    "p": probability,
    "p_holm": probability,
    "delta": with_sign,
    "cost": partial(figure, places=4),
}
"""The fields that have a format of their own; others are shown by their kind of value."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as data: every row has one cell a header, and the first cell of a row names it."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()  # sentences below
    lead: str = ""  # a sentence between title and table


def difference(contrast: Delta) -> str:
    """Return a contrast's difference and interval, as `+2.40 [0.40, 4.60]`."""
    delta, ends = with_sign(contrast["delta"]), interval(contrast["ci"])
    return delta if ends == UNDEFINED else f"{delta} {ends}"


def record(contrast: WinsLosses) -> str:
    """Return wins and losses, as `20–8`."""
    return f"{count_of(contrast['wins'])}–{count_of(contrast['losses'])}"


_COMPOSITES: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "difference": ("Δ [95% CI]", difference),
    "graded": ("Δ F1 [95% CI]", lambda of: difference(of["f1"])),
    "record": ("wins–losses", record),
}
"""Columns that show several fields of a record in one cell: their headings, and the cell."""

Columns = Mapping[str, Callable[[Any], str]]  # in order: by heading, what is shown of a record


def columns_of(kind: type, names: str) -> Columns:
    """Return columns for fields of a type of results, which has the headings; spaces separate the `names`."""
    return dict(_COMPOSITES.get(name) or (headings(kind)[name], field(name)) for name in names.split())


def score_columns(task: Task) -> Columns:
    return {f"{heading} %": field(name) for heading, name in zip(shown_type(task).scores, ("em", "f1"), strict=False)}


def field(name: str) -> Callable[[Any], str]:
    """Return what a column shows of a record: its field of this name."""
    return lambda of: cell(name, of.get(name))


def part(name: str, of: Any) -> Callable[[Any], str]:
    """Return what a column shows of a field that holds several values by name or in order: one of them."""
    return lambda record: cell(name, record[name][of])


def table_of(
    title: str,
    heading: str,
    columns: Columns,
    rows: Mapping[str, Any] | Iterable[tuple[str, Any]],
    notes: Iterable[str] = (),
    lead: str = "",
    undefined: str = "",
) -> Table:
    """Return a table with a row a record, `heading` above their names; `undefined` says what a dash means."""
    pairs = cast(Iterable[tuple[str, Any]], rows.items() if isinstance(rows, Mapping) else rows)
    cells = tuple((label, *(show(of) for show in columns.values())) for label, of in pairs)
    why = [f"{UNDEFINED}: {undefined}"] if undefined and any(UNDEFINED in row[1:] for row in cells) else []
    return Table(title, (heading, *columns), cells, (*why, *notes), lead)


def cell(name: str, value: Any) -> str:
    """Return the value of a field as it is shown; a dash where it is undefined."""
    if isinstance(value, Mapping):  # a difference with its interval, or flips as fixed–broken
        if "delta" in value:
            return difference({"delta": value["delta"], "ci": value["ci"]})
        return f"{count_of(value['incorrect_to_correct'])}–{count_of(value['correct_to_incorrect'])}"
    if name in _FORMATS:
        return _FORMATS[name](value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | None):
        return count_of(value)
    if isinstance(value, str):
        return value
    return interval(value) if isinstance(value, list) else figure(value)
