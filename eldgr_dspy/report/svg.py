"""Drawings as plain SVG for a page: in the page's colours and font, without ids, styles or links.

Every mark is a path or a text, and every number is a pixel from the upper left corner, unless it says otherwise.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal
from unicodedata import east_asian_width

from eldgr_dspy.showing import printable

Tone = Literal["ink", "soft", "line", "page", "blue", "pale", "good", "bad", "orange", "violet"]
"""A colour of the page."""

Points = Sequence[tuple[float, float]]

_TONES: tuple[Tone, ...] = ("blue", "orange", "soft", "violet")
_DASHES = ("none", "11 4", "3 3", "11 4 3 4")
_HALO = "paint-order: stroke; stroke: var(--page); stroke-width: 4px"  # so that a line behind a text does not cross it
_EM = 0.57  # the mean width of a character in a wide font, in heights of the font
_STEPS = (1, 2, 2.5, 5, 10)


def drawing(width: float, height: float, name: str, marks: Iterable[str], *, css: str = "") -> str:
    """Return a drawing with a text alternative; with `css` it is a separate file."""
    own = f' xmlns="http://www.w3.org/2000/svg"><style>{css}</style>' if css else ">"
    box = f"0 0 {_number(width)} {_number(height)}"
    return "\n".join([f'<svg viewBox="{box}" role="img" aria-label="{_escaped(name)}"{own}', *marks, "</svg>"])


def text(
    x: float, y: float, said: str, *, anchor: str = "start", tone: Tone = "ink", size: float = 13.5, room: float = 1e3
) -> str:
    """Return a line of any text with its middle at the height `y`, in smaller letters where `room` is short."""
    cells = sum(2 if east_asian_width(letter) in ("W", "F") else 1 for letter in printable(said))
    size = min(size, room / max(cells, 1) / _EM)
    style = f"font-size: {size:.3g}px; text-anchor: {anchor}; fill: var(--{tone}); {_HALO}"
    return f'<text x="{_number(x)}" y="{_number(y + 0.35 * size)}" style="{style}">{_escaped(said)}</text>'


def path(
    *lines: Points, stroke: Tone, fill: Tone | None = None, width: float = 1, dashes: str = "none", opacity: float = 1
) -> str:
    """Return lines through points; with `fill` each is closed. A line from a point to the same point is a dot."""
    end = " Z" if fill else ""
    shape = " ".join("M" + " L".join(f"{_number(x)} {_number(y)}" for x, y in line) + end for line in lines)
    style = f"fill: {f'var(--{fill})' if fill else 'none'}; stroke: var(--{stroke}); stroke-width: {width:g}"
    style += f"; stroke-dasharray: {dashes}" if dashes != "none" else ""
    style += f"; stroke-opacity: {opacity:g}; stroke-linecap: round" if opacity != 1 else ""
    return f'<path d="{shape}" style="{style}"/>'


def curve(place: int, *lines: Points, width: float = 1.8) -> str:
    """Return the curve at a place among others; the first sixteen differ in tone or dashes."""
    return path(*lines, stroke=tone_of(place), dashes=_DASHES[(place + place // 4) % 4], width=width)


def tone_of(place: int) -> Tone:
    """Return the tone of the curve at a place."""
    return _TONES[place % 4]


def key(x: float, y: float, place: int, said: str, room: float, width: float = 1.8) -> list[str]:
    """Return a piece of the curve at a place, and its name right of it."""
    return [curve(place, [(x, y), (x + 28, y)], width=width), text(x + 36, y, said, room=room - 36)]


def ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Return two to seven round numbers at equal steps that enclose `low` and `high`."""
    low, high = round(low, 6), round(max(high, low + (1 if whole else 0.01)), 6)
    least = (high - low) / 5
    steps = (step * 10.0 ** math.floor(math.log10(least)) for step in _STEPS)
    step = next(step for step in steps if step >= least and not (whole and step % 1))
    first, last = math.floor(round(low / step, 9)), math.ceil(round(high / step, 9))
    return [round(place * step, 10) for place in range(first, last + 1)]


@dataclass(frozen=True)
class Axes:
    """A grid between four edges, with the values of its lines across and, where there are any, upwards."""

    left: float
    right: float
    top: float
    bottom: float
    across: Sequence[float]
    up: Sequence[float] = ()

    def x(self, value: float) -> float:
        """Return the horizontal place of a value."""
        return _between(value, self.across, self.left, self.right)

    def y(self, value: float) -> float:
        """Return the vertical place of a value."""
        return _between(value, self.up, self.bottom, self.top)

    def grid(self) -> Iterator[str]:
        """Return the lines, that of zero in a stronger tone, and their labels."""
        room = 0.9 * (self.right - self.left) / (len(self.across) - 1)
        for tick in self.across:
            x, said = self.x(tick), _label(tick, self.across)
            yield _line([(x, self.top), (x, self.bottom)], tick)
            yield text(x, self.bottom + 13, said, anchor="middle", tone="soft", size=12, room=room)
        for tick in self.up:
            y = self.y(tick)
            yield _line([(self.left, y), (self.right, y)], tick)
            yield text(self.left - 6, y, _label(tick, self.up), anchor="end", tone="soft", size=12, room=34)


def _line(points: Points, tick: float) -> str:
    return path(points, stroke="line" if tick else "soft", width=1 if tick else 1.5)


def _between(value: float, scale: Sequence[float], start: float, end: float) -> float:
    return start + (value - scale[0]) / (scale[-1] - scale[0]) * (end - start)


def _label(value: float, scale: Sequence[float]) -> str:
    places = next(places for places in (0, 1, 2, 3, 4) if places == 4 or all(round(t, places) == t for t in scale))
    return f"{value:,.{places}f}".replace("-", "−")


def _number(value: float) -> str:
    return f"{round(value, 2):g}"


def _escaped(said: str) -> str:
    return escape(printable(said))
