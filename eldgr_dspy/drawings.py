"""Where the marks of the report's two drawings stand: the forest plot of the contrasts and the authority bounds.

Coordinates and text only, as plain data in user units of an SVG of `WIDTH`; the report's template turns them into
shapes and gives them their colours. Nothing is drawn here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eldgr_dspy.tables import difference, figure, interval, probability

WIDTH = 760
LEFT, RIGHT = 190, 520  # the plot between the labels and the figures
ROW, TOP = 34, 14

_TICKS = 5  # about as many as stay apart with labels of six characters
_FINEST = 0.01  # a finer step would repeat its label
_SIGNIFICANT = 0.05
_LABEL = 26  # characters that fit beside the plot


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled line of the axis at `x`."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Span:
    """A horizontal stretch from `x` to `x + width`."""

    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Mark:
    """One row of a drawing: its label, up to two stretches, a point, and its figures as text."""

    label: str
    text: str
    y: float
    inner: Span | None
    outer: Span | None
    point: float | None
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing with a horizontal axis; `zero` is where the line of no difference stands, if it has one."""

    height: float
    ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    zero: float | None = None

    @property
    def bottom(self) -> float:
        """Where the axis stands, below the last row."""
        return self.height - 26


def forest(pool: Mapping[str, Any]) -> Drawing | None:
    """Return the contrasts of a pool as a forest plot in percentage points; None where there is none.

    A mark is strong where the exact p is below .05.
    """
    contrasts = [entry for entry in pool.get("contrasts") or () if entry["delta"] is not None]
    if not contrasts:
        return None
    ends = [0.0, *(end for entry in contrasts for end in (entry["delta"], *(entry["ci"] or ())))]
    ticks = _ticks(min(ends), max(ends))
    at = _scale(ticks)
    marks = [
        Mark(
            label=_clip(f"{entry['rule']} − {entry['against']}"),
            text=f"{difference(entry)}, p {probability(entry['p'])}",
            y=_row(index),
            inner=_span(entry["ci"], at),
            outer=None,
            point=at(entry["delta"]),
            strong=entry["p"] is not None and entry["p"] < _SIGNIFICANT,
        )
        for index, entry in enumerate(contrasts)
    ]
    return _drawing(marks, ticks, at, zero=at(0.0))


def bounds(pool: Mapping[str, Any]) -> Drawing | None:
    """Return the authority bounds of a pool's rules on an axis from 0 to 100 %; None where no bound is known.

    The inner stretch is over all judges with the other roles silent, the outer one with any span as repair, the point
    is what was measured.
    """
    silent, any_span = pool.get("bounds") or {}, pool.get("bounds_any_span") or {}
    rules = [rule for rule in dict.fromkeys([*silent, *any_span]) if silent.get(rule) or any_span.get(rule)]
    if not rules:
        return None
    ticks = [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    at = _scale(ticks)
    marks = []
    for index, rule in enumerate(rules):
        measured = pool["rules"].get(rule, {}).get("em")
        inner, outer = silent.get(rule), any_span.get(rule)
        text = interval(inner or outer)
        point = None if measured is None else at(measured)
        marks.append(Mark(_clip(rule), text, _row(index), _span(inner, at), _span(outer, at), point, rule == "eldgr"))
    return _drawing(marks, ticks, at)


def _drawing(
    marks: Sequence[Mark], ticks: Sequence[float], at: Callable[[float], float], zero: float | None = None
) -> Drawing:
    places = (
        0 if all(tick == round(tick) for tick in ticks) else 1 if all(round(tick, 1) == tick for tick in ticks) else 2
    )
    labelled = tuple(Tick(at(tick), figure(tick, places)) for tick in ticks)
    return Drawing(TOP + ROW * len(marks) + 32, labelled, tuple(marks), zero)


def _row(index: int) -> float:
    return TOP + ROW * index + ROW / 2


def _scale(ticks: Sequence[float]) -> Callable[[float], float]:
    low, high = ticks[0], ticks[-1]
    return lambda value: round(LEFT + (value - low) / (high - low) * (RIGHT - LEFT), 1)


def _span(ends: Sequence[float] | None, at: Callable[[float], float]) -> Span | None:
    if not ends:
        return None
    low, high = map(at, ends)
    return Span(low, round(high - low, 1))


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers at equal steps of 1, 2 or 5 times a power of ten that enclose `low` and `high`."""
    rough = max((high - low) / _TICKS or 1.0, _FINEST)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(index * step, 10) for index in range(first, max(last, first + 1) + 1)]


def _clip(label: str) -> str:
    return label if len(label) <= _LABEL else f"{label[: _LABEL - 1]}…"
