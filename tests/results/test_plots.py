"""The plots are SVG that can stand in any page: the page's colours, no ids, no links, and every mark inside."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.report import plots
from eldgr_dspy.report.svg import ticks
from tests.figures import pool_figures, rule_figures
from tests.results.pages import audited

POOL = audited()["pools"]["hotpot"]

percentages = st.floats(-100, 100)


def elements(svg: str | None) -> ElementTree.Element:
    assert svg is not None
    return ElementTree.fromstring(svg)


def texts(svg: str | None) -> list[str]:
    return [one.text or "" for one in elements(svg).iter("text")]


def beside(svg: str | None) -> list[str]:
    """The texts that stand beside the plot, without the labels of the axis."""
    return [text for text in texts(svg) if not re.fullmatch(r"−?[\d,.]+", text)]


def test_a_plot_takes_colours_and_fonts_from_the_page_and_nothing_from_elsewhere() -> None:
    svg = str(plots.bounds(POOL))
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
    assert plots.bounds(POOL) == svg


def test_where_there_is_nothing_to_draw_there_is_no_plot() -> None:
    assert plots.bounds(pool_figures()) is None


@pytest.mark.parametrize("name", ["$x^2$", "</text><script>", "漢字", "a\x00b\u202ec", "@7", r"\frac"])
def test_any_name_of_a_rule_stands_in_a_plot_as_text(name: str) -> None:
    pool = pool_figures(n=1, rules={name: rule_figures(None, judge=1)}, bounds={name: [1.0, 2.0]})
    shown = name.replace("\x00", "[U+0000]").replace("\u202e", "[U+202E]")
    assert beside(plots.bounds(pool)) == [shown, "[1.00, 2.00]"]


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
