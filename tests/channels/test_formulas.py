"""The seven formulas keep to their ranges and directions, and what is undefined never becomes a number."""

import doctest
import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eldgr_dspy
from eldgr_dspy import channels
from eldgr_dspy.channels import Score, Scores, Undefined
from eldgr_dspy.channels.undefined import Values, each
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.words import READINGS
from tests.refusing import refuses

unit = st.floats(0, 1)
polar = st.floats(-1, 1)
undefined = st.builds(Undefined, st.sampled_from(["no corpus", "no token probabilities"]))

Channel = Callable[..., Scores]

# Each channel, what draws one argument, its range, and for each argument whether the score rises or falls with it.
FORMULAS: list[tuple[Channel, tuple[Any, ...], tuple[float, float], tuple[int, ...]]] = [
    (channels.logic, (polar,), (0, 1), (1,)), (channels.fact, (polar,), (0, 1), (1,)),
    (channels.epist, (unit, unit), (0, 1), (0, 0)), (channels.info, (unit, unit), (0, 1), (1, 1)),
    (channels.triang, (st.integers(0, 9),), (0, 1), (1,)), (channels.adv, (unit, unit), (0.2689, 0.7311), (1, -1)),
    (channels.minimality, (st.integers(0, 9),), (0, 1), (-1,)),
]  # fmt: skip
by_name = pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula[0].__name__)
MISSING: Any = Undefined("no corpus")


@by_name
@given(data=st.data())
def test_a_channel_stays_in_its_range_and_moves_one_way_with_each_argument(formula: Any, data: st.DataObject) -> None:
    channel, arguments, (low, high), directions = formula
    values = [data.draw(argument) for argument in arguments]
    (score,) = channel(*([value] for value in values))
    assert isinstance(score, float) and low <= score <= high
    for at, direction in enumerate(directions):
        other = [*values]
        other[at] = data.draw(arguments[at])
        (before,), (after,) = channel(*([value] for value in values)), channel(*([value] for value in other))
        assert (after - before) * direction * (1 if other[at] > values[at] else -1) >= 0


@by_name
@given(data=st.data())
def test_a_channel_is_undefined_where_an_argument_is_and_there_alone(formula: Any, data: st.DataObject) -> None:
    channel, arguments, _, _ = formula
    n = data.draw(st.integers(0, 5))
    columns = [data.draw(st.lists(argument | undefined, min_size=n, max_size=n)) for argument in arguments]
    for score, values in zip(channel(*columns), zip(*columns, strict=True), strict=True):
        reasons = [value.reason for value in values if isinstance(value, Undefined)]
        assert score == Undefined(reasons[0]) if reasons else math.isfinite(score)


@by_name
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1.5e9 + 0.5, -2, True, "0.5", None])
def test_a_channel_refuses_in_a_sentence_what_is_not_a_score(formula: Any, value: object) -> None:
    channel, arguments, _, _ = formula
    good: list[list[object]] = [[0, 0] for _ in arguments[1:]]
    refuses(ArgumentError, r"\[1\] must be .*; got .*give Undefined\(reason\)\.", channel, [0, value], *good)


@given(unit, unit)
def test_epist_is_best_where_confidence_is_the_strength_of_evidence(confidence: float, strength: float) -> None:
    (exact,), (off,) = channels.epist([strength], [strength]), channels.epist([confidence], [strength])
    assert exact == 1 and off == pytest.approx(1 - abs(confidence - strength))


USES: list[Callable[[Any], Any]] = [float, bool, int, lambda u: u + 1, lambda u: 1 - u, lambda u: u < 1]
USES += [lambda u: u or 0.0, lambda u: math.fsum([u]), lambda u: np.array([u], dtype=float)]
USES += [lambda u: np.mean([0.5, u]), lambda u: max([0.5, u]), lambda u: f"{u:.2f}"]


@pytest.mark.parametrize("use", USES, ids=itertools.count())
def test_nothing_makes_a_number_of_undefined(use: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError):
        use(MISSING)


def test_scores_are_a_sequence_and_undefined_is_equal_to_its_like_alone() -> None:
    assert Undefined("a") == Undefined("a") != Undefined("b")
    assert len({Undefined("a"), Undefined("a")}) == 1
    assert all(number != MISSING for number in (0, 0.0, math.nan, None, False))
    assert Scores.of([0.5, MISSING, 1]).defined.tolist() == [True, False, True]
    means = [Scores.of(values).mean() for values in ([0.5, MISSING, 1], [], [MISSING])]
    assert means == [0.75, Undefined("there is no step"), Undefined("no step was measured")]
    assert list(channels.epist(np.array([1.0000001], np.float32), [1])) == [1]
    scores = Scores.of([0.5, MISSING, 1, MISSING])
    assert (len(scores), scores[0], scores[-1], scores[-2]) == (4, 0.5, MISSING, 1.0)
    assert scores[1:] == Scores.of([MISSING, 1, MISSING]) != Scores.of([MISSING, 1])
    assert scores[::-1] == Scores.of(list(scores)[::-1])
    assert all(type(score) in (float, Undefined) for score in scores)
    with pytest.raises(IndexError):
        scores[4]


@given(st.lists(unit | undefined))
def test_scores_give_back_what_they_were_given(values: list[Score]) -> None:
    assert list(Scores.of(values)) == values == list(Scores.of(Scores.of(values)))


def test_numpy_numbers_are_scores_and_arrays_are_checked_as_well() -> None:
    arrays: list[Values] = [np.array([0.25, 1], np.float32), np.array([0, 1]), [np.float32(0.25), np.int64(1)]]
    assert all(isinstance(score, float) for values in arrays for score in Scores.of(values))
    for values in (np.array([0.5, math.nan]), np.array([True]), np.array([[0.5]])):
        refuses(ArgumentError, "must be", Scores.of, values)


@given(st.lists(st.tuples(unit | undefined, unit | undefined)))
def test_each_reads_no_number_where_something_is_undefined(pairs: list[tuple[Score, Score]]) -> None:
    first, second = (Scores.of([pair[at] for pair in pairs]) for at in (0, 1))
    nans = Scores(np.where(first.defined, first.numbers, np.nan), first.defined, first.reasons)
    assert each(np.add, nans, second) == each(np.add, first, second)


def test_the_name_loads_with_the_package_and_page_and_example_say_what_it_does() -> None:
    assert eldgr_dspy.channels is channels
    assert all(hasattr(channels, name) for name in channels.__all__)
    page = (Path(__file__).parents[2] / "docs" / "reference" / "channels.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == (*channels.CHANNELS, *READINGS)
    assert doctest.testmod(channels).failed == 0
