"""The plots of the report, by matplotlib: what they show stands in a table beside each of them.

Each takes a pool of `summary.json` and returns an SVG element, or None where there is nothing to show.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eldgr_dspy.formatting import figure, interval, probability
from eldgr_dspy.report.svg import Sheet, colour, drawn
from eldgr_dspy.tables.table import difference
from eldgr_dspy.words import ROLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _RIGHT = 240, 550  # the plot between the labels and the figures
_GAP = 18  # between the plot and what stands beside it
_ROW, _TOP, _BOTTOM = 34, 10, 30
_SIGNIFICANT = 0.05
_LABEL = 32  # characters that fit beside the plot
_TICKS = 5
_STYLES = (("blue", "-"), ("orange", (0, (6, 2))), ("soft", (0, (1.5, 1.5))), ("violet", (0, (6, 2, 1.5, 2))))


def forest(pool: Mapping[str, Any]) -> str | None:
    """Return the paired differences in percentage points, each with its interval; filled where p is below .05."""
    contrasts = [one for one in pool.get("contrasts") or () if one["delta"] is not None]
    ends = [0.0, *(end for one in contrasts for end in (one["delta"], *(one["ci"] or ())))]

    def draw(sheet: Sheet) -> None:
        axes = _axes(sheet, len(contrasts), _ticks(min(ends), max(ends)))
        axes.axvline(0, color=colour("soft"), linewidth=1.5)
        for row, one in enumerate(contrasts):
            said = f"{difference(one)}, p {probability(one['p'])}"
            _beside(sheet, row, f"{one['rule']} − {one['against']}", said)
            if one["ci"]:
                _whisker(axes, row, one["ci"])
            strong = one["p"] is not None and one["p"] < _SIGNIFICANT
            _square(axes, row, one["delta"], "blue" if strong else "page")

    return _rows(draw, len(contrasts), "Differences between rules with their intervals")


def bounds(pool: Mapping[str, Any]) -> str | None:
    """Return the accuracy that each rule has over all judges, over any repair besides, and as it was measured."""
    silent, spans = pool.get("bounds") or {}, pool.get("bounds_any_span") or {}
    rules = [rule for rule in dict.fromkeys([*silent, *spans]) if silent.get(rule) or spans.get(rule)]

    def draw(sheet: Sheet) -> None:
        axes = _axes(sheet, len(rules), [0, 20, 40, 60, 80, 100])
        for row, rule in enumerate(rules):
            _beside(sheet, row, rule, interval(silent.get(rule) or spans.get(rule)))
            for ends, tone in ((spans.get(rule), "pale"), (silent.get(rule), "blue")):
                if ends:
                    low, high = ends
                    _bar(axes, row, low, high, tone, least=3)
            measured = pool["rules"].get(rule, {}).get("em")
            if measured is not None:
                _diamond(axes, row, measured)

    return _rows(draw, len(rules), "Authority bounds of the rules")


def flips(pool: Mapping[str, Any]) -> str | None:
    """Return for each branch how many of consensus's right answers were lost there, and how many wrong ones mended."""
    outcomes = (pool.get("decided") or {}).get("outcomes") or []
    branches = [name for name in ("consensus", "judge", "repair") if any(one["branch"] == name for one in outcomes)]
    counted = {
        (branch, outcome): sum(
            one["questions"] for one in outcomes if (one["branch"], one["outcome"]) == (branch, outcome)
        )
        for branch in branches
        for outcome in ("lost", "won")
    }
    if all(one["outcome"] == "unscored" for one in outcomes):
        return None
    most = max(1, *counted.values())

    def draw(sheet: Sheet) -> None:
        axes = _axes(sheet, len(branches), _ticks(-most, most, whole=True), absolute=True)
        for row, branch in enumerate(branches):
            lost, won = counted[branch, "lost"], counted[branch, "won"]
            _beside(sheet, row, branch, f"{lost:,} lost, {won:,} mended")
            _bar(axes, row, -lost, 0, "bad")
            _bar(axes, row, 0, won, "good")
        axes.axvline(0, color=colour("soft"), linewidth=1.5)

    return _rows(draw, len(branches), "Answers lost and mended by what decided, in questions")


