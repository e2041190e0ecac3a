"""The geometry of the report's drawings: what is larger stands further right, and nothing leaves the plot."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.drawings import LEFT, RIGHT, Drawing, bounds, forest

percentages = st.floats(-100, 100)


def pool_with(*ends: tuple[float, float, float]) -> dict[str, Any]:
    """A pool with a contrast for each (low, delta, high)."""
    contrasts = [
        {"rule": "eldgr", "against": f"r{i}", "delta": delta, "ci": [low, high], "p": 0.04, "wins": 2, "losses": 1}
        for i, (low, delta, high) in enumerate(ends)
    ]
    return {"contrasts": contrasts, "rules": {}}


def drawn(drawing: Drawing | None) -> Drawing:
    assert drawing is not None
    return drawing


@given(st.lists(st.tuples(percentages, percentages, percentages).map(sorted).map(tuple), min_size=1, max_size=6))
@example([(0.0, 0.0, 0.0)])
@example([(-10.0, -5.0, 0.0)])
@example([(1e-9, 1e-9, 1e-9)])
@example([(0.0, 0.0, 1e-308)])
def test_a_forest_keeps_every_mark_inside_the_plot(ends: list[Any]) -> None:
    drawing = drawn(forest(pool_with(*ends)))
    assert drawing.zero is not None
    assert LEFT <= drawing.zero <= RIGHT
    assert len(drawing.marks) == len(ends)
    for mark in drawing.marks:
        assert mark.inner is not None
        assert mark.point is not None
        assert LEFT - 0.2 <= mark.inner.x <= mark.point + 0.2
        assert mark.point <= mark.inner.x + mark.inner.width + 0.2 <= RIGHT + 0.4
        assert mark.y < drawing.bottom


@given(st.tuples(percentages, percentages, percentages).map(sorted).map(tuple))
def test_the_axis_of_a_forest_has_few_labels_that_differ(ends: Any) -> None:
    labels = [tick.label for tick in drawn(forest(pool_with(ends))).ticks]
    assert 2 <= len(labels) <= 8
    assert len(set(labels)) == len(labels)


def test_the_axis_of_a_forest_is_round_and_holds_zero() -> None:
    drawing = drawn(forest(pool_with((1.2, 2.8, 4.6), (-0.2, 1.4, 3.0))))
    assert [tick.label for tick in drawing.ticks] == ["-1", "0", "1", "2", "3", "4", "5"]
    assert drawing.zero == drawing.ticks[1].x
    assert [mark.text for mark in drawing.marks] == ["+2.80 [1.20, 4.60], p .0400", "+1.40 [-0.20, 3.00], p .0400"]


def test_a_contrast_is_strong_where_its_exact_p_is_below_five_hundredths() -> None:
    pool = pool_with((0.0, 1.0, 2.0), (0.0, 1.0, 2.0), (0.0, 1.0, 2.0))
    for entry, p in zip(pool["contrasts"], (0.0499, 0.05, None), strict=True):
        entry["p"] = p
    assert [mark.strong for mark in drawn(forest(pool)).marks] == [True, False, False]


def test_a_contrast_without_an_interval_is_a_point() -> None:
    pool = pool_with((0.0, 1.0, 2.0))
    pool["contrasts"][0]["ci"] = None
    (mark,) = drawn(forest(pool)).marks
    assert (mark.inner, mark.text) == (None, "+1.00, p .0400")


@pytest.mark.parametrize("pool", [{"rules": {}}, {"rules": {}, "contrasts": [], "bounds": None}])
def test_without_figures_there_is_nothing_to_draw(pool: dict[str, Any]) -> None:
    assert forest(pool) is None
    assert bounds(pool) is None


def test_bounds_are_drawn_to_the_scale_of_a_percentage() -> None:
    pool = {
        "rules": {"eldgr": {"em": 61.0}},
        "bounds": {"eldgr": [58.0, 69.0], "judge": [0.0, 100.0], "drm": None},
        "bounds_any_span": {"eldgr": [58.0, 81.0], "judge": None},
    }
    eldgr, judge = drawn(bounds(pool)).marks
    scale = (RIGHT - LEFT) / 100
    assert eldgr.point == pytest.approx(LEFT + 61 * scale, abs=0.1)
    assert eldgr.inner is not None
    assert eldgr.outer is not None
    assert (eldgr.inner.x, eldgr.inner.width) == pytest.approx((LEFT + 58 * scale, 11 * scale), abs=0.2)
    assert eldgr.outer.width == pytest.approx(23 * scale, abs=0.2)
    assert (judge.inner and judge.inner.width, judge.outer, judge.point) == (RIGHT - LEFT, None, None)
    assert (eldgr.text, judge.text) == ("[58.00, 69.00]", "[0.00, 100.00]")


def test_a_long_name_is_cut_to_the_room_that_it_has() -> None:
    pool = {"rules": {}, "bounds": {"x" * 300: [1.0, 2.0]}}
    (mark,) = drawn(bounds(pool)).marks
    assert mark.label == "x" * 25 + "…"
