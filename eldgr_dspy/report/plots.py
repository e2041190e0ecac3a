"""The plots of the report: differences of rules, and their bounds; a table next to each has the same numbers."""

from collections.abc import Mapping, Sequence

from eldgr_dspy.figures.authority import Authority
from eldgr_dspy.figures.results.summary import PoolFigures
from eldgr_dspy.formatting import figure, interval, probability
from eldgr_dspy.report.svg import Axes, Points, Tone, drawing, path, text, ticks
from eldgr_dspy.report.templates import drawing_css
from eldgr_dspy.tables.bounds import authority_lines, widest_bounds
from eldgr_dspy.tables.table import difference

WIDTH = 400
"""How wide a plot is, in pixels of its own: a phone shows it in full size, and a page two side by side."""

_LEFT, _RIGHT = 20, 380  # the scale
_EDGE = 2  # between a text and the edge
_LABEL = 165  # how wide a label may be
_TOP, _BOTTOM = 10, 30
_ROW = 48  # the height of a row
_ABOVE = 21  # how far its text is above its marks
_SIGNIFICANT = 0.05
_SQUARE = ((-5.5, -5.5), (5.5, -5.5), (5.5, 5.5), (-5.5, 5.5))
_DIAMOND = ((0, -8), (7, 0), (0, 8), (-7, 0))


def forest(pool: PoolFigures) -> str | None:
    """Return the paired differences of a pool in percentage points, each with its interval; filled where p < .05.

    None without a contrast.
    """
    contrasts = pool["contrasts"]
    ends = [0.0, *(end for contrast in contrasts for end in (contrast["delta"], *contrast["ci"]))]
    rows = _Rows(len(contrasts), ticks(min(ends), max(ends)))
    for contrast in contrasts:
        rows.begin(
            f"{contrast['rule']} − {contrast['against']}", f"{difference(contrast)}, p {probability(contrast['p'])}"
        )
        rows.whisker(*contrast["ci"])
        rows.shape(contrast["delta"], _SQUARE, "blue" if contrast["p"] < _SIGNIFICANT else "page", "blue")
    return rows.svg("Differences between rules with their intervals")


def bounds(pool: PoolFigures) -> str | None:
    """Return each rule's accuracy over all judges, over all judges and repairs or derivations, and as measured."""
    silent = {rule: ends for rule, ends in pool["bounds"].items() if ends}
    rows = _Rows(len(silent), ticks(0, 100))
    for rule, ends in silent.items():
        rows.begin(rule, interval(ends))
        measured = pool["rules"].get(rule)
        rows.ends(ends, widest_bounds(pool).get(rule), measured and measured["em"])
    return rows.svg("Authority bounds of the rules")


def authority(pools: Mapping[str, Authority]) -> str | None:
    """Return the bounds of pools without a run as a drawing of its own, with the recorded judges and the prices."""
    lines = [
        (line.label if len(pools) == 1 else f"{name}: {line.label}", line, line.ends, pool)
        for name, pool in pools.items()
        for line in authority_lines(pool)
        if line.ends
    ]
    rows = _Rows(len(lines), ticks(0, 100))
    for label, line, ends, pool in lines:
        price = pool["price"][line.rule]
        rows.begin(label, ", ".join([interval(ends), *([f"at most {figure(price['at_most'])}"] if price else [])]))
        rows.ends(ends, widest_bounds(pool)[line.rule], line.measured)
    return rows.svg("Authority bounds, measured accuracies, and the price for new questions", css=drawing_css())


class _Rows:
    """A plot of `n` rows on one scale: above the marks of each its label and its figures."""

    def __init__(self, n: int, across: Sequence[float]) -> None:
        self._n, self._bottom, self._middle = n, _TOP + _ROW * n, _TOP - _ROW / 4
        self._axes = Axes(_LEFT, _RIGHT, _TOP, self._bottom, across)
        self._marks = [*self._axes.grid()]

    def begin(self, label: str, said: str) -> None:
        """Start the next row; later shapes are drawn in it."""
        self._middle += _ROW
        above = self._middle - _ABOVE
        self._marks.append(text(_EDGE, above, _clip(label, 32), room=_LABEL))
        self._marks.append(text(WIDTH - _EDGE, above, said, anchor="end", room=WIDTH - _LABEL - 10))

    def bar(self, ends: Sequence[float], tone: Tone, *, least: float = 0) -> None:
        """Draw a bar, with an outline where its fill is pale; one of no width is `least` pixels wide."""
        (left, right), half = map(self._axes.x, ends), 8
        wider = max(0, least - (right - left)) / 2
        if left < right or least:
            left, right = left - wider, right + wider
            top, bottom = self._middle - half, self._middle + half
            corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
            self._marks.append(path(corners, fill=tone, stroke="blue" if tone == "pale" else tone))

    def whisker(self, low: float, high: float) -> None:
        """Draw an interval."""
        y, left, right = self._middle, self._axes.x(low), self._axes.x(high)
        lines: list[Points] = [[(left, y), (right, y)], *([(x, y - 5), (x, y + 5)] for x in (left, right))]
        self._marks.append(path(*lines, stroke="blue", width=2))

    def shape(self, at: float, corners: Points, fill: Tone, stroke: Tone) -> None:
        """Draw a shape about a value; its corners are in pixels from there."""
        moved = [(self._axes.x(at) + x, self._middle + y) for x, y in corners]
        self._marks.append(path(moved, fill=fill, stroke=stroke, width=2))

    def ends(self, silent: Sequence[float], widest: Sequence[float] | None, measured: float | None) -> None:
        """Draw an authority bound, over all judges and also over repairs or derivations, and what was measured."""
        if widest:
            self.bar(widest, "pale", least=3)
        self.bar(silent, "blue", least=3)
        if measured is not None:
            self.shape(measured, _DIAMOND, "page", "ink")

    def svg(self, name: str, *, css: str = "") -> str | None:
        """Return the plot; None without rows. With `css` it is a separate file."""
        return drawing(WIDTH, self._bottom + _BOTTOM, name, self._marks, css=css) if self._n else None


def _clip(label: str, longest: int) -> str:
    return label if len(label) <= longest else f"{label[: longest - 1]}…"