def funnel(pool: Mapping[str, Any]) -> str | None:
    """Return how many questions come to each stage on the way to an override."""
    stages = (pool.get("decided") or {}).get("funnel") or []
    n = pool["n"]

    def draw(sheet: Sheet) -> None:
        axes = _axes(sheet, len(stages), _ticks(0, n, whole=True), row=26)
        for row, one in enumerate(stages):
            share = figure(100 * one["questions"] / n if n else None)
            _beside(sheet, row, one["stage"], f"{one['questions']:,} of {n:,}, {share} %", height=26)
            _bar(
                axes, row, 0, one["questions"], "blue" if one["stage"].endswith("overrides") else "pale", row_height=26
            )

    return _rows(draw, len(stages), "Questions on the way to an override", row=26)


def coverage(pool: Mapping[str, Any]) -> str | None:
    """Return the share of errors of each rule among the questions on which it is most to be trusted."""
    curves = {rule: points for rule, points in (pool.get("risk_coverage") or {}).items() if points}
    rules = [rule for rule in curves if rule == "eldgr"] + [rule for rule in reversed(curves) if rule != "eldgr"]
    if not curves:
        return None
    highest = max(risk for points in curves.values() for _, risk in points)
    height = 310

    def draw(sheet: Sheet) -> None:
        axes = sheet.axes(44, 620, 34, height - 48)
        axes.set(xlim=(0, 100), ylim=(0, max(5.0, highest * 1.06)))
        axes.set_xticks([0, 20, 40, 60, 80, 100])
        axes.grid(color=colour("line"), linewidth=1)
        axes.set_axisbelow(True)
        for place, rule in reversed([*enumerate(rules)]):
            tone, dashes = _STYLES[place % len(_STYLES)]
            points = [(0.0, curves[rule][0][1]), *curves[rule]]  # these are trusted alike
            look: dict[str, Any] = {"color": colour(tone), "linestyle": dashes, "linewidth": 2.5 if place == 0 else 1.8}
            axes.plot(*zip(*points, strict=True), solid_capstyle="round", **look)
            at = 46 + 24 * place
            sheet.rule(644, at, 28, **look)
            sheet.text(680, at, _clip(rule, 16))
        sheet.text(332, height - 14, "coverage, %", anchor="center", tone="soft", size=12)
        sheet.text(16, 12, "risk, %", tone="soft", size=12)

    return drawn(draw, height, "Risk by coverage of the rules")


def calls(pool: Mapping[str, Any]) -> str | None:
    """Return how many consultations each rule alone would ask, by role."""
    rules = {rule: found for rule, found in pool["rules"].items() if found.get("asked")}
    roles = [role for role in ROLES if any(found["asked"].get(role) for found in rules.values())]
    most = max((sum(found["asked"].values()) for found in rules.values()), default=0)

    def draw(sheet: Sheet) -> None:
        axes = _axes(sheet, len(rules), _ticks(0, most, whole=True))
        for row, (rule, found) in enumerate(rules.items()):
            asked = found["asked"]
            said = ", ".join(f"{role} {asked.get(role, 0):,}" for role in roles)
            _beside(sheet, row, rule, said)
            begins = 0
            for role in roles:
                _bar(axes, row, begins, begins + asked.get(role, 0), "blue" if role == "judge" else "pale")
                begins += asked.get(role, 0)

    return _rows(draw, len(rules) if most else 0, "Questions that each rule puts to each role")


# -- rows -------------------------------------------------------------------------------------------------------------


def _rows(draw: Callable[[Sheet], None], n: int, name: str, row: float = _ROW) -> str | None:
    return drawn(draw, _TOP + row * n + _BOTTOM, name) if n else None


