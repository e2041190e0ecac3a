"""Weights, gate, drop and the reward of a completion are the paper's, and say so where something is undefined."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy import channels
from eldgr_dspy.channels import CHANNELS, PAPER, WEIGHTS, Channel, Score, Undefined, Weighting

MISSING = Undefined("not measured")
unit = st.floats(0, 1)
Table = dict[Channel, list[Score]]
drops: list[tuple[Channel, ...]] = [("logic",), ("fact", "logic"), ("min", "epist")]
weightings = st.sampled_from([PAPER, *(PAPER.without(*names) for names in drops)])


@st.composite
def tables(draw: st.DrawFn, full: bool = False) -> Table:
    n = draw(st.integers(1, 5))
    score: st.SearchStrategy[Score] = unit if full else unit | st.just(MISSING)
    return {name: draw(st.lists(score, min_size=n, max_size=n)) for name in CHANNELS}


def by_hand(row: dict[Channel, float], weighting: Weighting) -> float | None:
    """Eq. 2 for one step, without numpy."""
    gates = [score for name, score in row.items() if name in weighting.gated]
    if gates and min(gates) < weighting.tau:
        return min(gates)
    total = math.fsum(weighting.weights[name] for name in row)
    return math.fsum(weighting.weights[name] * score for name, score in row.items()) / total if total else None


def test_the_weights_are_the_papers_also_after_drops_and_a_reward_may_fall_where_a_step_passes_the_gate() -> None:
    assert " ".join(WEIGHTS) == "logic fact epist info triang adv min"
    assert [*WEIGHTS.values()] == [0.20, 0.20, 0.10, 0.15, 0.10, 0.15, 0.10]
    assert PAPER.tau == 0.5 and PAPER.gated == {"logic", "fact"}
    assert [channels.completion_reward(1, 1, rewards).total for rewards in ([], [MISSING, MISSING])] == [3.5, 3.5]
    one, both = PAPER.without("logic").without("min"), PAPER.without("logic", "min")
    assert one.gated == both.gated == {"fact"}
    assert list(one.weights.values()) == pytest.approx(list(both.weights.values()))
    # Below the gate a step earns its gate, above it the mean: Eq. 2 is not monotone there.
    others: Table = {name: [0.0] for name in CHANNELS}
    below: Table = {**others, "logic": [1.0], "fact": [0.375]}
    above: Table = {**others, "logic": [1.0], "fact": [0.5]}
    assert channels.step_reward(below).numbers == pytest.approx([0.375])
    assert channels.step_reward(above).numbers == pytest.approx([0.3])


@given(tables(), weightings)
def test_the_step_reward_is_equation_2_over_what_is_defined(table: Table, weighting: Weighting) -> None:
    for at, reward in enumerate(channels.step_reward(table, weighting)):
        row: Any = {name: column[at] for name, column in table.items() if not isinstance(column[at], Undefined)}
        expected = by_hand(row, weighting)
        assert isinstance(reward, Undefined) if expected is None else reward == pytest.approx(expected)


@given(tables(full=True), st.sampled_from(CHANNELS), unit)
def test_the_reward_never_falls_on_one_side_of_the_gate(table: Table, name: Channel, score: float) -> None:
    higher: Table = {**table, name: [max(score, old) for old in table[name] if not isinstance(old, Undefined)]}
    before, after = channels.step_reward(table), channels.step_reward(higher)
    sides = [channels.gate(one).numbers >= channels.TAU for one in (table, higher)]
    assert (after.numbers >= before.numbers - 1e-12)[sides[0] == sides[1]].all()


@given(tables(), st.sampled_from(CHANNELS))
def test_an_undefined_channel_counts_as_a_dropped_one(table: Table, name: Channel) -> None:
    gaps: Table = {**table, name: [MISSING] * len(table[name])}
    whole = channels.step_reward(gaps)
    for other in (gaps, table):
        part = channels.step_reward(other, PAPER.without(name))
        assert whole.defined.tolist() == part.defined.tolist()
        assert whole.numbers == pytest.approx(part.numbers)


@pytest.mark.parametrize("name", CHANNELS)
def test_a_drop_zeroes_the_weight_renormalises_the_rest_and_ungates(name: Channel) -> None:
    rest = PAPER.without(name)
    assert rest.weights[name] == 0 and math.fsum(rest.weights.values()) == pytest.approx(1)
    for other in set(CHANNELS) - {name}:
        assert rest.weights[other] == pytest.approx(WEIGHTS[other] / (1 - WEIGHTS[name]))
    assert rest.gated == {"logic", "fact"} - {name}


@given(unit, unit, st.lists(unit | st.just(MISSING), max_size=6))
@example(1, 1, [])
@example(1, 1, [MISSING, MISSING])  # without a measurable step it earns 0 for its steps, and says undefined
def test_a_completion_earns_the_sum_of_the_paper(outcome: float, form: float, rewards: list[Score]) -> None:
    result = channels.completion_reward(outcome, form, rewards)
    scores = [reward for reward in rewards if not isinstance(reward, Undefined)]
    assert result.total == pytest.approx(3 * outcome + 0.5 * form + (np.mean(scores) if scores else 0))
    assert isinstance(result.steps, Undefined) == (not scores)
