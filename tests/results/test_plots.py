"""The plots are SVG that can stand in any page: the page's colours, no ids, no links, and every mark inside."""

import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.report import plots
from eldgr_dspy.report.plots import WIDTH
from eldgr_dspy.report.svg import ticks
from tests.figures import contrast_figures, pool_figures, rule_figures
from tests.results.pages import audited

POOL = audited()["pools"]["hotpot"]
DRAWN = (plots.forest, plots.bounds)

percentages = st.floats(-100, 100)


def elements(svg: str | None) -> ElementTree.Element:
    assert svg is not None
    return ElementTree.fromstring(svg)


def texts(svg: str | None) -> list[str]:
    return [one.text or "" for one in elements(svg).iter("text")]


def beside(svg: str | None) -> list[str]:
    """The texts that stand beside the plot, without the labels of the axis."""
    return [text for text in texts(svg) if not re.fullmatch(r"−?[\d,.]+", text)]


def contrasts(*ends: tuple[float, float, float]) -> Any:
    """A pool with a contrast for each (low, delta, high)."""
    found = [
        contrast_figures("eldgr", f"r{i}", delta=delta, ci=[low, high], p=0.04)
        for i, (low, delta, high) in enumerate(ends)
    ]
    return pool_figures(contrasts=found)


def across(svg: str | None) -> list[float]:
    """Every horizontal coordinate of a path."""
    paths = [one.attrib["d"] for one in elements(svg).iter("path")]
    return [float(x) for path in paths for x, _ in re.findall(r"(-?[\d.e+-]+) (-?[\d.e+-]+)", path)]


@pytest.mark.parametrize("draw", DRAWN, ids=lambda draw: draw.__name__)
def test_a_plot_takes_colours_and_fonts_from_the_page_and_nothing_from_elsewhere(draw: Any) -> None:
    svg = draw(POOL)
    root = elements(svg)
    assert {one.tag for one in root.iter()} == {"svg", "path", "text"}
    assert {name for one in root.iter() for name in one.attrib} <= {
        "viewBox",
        "role",
        "aria-label",
        "d",
        "style",
        "x",
        "y",
    }
    assert not re.search(r"#[0-9a-f]{3,}|url\(|font-family|http", svg)
    assert "var(--ink)" in svg
    assert draw(POOL) == svg


@pytest.mark.parametrize("draw", DRAWN, ids=lambda draw: draw.__name__)
def test_where_there_is_nothing_to_draw_there_is_no_plot(draw: Any) -> None:
    assert draw(pool_figures()) is None


@pytest.mark.parametrize("name", ["$x^2$", "</text><script>", "漢字", "a\x00b\u202ec", "@7", r"\frac"])
def test_any_name_of_a_rule_stands_in_a_plot_as_text(name: str) -> None:
    pool = pool_figures(n=1, rules={name: rule_figures(None, judge=1)}, bounds={name: [1.0, 2.0]})
    shown = name.replace("\x00", "[U+0000]").replace("\u202e", "[U+202E]")
    assert beside(plots.bounds(pool)) == [shown, "[1.00, 2.00]"]


@settings(max_examples=15)
@given(st.lists(st.tuples(percentages, percentages, percentages).map(sorted).map(tuple), min_size=1, max_size=4))
@example([(0.0, 0.0, 0.0)])
@example([(-10.0, -5.0, 0.0)])
@example([(1e-9, 1e-9, 1e-9)])
@example([(0.0, 0.0, 1e-308)])
@example([(99.0, 100.0, 100.0)])
def test_a_forest_keeps_every_mark_inside_the_drawing(ends: list[Any]) -> None:
    svg = plots.forest(contrasts(*ends))
    assert all(0 <= x <= WIDTH for x in across(svg))
    ticks = [text for text in texts(svg) if re.fullmatch(r"−?[\d.]+", text)]
    assert 2 <= len(ticks) <= 12
    assert len(set(ticks)) == len(ticks)


def test_the_axis_of_a_forest_is_round_and_holds_zero() -> None:
    svg = plots.forest(contrasts((1.2, 2.8, 4.6), (-0.2, 1.4, 3.0)))
    assert [text for text in texts(svg) if re.fullmatch(r"−?\d", text)] == ["−1", "0", "1", "2", "3", "4", "5"]
    assert beside(svg) == ["eldgr − r0", "+2.80 [1.20, 4.60], p .0400", "eldgr − r1", "+1.40 [-0.20, 3.00], p .0400"]


def test_a_square_is_filled_where_the_exact_p_is_below_five_hundredths() -> None:
    pool = contrasts((1.0, 2.0, 3.0))
    filled = "fill: var(--blue); stroke: var(--blue)"
    assert filled in str(plots.forest(pool))
    pool["contrasts"][0]["p"] = 0.05
    assert filled not in str(plots.forest(pool))


@given(percentages, percentages)
@example(0.0, 0.0)
@example(0.3, 0.3)
@example(1e-05, -100.0)
def test_ticks_are_at_equal_steps_and_enclose_what_is_shown(one: float, other: float) -> None:
    low, high = sorted((one, other))
    found = ticks(low, high)
    assert 2 <= len(found) <= 7
    assert found[0] <= low + 1e-6 and high - 1e-6 <= found[-1]
    steps = {round(after - before, 6) for before, after in pairwise(found)}
    assert len(steps) == 1
    assert f"{steps.pop():e}"[:3] in ("1.0", "2.0", "2.5", "5.0")
    assert all(tick == int(tick) for tick in ticks(low, high, whole=True))
