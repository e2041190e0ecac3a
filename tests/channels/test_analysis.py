"""A row of f_NLI says the same to every channel; conflation, unsupported rate, variance and table follow from it."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eldgr_dspy import channels
from eldgr_dspy.channels import CHANNELS, PAPER, Channel, Grounding, StepTable, Undefined
from eldgr_dspy.channels.grounding import Row
from eldgr_dspy.words import READINGS, Reading

MISSING = Undefined("not measured")
unit = st.floats(0, 1)
rows = st.lists(st.sampled_from([-1.0, -0.9, 0.0, 0.5, 1.0]) | st.floats(-1, 1), max_size=5)
matrices = st.integers(1, 8).flatmap(
    lambda n: st.fixed_dictionaries({name: st.lists(unit, min_size=n, max_size=n) for name in CHANNELS})
)
TEXT = "Qatar hosted it. The capital of Qatar is Dubai."
short_rows = st.lists(st.sampled_from([-1.0, -0.4, 0.0, 0.3, 1.0]) | st.floats(-1, 1), max_size=5)
NO_CORPUS = Undefined("there is no corpus")


@given(unit, rows.filter(bool), st.floats(-1, -0.01), st.floats(0.01, 1))
def test_the_papers_conflation_is_one_in_the_other(score: float, row: list[float], eta: float, delta: float) -> None:
    grounding = Grounding.of([row])
    (paper,) = channels.conflated([score], grounding, eta, delta)
    (other,) = channels.conflated([score], grounding, eta, delta, over="not_neutral")
    assert paper == (score >= delta and max(row) <= eta)
    assert other is True or paper is False


@given(st.dictionaries(st.sampled_from(CHANNELS), unit), rows.filter(bool), st.floats(-1, -0.01), unit)
def test_no_gated_reward_is_conflated(others: dict[Channel, float], row: list[float], eta: float, delta: float) -> None:
    assume(delta > (1 + eta) / 2 and PAPER.tau > (1 + eta) / 2)
    grounding = Grounding.of([row])
    columns: Any = {name: [score] for name, score in others.items()} | {"fact": channels.fact(grounding.best())}
    assert channels.conflated(channels.step_reward(columns), grounding, eta, delta) == [False]


@given(st.lists(rows, min_size=1), st.floats(-1, 1))
def test_the_unsupported_rate_is_the_share_of_facts_at_or_below_eta(grid: list[list[float]], eta: float) -> None:
    grounding = Grounding.of(grid)
    best = [max(row, default=0) for row in grid]
    assert channels.unsupported_rate(grounding, eta) == pytest.approx(np.mean([value <= eta for value in best]))


@given(matrices, st.sampled_from([(), ("logic",), ("epist", "min")]))
def test_the_terms_of_the_variance_sum_to_it(columns: dict[Channel, list[float]], drop: tuple[Channel, ...]) -> None:
    weighting = PAPER.without(*drop)
    parts = channels.variance_decomposition(columns, weighting)
    assert parts.uncorrelated + sum(parts.shared.values()) == pytest.approx(parts.total, abs=1e-12)
    assert parts.total == pytest.approx(float(channels.weighted_mean(columns, weighting).numbers.var()), abs=1e-12)
    assert len(parts.own) == 7 and len(parts.shared) == 21


def test_negative_pairs_are_named_and_one_alone_does_not_lower_the_variance() -> None:
    columns: Any = {name: [0.5, 0.5] for name in CHANNELS}
    columns |= {"logic": [1.0, 0.5], "fact": [0.0, 0.5]}
    parts = channels.variance_decomposition(columns)
    assert parts.negative == (("logic", "fact"),)
    assert parts.shared["logic", "fact"] == pytest.approx(-2 * 0.2 * 0.2 * 0.0625)
    assert parts.total == pytest.approx(0) and parts.uncorrelated == pytest.approx(2 * 0.04 * 0.0625)
    # The paper's appendix concludes otherwise; positive pairs can outweigh the negative one.
    columns = {name: [0.0, 1.0] for name in CHANNELS} | {"epist": [1.0, 0.0]}
    parts = channels.variance_decomposition(columns)
    assert ("logic", "epist") in parts.negative and parts.total > parts.uncorrelated
    # One step has no variance; what is undefined is left out by dropping its channel.
    parts = channels.variance_decomposition({name: [0.3] for name in CHANNELS})
    assert (parts.total, parts.uncorrelated, parts.negative) == (0, 0, ())
    columns = {name: [0.3, 0.4] for name in CHANNELS} | {"epist": [0.1, MISSING]}
    assert channels.variance_decomposition(columns, PAPER.without("epist")).n == 2


def table() -> StepTable:
    grounding = Grounding.of([[1.0, 0.0], [-1.0, 0.0]])
    columns: Any = {"logic": [0.5, 1.0], "fact": channels.fact(grounding.best()), "epist": [0.9, MISSING]}
    return StepTable(TEXT, ((0, 17), (17, 47)), channels.score_steps(columns, grounding, judged=[0.2, 0.9]))


def test_a_step_says_why_it_scored_as_it_did_also_in_json() -> None:
    step = table().scores[1]
    assert list(step.channels) == list(CHANNELS)
    assert (step.channels["fact"], step.gate, step.document, step.contradicting, step.least) == (0.5, 0.5, 1, 0, -1)
    assert (step.conflated, step.conflated_not_neutral) == (False, True)
    assert step.reward == pytest.approx(0.75)
    assert step.channels["adv"] == Undefined("the channel was not scored")
    record = json.loads(json.dumps(table().to_json(), allow_nan=False))
    first, second = record["steps"]
    assert (second["text"], second["start"]) == ("The capital of Qatar is Dubai.", 17)
    assert second["channels"]["epist"] is None and second["undefined"]["epist"] == "not measured"
    assert set(second["undefined"]) == {"epist", "info", "triang", "adv", "min"}
    assert first["conflated_not_neutral"] is False and first["conflated"] is False
    assert record["reward"] == pytest.approx(table().reward) and record["undefined"] is None
    step = table().scores[0]
    assert set(step.to_json()) == {*type(step).__slots__, "undefined"}
    assert (table().mean("epist"), table().mean("logic")) == (0.9, 0.75)


def test_aspects_that_a_judge_stated_have_the_same_record_and_a_text_without_steps_an_undefined_reward() -> None:
    (step,) = channels.score_steps({name: [0.7] for name in CHANNELS})
    assert step.reward == pytest.approx(0.7) and step.document is None
    assert step.conflated == step.least == Undefined("the step was not checked against documents")
    empty = StepTable("", (), channels.score_steps({"logic": []}))
    assert empty.reward == empty.mean("logic") == Undefined("there is no step")
    assert empty.to_json() == {"reward": None, "undefined": "there is no step", "steps": []}


@st.composite
def distributions(draw: st.DrawFn) -> list[float]:
    weights = draw(st.lists(st.integers(0, 100), min_size=3, max_size=3).filter(any))
    return [weight / sum(weights) for weight in weights]


@given(distributions())
def test_f_nli_is_odd_and_in_range_and_a_neutral_pair_is_zero_but_under_expected(probabilities: list[float]) -> None:
    for reading in READINGS:
        f, mirror = channels.f_nli([probabilities, probabilities[::-1]], reading)
        assert -1 <= f <= 1 and f == pytest.approx(-mirror)
    if not channels.f_nli([probabilities])[0]:
        assert channels.f_nli([probabilities], "settled") == [0]


def test_no_pairs_give_no_scores_and_probabilities_of_single_and_half_precision_are_taken() -> None:
    assert channels.f_nli([]).shape == (0,)
    logits = np.array([[0.3, 1.2, -0.7]])
    soft = np.exp(logits) / np.exp(logits).sum()
    for kind in (np.float16, np.float32):
        assert channels.f_nli(soft.astype(kind), "expected")[0] == pytest.approx(soft[0, 2] - soft[0, 0], abs=1e-2)


def test_best_least_and_documents_are_those_of_the_row_or_called_by_their_numbers() -> None:
    grounding = Grounding.of([[0.0, -0.9, 0.4, 0.4], [], NO_CORPUS, [-0.2], [0.0]])
    assert list(grounding.best()) == [0.4, 0, NO_CORPUS, -0.2, 0]
    assert list(grounding.least()) == [-0.9, 0, NO_CORPUS, -0.2, 0]
    assert (grounding.deciding(), grounding.contradicting()) == ([2, None, None, 0, 0], [1, None, None, 0, None])
    assert grounding.entailing(0.4) == [(2, 3), (), NO_CORPUS, (), ()]
    first = Grounding.of([[0.0, -0.9, 0.4, 0.4], [], NO_CORPUS, [-0.2]])
    grounding = first.renumber([[7, 3, 9, 0], [], [], [5]])
    assert (grounding.deciding(), grounding.contradicting()) == ([9, None, None, 5], [3, None, None, 5])
    assert grounding.entailing(0.4) == [(9, 0), (), NO_CORPUS, ()]
    assert list(grounding.best()) == list(first.best())


def test_nothing_retrieved_is_neutral_and_still_gated_and_those_that_speak_are_not_neutral() -> None:
    best = Grounding.of([[]]).best()
    assert list(channels.fact(best)) == [0.5]
    assert list(channels.gate({"fact": channels.fact(best)})) == [0.5]
    assert list(channels.gate({"fact": channels.fact(Grounding.of([NO_CORPUS]).best())})) != [0.5]
    silent = Undefined("every document is neutral")
    grounding = Grounding.of([[0.0, -0.9, -0.3], [0.0], [], NO_CORPUS])
    assert list(grounding.best_of_those_that_speak()) == [-0.3, silent, silent, NO_CORPUS]
    # Under `expected` a neutral document has an f beside 0, and is neutral all the same.
    read = Grounding.from_probabilities([[[0.9, 0.1, 0], [0.1, 0.6, 0.3]]], "expected")
    assert list(read.best()) == pytest.approx([0.2])
    assert list(read.best_of_those_that_speak()) == pytest.approx([-0.9])


@given(st.lists(short_rows))
def test_best_and_least_are_the_maximum_and_the_minimum(grid: list[list[float]]) -> None:
    grounding = Grounding.of(grid)
    assert list(grounding.best()) == [max(row, default=0) for row in grid]
    assert list(grounding.least()) == [min(row, default=0) for row in grid]
    assert grounding.deciding() == [row.index(max(row)) if row else None for row in grid]
    worst = [row.index(min(row)) if min(row, default=0) < 0 else None for row in grid]
    assert grounding.contradicting() == worst


@given(st.lists(st.lists(distributions(), max_size=4)), st.sampled_from(READINGS))
def test_rows_of_probabilities_are_read_as_f_nli_reads_them(grid: list[list[list[float]]], reading: Reading) -> None:
    grounding = Grounding.from_probabilities([NO_CORPUS, *grid], reading)
    rows_of_f: list[Row] = [NO_CORPUS, *(channels.f_nli(row, reading) for row in grid)]
    assert list(grounding.best()) == list(Grounding.of(rows_of_f).best())
    for at, row in enumerate(grid, 1):
        assert grounding.neutral[at][grounding.retrieved[at]].tolist() == (channels.f_nli(row) == 0).tolist()
