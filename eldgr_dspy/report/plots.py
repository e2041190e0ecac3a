"""Plots of the authority bounds of rules; a table next to each has the same numbers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eldgr_dspy.figures.authority import Authority
from eldgr_dspy.figures.results.summary import PoolFigures
from eldgr_dspy.formatting import figure, interval
from eldgr_dspy.report.svg import Axes, drawing, path, text, ticks
from eldgr_dspy.report.templates import drawing_css
from eldgr_dspy.tables.bounds import widest_bounds

WIDTH = 400
"""How wide a plot is, in pixels of its own: a phone shows it in full size, and a page two side by side."""

_LEFT, _RIGHT = 20, 380  # the scale
_EDGE = 2  # between a text and the edge
_LABEL = 165  # how wide a label may be
_TOP, _BOTTOM = 10, 30
_ROW = 48  # the height of a row
_ABOVE = 21  # how far its text is above its marks
_DIAMOND = ((0, -8), (7, 0), (0, 8), (-7, 0))


class _Row(NamedTuple):
    """A row: texts above its marks, the bounds over all judges and also over repairs or derivations, the score."""

    label: str
    figures: str
    silent: Sequence[float]
    widest: Sequence[float] | None
    measured: float | None = None


def bounds(pool: PoolFigures) -> str | None:
    """Return each rule's accuracy over all judges, over all judges and repairs or derivations, and as measured."""
    widest, rules = widest_bounds(pool), pool["rules"]
    rows = [
        _Row(rule, interval(ends), ends, widest.get(rule), rules[rule]["em"] if rule in rules else None)
        for rule, ends in pool["bounds"].items()
        if ends
    ]
    return _plot("Authority bounds of the rules", rows)


def authority(pools: Mapping[str, Authority]) -> str | None:
    """Return the bounds of pools without a run as a drawing of its own, with the prices."""
    rows = list[_Row]()
    for name, pool in pools.items():
        for rule, ends in pool["bounds"].items():
            if ends:
                price = pool["price"][rule]
                shown = [interval(ends), *([f"at most {figure(price['at_most'])}"] if price else [])]
                label = rule if len(pools) == 1 else f"{name}: {rule}"
                rows.append(_Row(label, ", ".join(shown), ends, widest_bounds(pool)[rule]))
    return _plot("Authority bounds, and the price for new questions", rows, css=drawing_css())


def _plot(name: str, rows: Sequence[_Row], *, css: str = "") -> str | None:
    """A plot of rows on one scale of percent; None without rows. With `css` it is a separate file."""
    bottom = _TOP + _ROW * len(rows)
    axes = Axes(_LEFT, _RIGHT, _TOP, bottom, ticks(0, 100))
    marks = [*axes.grid()]
    for place, row in enumerate(rows):
        middle = _TOP + _ROW * (place + 3 / 4)
        label = row.label if len(row.label) <= 32 else f"{row.label[:31]}…"
        marks.append(text(_EDGE, middle - _ABOVE, label, room=_LABEL))
        marks.append(text(WIDTH - _EDGE, middle - _ABOVE, row.figures, anchor="end", room=WIDTH - _LABEL - 10))
        if row.widest:
            marks.append(path(_bar(axes, row.widest, middle), fill="pale", stroke="blue"))
        marks.append(path(_bar(axes, row.silent, middle), fill="blue", stroke="blue"))
        if row.measured is not None:
            corners = [(axes.x(row.measured) + x, middle + y) for x, y in _DIAMOND]
            marks.append(path(corners, fill="page", stroke="ink", width=2))
    return drawing(WIDTH, bottom + _BOTTOM, name, marks, css=css) if rows else None


def _bar(axes: Axes, ends: Sequence[float], middle: float) -> list[tuple[float, float]]:
    """The corners of a bar, which is at least three pixels wide."""
    left, right = map(axes.x, ends)
    wider, top, bottom = max(0, 3 - (right - left)) / 2, middle - 8, middle + 8
    return [(left - wider, top), (right + wider, top), (right + wider, bottom), (left - wider, bottom)]
