"""Conflation, the unsupported-step rate, the variance and the table say what the paper's equations say."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eldgr_dspy import channels
from eldgr_dspy.channels import CHANNELS, PAPER, Channel, Grounding, StepTable, Undefined
from eldgr_dspy.errors import ArgumentError

MISSING = Undefined("not measured")
unit = st.floats(0, 1)
rows = st.lists(st.sampled_from([-1.0, -0.9, 0.0, 0.5, 1.0]) | st.floats(-1, 1), max_size=5)


# --- conflation -------------------------------------------------------------------------------------------------------
def test_a_high_score_that_every_document_contradicts_is_conflated() -> None:
    grounding = Grounding.of([[-0.98], [-0.98, -0.8], [-0.79], [-0.98]])
    assert channels.conflated([0.85, 0.9, 0.9, 0.84], grounding) == [True, True, False, False]


def test_one_neutral_document_silences_the_papers_form_and_not_the_other() -> None:
    grounding = Grounding.of([[-0.98, 0.0]])  # hazard: contradicting documents beside neutral ones
    assert channels.conflated([0.9], grounding) == [False]
    assert channels.conflated([0.9], grounding, over="not_neutral") == [True]


def test_an_empty_set_of_documents_is_undefined_and_not_unconflated() -> None:
    grounding = Grounding.of([[], MISSING, [0.0]])
    empty = Undefined("no document was retrieved")
    assert channels.conflated([0.9, 0.9, 0.9], grounding) == [empty, MISSING, False]
    silent = Undefined("every document is neutral")
    assert channels.conflated([0.9, 0.9, 0.9], grounding, over="not_neutral") == [silent, MISSING, silent]
    assert channels.conflated([MISSING], Grounding.of([[1.0]])) == [MISSING]


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


@pytest.mark.parametrize(
    ("eta", "delta"), [(0, 0.9), (0.1, 0.9), (-0.8, 0), (-0.8, 1.1), (math.nan, 0.9), (-0.8, math.nan)]
)
def test_thresholds_of_conflation_have_their_ranges(eta: float, delta: float) -> None:
    with pytest.raises(ArgumentError, match="eta < 0 < delta <= 1"):
        channels.conflated([1], Grounding.of([[0.0]]), eta, delta)


def test_an_unknown_set_of_documents_and_different_lengths_are_refused() -> None:
    over: Any = "engaged"
    with pytest.raises(ArgumentError, match="over='engaged' is not known; use one of 'retrieved', 'not_neutral'"):
        channels.conflated([1], Grounding.of([[0.0]]), over=over)
    with pytest.raises(ArgumentError, match=r"\[1, 2\] entries"):
        channels.conflated([1], Grounding.of([[0.0], [0.0]]))


@given(st.lists(rows, min_size=1), st.floats(-1, 1))
def test_the_unsupported_rate_is_the_share_of_facts_at_or_below_eta(given_: list[list[float]], eta: float) -> None:
    grounding = Grounding.of(given_)
    best = [max(row, default=0) for row in given_]
    assert channels.unsupported_rate(grounding, eta) == pytest.approx(np.mean([value <= eta for value in best]))


def test_the_unsupported_rate_leaves_out_what_has_no_corpus() -> None:
    assert channels.unsupported_rate(Grounding.of([[-1.0], [0.0], MISSING, []])) == pytest.approx(1 / 3)
    assert isinstance(channels.unsupported_rate(Grounding.of([MISSING])), Undefined)
    with pytest.raises(ArgumentError, match="eta must be a number from -1 to 1, as f_NLI is; got -2"):
        channels.unsupported_rate(Grounding.of([[0.0]]), -2)


# --- variance ---------------------------------------------------------------------------------------------------------

matrices = st.integers(1, 8).flatmap(
    lambda n: st.fixed_dictionaries({name: st.lists(unit, min_size=n, max_size=n) for name in CHANNELS})
)


@given(matrices, st.sampled_from([(), ("logic",), ("epist", "min")]))
def test_the_terms_of_the_variance_sum_to_it(columns: dict[Channel, list[float]], drop: tuple[Channel, ...]) -> None:
    weighting = PAPER.without(*drop)
    parts = channels.variance_decomposition(columns, weighting)
    assert parts.uncorrelated + sum(parts.shared.values()) == pytest.approx(parts.total, abs=1e-12)
    assert parts.total == pytest.approx(float(channels.weighted_mean(columns, weighting).numbers.var()), abs=1e-12)
    assert len(parts.own) == 7 and len(parts.shared) == 21


def test_the_pairs_that_lower_the_variance_are_named() -> None:
    columns: Any = {name: [0.5, 0.5] for name in CHANNELS}
    columns |= {"logic": [1.0, 0.5], "fact": [0.0, 0.5]}
    parts = channels.variance_decomposition(columns)
    assert parts.negative == (("logic", "fact"),)
    assert parts.shared["logic", "fact"] == pytest.approx(-2 * 0.2 * 0.2 * 0.0625)
    assert parts.total == pytest.approx(0) and parts.uncorrelated == pytest.approx(2 * 0.04 * 0.0625)


def test_a_negative_pair_alone_does_not_bring_the_variance_below_that_of_uncorrelated_channels() -> None:
    """The paper's appendix concludes otherwise; positive pairs can outweigh the negative one."""
    columns: Any = {name: [0.0, 1.0] for name in CHANNELS} | {"epist": [1.0, 0.0]}
    parts = channels.variance_decomposition(columns)
    assert ("logic", "epist") in parts.negative and parts.total > parts.uncorrelated


