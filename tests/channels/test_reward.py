"""Weights, gate, drop and the reward of a completion are the paper's, and say so where something is undefined."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy import channels
from eldgr_dspy.channels import CHANNELS, PAPER, WEIGHTS, Channel, Score, Undefined, Weighting
from eldgr_dspy.errors import ArgumentError

MISSING = Undefined("not measured")
unit = st.floats(0, 1)
Table = dict[Channel, list[Score]]
# Names as a person may mistype them.
LOOSE: Any = Weighting
WITHOUT: Any = PAPER.without
REWARD: Any = channels.step_reward
COMPLETION: Any = channels.completion_reward


@st.composite
def tables(draw: st.DrawFn, defined: bool = False) -> Table:
    n = draw(st.integers(1, 5))
    score: st.SearchStrategy[Score] = unit if defined else unit | st.just(MISSING)
    return {name: draw(st.lists(score, min_size=n, max_size=n)) for name in CHANNELS}


weightings = st.sampled_from(
    [PAPER, PAPER.without("logic"), PAPER.without("fact", "logic"), PAPER.without("min", "epist")]
)


def by_hand(row: dict[Channel, float], weighting: Weighting) -> float | None:
    """Eq. 2 for one step, without numpy."""
    gated = [score for name, score in row.items() if name in weighting.gated]
    if gated and min(gated) < weighting.tau:
        return min(gated)
    total = math.fsum(weighting.weights[name] for name in row)
    return math.fsum(weighting.weights[name] * score for name, score in row.items()) / total if total else None


def test_the_weights_are_the_papers() -> None:
    assert list(WEIGHTS.items()) == list(
        zip("logic fact epist info triang adv min".split(), (0.20, 0.20, 0.10, 0.15, 0.10, 0.15, 0.10), strict=True)
    )
    assert PAPER.tau == 0.5 and PAPER.gated == {"logic", "fact"}


@given(tables(), weightings)
def test_the_step_reward_is_equation_2_over_what_is_defined(table: Table, weighting: Weighting) -> None:
    for at, reward in enumerate(channels.step_reward(table, weighting)):
        row: Any = {name: column[at] for name, column in table.items() if not isinstance(column[at], Undefined)}
        expected = by_hand(row, weighting)
        assert isinstance(reward, Undefined) if expected is None else reward == pytest.approx(expected)


@given(tables(defined=True), st.sampled_from(CHANNELS), unit)
def test_the_reward_never_falls_on_one_side_of_the_gate(table: Table, name: Channel, score: float) -> None:
    higher: Table = {**table, name: [max(score, old) for old in table[name] if not isinstance(old, Undefined)]}
    before, after = channels.step_reward(table), channels.step_reward(higher)
    sides = [channels.gate(one).numbers >= channels.TAU for one in (table, higher)]
    assert (after.numbers >= before.numbers - 1e-12)[sides[0] == sides[1]].all()


def test_the_reward_may_fall_where_a_step_passes_the_gate() -> None:
    """Below the gate a step earns its gate, above it the mean: Eq. 2 is not monotone there."""
    others: Table = {name: [0.0] for name in CHANNELS}
    below: Table = {**others, "logic": [1.0], "fact": [0.375]}
    above: Table = {**others, "logic": [1.0], "fact": [0.5]}
    assert channels.step_reward(below).numbers == pytest.approx([0.375])
    assert channels.step_reward(above).numbers == pytest.approx([0.3])


@given(tables(), st.sampled_from(CHANNELS))
def test_an_undefined_channel_counts_as_a_dropped_one(table: Table, name: Channel) -> None:
    unmeasured: Table = {**table, name: [MISSING] * len(table[name])}
    kept = channels.step_reward(unmeasured)
    for dropped in (
        channels.step_reward(unmeasured, PAPER.without(name)),
        channels.step_reward(table, PAPER.without(name)),
    ):
        assert kept.defined.tolist() == dropped.defined.tolist()
        assert kept.numbers == pytest.approx(dropped.numbers)


@pytest.mark.parametrize("name", CHANNELS)
def test_a_drop_zeroes_the_weight_renormalises_the_rest_and_ungates(name: Channel) -> None:
    dropped = PAPER.without(name)
    assert dropped.weights[name] == 0 and math.fsum(dropped.weights.values()) == pytest.approx(1)
    for other in set(CHANNELS) - {name}:
        assert dropped.weights[other] == pytest.approx(WEIGHTS[other] / (1 - WEIGHTS[name]))
    assert dropped.gated == {"logic", "fact"} - {name}


def test_drops_one_after_the_other_are_a_drop_of_both() -> None:
    one, both = PAPER.without("logic").without("min"), PAPER.without("logic", "min")
    assert one.gated == both.gated == {"fact"}
    assert list(one.weights.values()) == pytest.approx(list(both.weights.values()))


def test_a_low_gate_is_the_reward_whatever_the_rest_scores() -> None:
    full: Table = {name: [1.0, 1.0, 1.0] for name in CHANNELS}
    table: Table = {**full, "logic": [0.5, 0.49, 0.2], "fact": [0.5, 1.0, 0.1]}
    assert list(channels.gate(table)) == [0.5, 0.49, 0.1]
    assert list(channels.step_reward(table)) == pytest.approx([0.8, 0.49, 0.1])
    assert list(channels.weighted_mean(table)) == pytest.approx([0.8, 0.898, 0.66])


def test_an_undefined_channel_leaves_the_gate_and_both_leave_none() -> None:
    table: Table = {"logic": [MISSING, 0.1, MISSING], "fact": [0.2, MISSING, MISSING], "min": [1.0, 1.0, 0.3]}
    assert list(channels.gate(table)) == [0.2, 0.1, Undefined("no channel of the gate was measured")]
    assert list(channels.step_reward(table)) == pytest.approx([0.2, 0.1, 0.3])


def test_a_step_of_which_nothing_is_measured_is_undefined() -> None:
    table: Table = {"epist": [MISSING]}
    reason = Undefined("no channel that has a weight was measured")
    assert list(channels.step_reward(table)) == list(channels.weighted_mean(table)) == [reason]


def test_a_text_without_steps_has_no_rewards() -> None:
    assert list(channels.step_reward({"logic": []})) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Weighting({"logic": 0.5}), r"weights=\{'logic': 0.5\} must each be from 0 to 1 and sum to 1"),
        (lambda: Weighting({"logic": 1.5, "fact": -0.5}), "must each be from 0 to 1 and sum to 1"),
        (lambda: Weighting({"logic": math.nan}), "and sum to 1"),
        (lambda: Weighting(tau=math.nan), "tau must be a number from 0 to 1; got nan"),
        (lambda: LOOSE({"Logic": 1}), "'Logic' is not a channel; the channels are logic, fact"),
        (lambda: WITHOUT("facts"), "'facts' is not a channel"),
        (lambda: PAPER.without(*CHANNELS), "no channel has a weight"),
        (lambda: REWARD({"minimality": [1]}), "'minimality' is not a channel"),
        (lambda: channels.step_reward({"logic": [math.nan]}), r"logic\[0\] must be a number from 0 to 1; got nan"),
        (lambda: channels.step_reward({"logic": [1], "fact": [1, 1]}), r"\[1, 2\] entries"),
        (lambda: channels.step_reward({}), "No column was given"),
        (lambda: channels.completion_reward(1.5, 0, []), r"outcome\[0\] must be .*; got 1\.5"),
        (lambda: COMPLETION(1, MISSING, []), "format_ must be .*; got Undefined"),
        (lambda: channels.completion_reward(1, 1, [math.nan]), r"rewards\[0\] must be .*; got nan"),
    ],
)
def test_what_cannot_be_combined_is_refused_in_a_sentence(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


@given(unit, unit, st.lists(unit | st.just(MISSING), max_size=6))
def test_a_completion_earns_the_sum_of_the_paper(outcome: float, form: float, rewards: list[Score]) -> None:
    earned = channels.completion_reward(outcome, form, rewards)
    measured = [reward for reward in rewards if not isinstance(reward, Undefined)]
    assert earned.total == pytest.approx(3 * outcome + 0.5 * form + (np.mean(measured) if measured else 0))
    assert isinstance(earned.steps, Undefined) == (not measured)


@pytest.mark.parametrize("rewards", [[], [MISSING, MISSING]])
def test_a_completion_without_a_measurable_step_earns_0_for_its_steps_and_says_undefined(rewards: list[Score]) -> None:
    earned = channels.completion_reward(1, 1, rewards)
    assert earned.total == 3.5 and isinstance(earned.steps, Undefined)