def _axes(sheet: Sheet, n: int, ticks: Sequence[float], *, row: float = _ROW, absolute: bool = False) -> "Axes":
    """Axes with a horizontal scale and `n` rows; their heights are in pixels, from the top."""
    axes = sheet.axes(_LEFT, _RIGHT, _TOP, _TOP + row * n)
    axes.set(xlim=(ticks[0], ticks[-1]), ylim=(row * n, 0), yticks=[])
    labels = [_tick(abs(tick) if absolute else tick, ticks) for tick in ticks]
    axes.set_xticks(ticks, labels)
    axes.grid(axis="x", color=colour("line"), linewidth=1)
    axes.set_axisbelow(True)
    return axes


def _ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Round numbers at equal steps that enclose `low` and `high`."""
    from matplotlib.ticker import MaxNLocator

    low, high = round(low, 6), round(max(high, low + (1 if whole else 0.01)), 6)
    return [round(float(tick), 10) for tick in MaxNLocator(_TICKS, integer=whole).tick_values(low, high)]


def _tick(value: float, ticks: Sequence[float]) -> str:
    places = next(places for places in (0, 1, 2, 3, 4) if places == 4 or all(round(t, places) == t for t in ticks))
    return f"{value:,.{places}f}".replace("-", "−")


def _beside(sheet: Sheet, row: int, label: str, said: str, *, height: float = _ROW, longest: int = _LABEL) -> None:
    """What stands left and right of a row."""
    middle = _TOP + height * (row + 0.5)
    sheet.text(_LEFT - _GAP, middle, _clip(label, longest), anchor="right")
    sheet.text(_RIGHT + _GAP, middle, said)


def _clip(label: str, longest: int = _LABEL) -> str:
    return label if len(label) <= longest else f"{label[: longest - 1]}…"


def _pixel(axes: "Axes") -> float:
    """How much of the horizontal scale a pixel is."""
    low, high = axes.get_xlim()
    return (high - low) / (_RIGHT - _LEFT)


def _bar(
    axes: "Axes", row: int, low: float, high: float, tone: str, *, least: float = 0, row_height: float = _ROW
) -> None:
    """A bar, with an outline where its fill is pale; one of no width is `least` pixels wide."""
    from matplotlib.patches import Rectangle

    width = max(high - low, least * _pixel(axes))
    if width <= 0:
        return
    left, thick = (low + high - width) / 2, row_height / 2
    edge = colour("blue" if tone == "pale" else tone)
    place = (left, row_height * row + thick / 2)
    axes.add_patch(Rectangle(place, width, thick, facecolor=colour(tone), edgecolor=edge, linewidth=1, clip_on=False))


def _whisker(axes: "Axes", row: int, ends: Sequence[float]) -> None:
    middle, (low, high) = _ROW * (row + 0.5), ends
    look: dict[str, Any] = {"color": colour("blue"), "linewidth": 2, "solid_capstyle": "butt", "clip_on": False}
    axes.plot([low, high], [middle, middle], **look)
    for end in ends:
        axes.plot([end, end], [middle - 5, middle + 5], **look)


def _square(axes: "Axes", row: int, at: float, tone: str) -> None:
    from matplotlib.patches import Rectangle

    half, middle = 5.5 * _pixel(axes), _ROW * (row + 0.5)
    look: dict[str, Any] = {"facecolor": colour(tone), "edgecolor": colour("blue"), "linewidth": 2, "zorder": 3}
    axes.add_patch(Rectangle((at - half, middle - 5.5), 2 * half, 11, clip_on=False, **look))


def _diamond(axes: "Axes", row: int, at: float) -> None:
    from matplotlib.patches import Polygon

    half, middle = 7 * _pixel(axes), _ROW * (row + 0.5)
    corners = [(at, middle - 8), (at + half, middle), (at, middle + 8), (at - half, middle)]
    look: dict[str, Any] = {"facecolor": colour("page"), "edgecolor": colour("ink"), "linewidth": 2, "zorder": 3}
    axes.add_patch(Polygon(corners, closed=True, clip_on=False, **look))