def test_one_step_has_no_variance_and_no_step_is_refused() -> None:
    parts = channels.variance_decomposition({name: [0.3] for name in CHANNELS})
    assert (parts.total, parts.uncorrelated, parts.negative) == (0, 0, ())
    with pytest.raises(ArgumentError, match="A variance needs at least one step"):
        channels.variance_decomposition({name: [] for name in CHANNELS})


def test_the_variance_refuses_what_is_undefined_until_its_channel_is_dropped() -> None:
    columns: Any = {name: [0.3, 0.4] for name in CHANNELS} | {"epist": [0.1, MISSING]}
    with pytest.raises(ArgumentError, match=r"epist\[1\] is undefined \(not measured\).*without\('epist'\)"):
        channels.variance_decomposition(columns)
    assert channels.variance_decomposition(columns, PAPER.without("epist")).n == 2


# --- the table --------------------------------------------------------------------------------------------------------

TEXT = "Qatar hosted it. The capital of Qatar is Dubai."


def table() -> StepTable:
    grounding = Grounding.of([[1.0, 0.0], [-1.0, 0.0]])
    columns: Any = {"logic": [0.5, 1.0], "fact": channels.fact(grounding.best()), "epist": [0.9, MISSING]}
    return StepTable(TEXT, ((0, 17), (17, 47)), channels.score_steps(columns, grounding, judged=[0.2, 0.9]))


def test_a_step_says_why_it_scored_as_it_did() -> None:
    step = table().scores[1]
    assert list(step.channels) == list(CHANNELS)
    assert (step.channels["fact"], step.gate, step.document, step.contradicting, step.least) == (0.5, 0.5, 1, 0, -1)
    assert (step.conflated, step.conflated_not_neutral) == (False, True)
    assert step.reward == pytest.approx(0.75)
    assert step.channels["adv"] == Undefined("the channel was not scored")


def test_in_json_undefined_is_null_beside_its_reason() -> None:
    text = json.dumps(table().to_json(), allow_nan=False)
    first, second = json.loads(text)["steps"]
    assert (second["text"], second["start"]) == ("The capital of Qatar is Dubai.", 17)
    assert second["channels"]["epist"] is None and second["undefined"]["epist"] == "not measured"
    assert set(second["undefined"]) == {"epist", "info", "triang", "adv", "min"}
    assert first["conflated_not_neutral"] is False and first["conflated"] is False
    assert json.loads(text)["reward"] == pytest.approx(table().reward) and json.loads(text)["undefined"] is None


def test_every_field_of_the_record_is_in_its_json() -> None:
    step = table().scores[0]
    assert set(step.to_json()) == {*type(step).__slots__, "undefined"}


def test_aspects_that_a_judge_stated_have_the_same_record() -> None:
    (step,) = channels.score_steps({name: [0.7] for name in CHANNELS})
    assert step.reward == pytest.approx(0.7) and step.document is None
    assert step.conflated == step.least == Undefined("the step was not checked against documents")


def test_a_text_without_a_measured_step_has_an_undefined_reward() -> None:
    empty = StepTable("", (), channels.score_steps({"logic": []}))
    assert empty.reward == empty.mean("logic") == Undefined("there is no step")
    assert empty.to_json() == {"reward": None, "undefined": "there is no step", "steps": []}


def test_the_mean_of_a_channel_is_over_the_steps_where_it_is_defined() -> None:
    assert (table().mean("epist"), table().mean("logic")) == (0.9, 0.75)


def test_spans_and_scores_have_to_be_as_many() -> None:
    with pytest.raises(ArgumentError, match="1 spans were given with 2 scores"):
        StepTable(TEXT, ((0, 3),), table().scores)
