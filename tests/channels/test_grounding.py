"""A row of f_NLI says the same to every channel that reads it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy import channels
from eldgr_dspy.channels import Grounding, Undefined
from eldgr_dspy.channels.grounding import Row
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.words import READINGS, Reading

rows = st.lists(st.sampled_from([-1.0, -0.4, 0.0, 0.3, 1.0]) | st.floats(-1, 1), max_size=5)
NO_CORPUS = Undefined("there is no corpus")


@st.composite
def distributions(draw: st.DrawFn) -> list[float]:
    weights = draw(st.lists(st.integers(0, 100), min_size=3, max_size=3).filter(any))
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize(
    ("probabilities", "label", "expected", "settled"),
    [
        ([0.7, 0.2, 0.1], -1, -0.6, -0.6),
        ([0.1, 0.2, 0.7], 1, 0.6, 0.6),
        ([0.1, 0.5, 0.4], 0, 0.3, 0),
        ([0.5, 0, 0.5], 0, 0, 0),
        ([0.4, 0.4, 0.2], 0, -0.2, 0),
        ([0.34, 0.32, 0.34], 0, 0, 0),
        ([0, 0.5, 0.5], 0, 0.5, 0),
    ],
)
def test_each_reading_of_f_nli(probabilities: list[float], label: float, expected: float, settled: float) -> None:
    results = [channels.f_nli([probabilities], reading)[0] for reading in READINGS]
    assert results == pytest.approx([label, expected, settled])


@given(distributions())
def test_f_nli_is_odd_and_in_range(probabilities: list[float]) -> None:
    for reading in READINGS:
        f, mirrored = channels.f_nli([probabilities, probabilities[::-1]], reading)
        assert -1 <= f <= 1 and f == pytest.approx(-mirrored)


@given(distributions())
def test_a_neutral_pair_is_zero_but_under_expected(probabilities: list[float]) -> None:
    if not channels.f_nli([probabilities])[0]:
        assert channels.f_nli([probabilities], "settled") == [0]


@pytest.mark.parametrize(
    "row", [[math.nan, 0.5, 0.5], [math.inf, 0, 0], [-0.1, 0.6, 0.5], [0.1, 0.1, 0.1], [2.0, -3.0, 1.0]]
)
def test_what_is_not_a_distribution_is_refused(row: list[float]) -> None:
    with pytest.raises(ArgumentError, match=r"probabilities\[1\] is .* logits are NaN"):
        channels.f_nli([[0.0, 0.0, 1.0], row])


def test_two_labels_and_an_unknown_reading_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"must have shape \(n, 3\).*got shape \(1, 2\)"):
        channels.f_nli([[0.5, 0.5]])
    wrong: Reading = "argmax"  # type: ignore[assignment]
    with pytest.raises(ArgumentError, match="reading='argmax' is not known; use one of 'label', 'expected', 'settled'"):
        channels.f_nli([[0, 0, 1]], wrong)


def test_no_pairs_give_no_scores() -> None:
    assert channels.f_nli([]).shape == (0,)


def test_probabilities_of_single_and_half_precision_are_taken() -> None:
    logits = np.array([[0.3, 1.2, -0.7]])
    soft = np.exp(logits) / np.exp(logits).sum()
    for kind in (np.float16, np.float32):
        assert channels.f_nli(soft.astype(kind), "expected")[0] == pytest.approx(soft[0, 2] - soft[0, 0], abs=1e-2)


def test_best_least_and_documents_are_those_of_the_row() -> None:
    grounding = Grounding.of([[0.0, -0.9, 0.4, 0.4], [], NO_CORPUS, [-0.2], [0.0]])
    assert list(grounding.best()) == [0.4, 0, NO_CORPUS, -0.2, 0]
    assert list(grounding.least()) == [-0.9, 0, NO_CORPUS, -0.2, 0]
    assert grounding.deciding() == [2, None, None, 0, 0]
    assert grounding.contradicting() == [1, None, None, 0, None]
    assert grounding.entailing(0.4) == [(2, 3), (), NO_CORPUS, (), ()]


def test_numbered_documents_are_called_by_their_numbers_and_ties_still_go_to_the_earliest_place() -> None:
    given_ = Grounding.of([[0.0, -0.9, 0.4, 0.4], [], NO_CORPUS, [-0.2]])
    grounding = given_.renumber([[7, 3, 9, 0], [], [], [5]])
    assert grounding.deciding() == [9, None, None, 5]
    assert grounding.contradicting() == [3, None, None, 5]
    assert grounding.entailing(0.4) == [(9, 0), (), NO_CORPUS, ()]
    assert list(grounding.best()) == list(given_.best())
    with pytest.raises(ArgumentError, match=r"documents has \[1, 0, 0, 0\] .* the rows have \[4, 0, 0, 1\] documents"):
        given_.renumber([[7], [], [], []])


def test_nothing_retrieved_is_neutral_and_still_gated() -> None:
    best = Grounding.of([[]]).best()
    assert list(channels.fact(best)) == [0.5]
    assert list(channels.gate({"fact": channels.fact(best)})) == [0.5]
    assert list(channels.gate({"fact": channels.fact(Grounding.of([NO_CORPUS]).best())})) != [0.5]


@given(st.lists(rows))
def test_best_and_least_are_the_maximum_and_the_minimum(given_: list[list[float]]) -> None:
    grounding = Grounding.of(given_)
    assert list(grounding.best()) == [max(row, default=0) for row in given_]
    assert list(grounding.least()) == [min(row, default=0) for row in given_]
    assert grounding.deciding() == [row.index(max(row)) if row else None for row in given_]
    worst = [row.index(min(row)) if min(row, default=0) < 0 else None for row in given_]
    assert grounding.contradicting() == worst


@given(st.lists(st.lists(distributions(), max_size=4)), st.sampled_from(READINGS))
def test_rows_of_probabilities_are_read_as_f_nli_reads_them(given_: list[list[list[float]]], reading: Reading) -> None:
    grounding = Grounding.from_probabilities([NO_CORPUS, *given_], reading)
    rows_of_f: list[Row] = [NO_CORPUS, *(channels.f_nli(row, reading) for row in given_)]
    assert list(grounding.best()) == list(Grounding.of(rows_of_f).best())
    for at, row in enumerate(given_, 1):
        neutral = grounding.neutral[at][grounding.retrieved[at]]
        assert neutral.tolist() == (channels.f_nli(row) == 0).tolist()


@pytest.mark.parametrize("value", [math.nan, 1.1, -1.1, math.inf])
def test_a_value_that_is_not_an_f_nli_is_refused(value: float) -> None:
    with pytest.raises(ArgumentError, match=r"rows\[1\]\[0\] must be a number from -1 to 1"):
        Grounding.of([[], [value]])


def test_those_that_speak_are_the_documents_that_are_not_neutral() -> None:
    silent = Undefined("every document is neutral")
    grounding = Grounding.of([[0.0, -0.9, -0.3], [0.0], [], NO_CORPUS])
    assert list(grounding.best_of_those_that_speak()) == [-0.3, silent, silent, NO_CORPUS]
    # Under `expected` a neutral document has an f beside 0, and is neutral all the same.
    read = Grounding.from_probabilities([[[0.9, 0.1, 0], [0.1, 0.6, 0.3]]], "expected")
    assert list(read.best()) == pytest.approx([0.2])
    assert list(read.best_of_those_that_speak()) == pytest.approx([-0.9])
