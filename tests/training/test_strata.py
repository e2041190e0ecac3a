"""A rank by several rewards: no value of a later one makes up for an earlier one, and only the order counts."""

import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.channels.undefined import Score, Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training import (
    Conditioned,
    Gated,
    GroupReward,
    Lexicographic,
    StepReward,
    format,
    orm,
    orm_then_format_then_ra_msd,
    ra_msd_conditioned,
    ra_msd_gated,
    weights_of,
)
from eldgr_dspy.training.recipe import NAMES, RewardArguments, rewards_of
from tests.refusing import refused
from tests.training.calling import ByLength, Log, Model, Trainer, rows
from tests.training.given import Given, rewarded

UNKNOWN = Undefined("not measured")

few = st.sampled_from([0.0, 0.25, 0.5, 1.0])  # so that ties are drawn too
vectors = st.tuples(few | st.just(UNKNOWN), few | st.just(UNKNOWN), few | st.just(UNKNOWN))
groups = st.lists(vectors, min_size=2, max_size=6)

Vector = tuple[Score, Score, Score]


def places(group: Sequence[Sequence[Score]], group_size: int | None = None) -> list[float]:
    """The places of completions, each with a value of every reward."""
    rewards = [Given(f"r{at}", column) for at, column in enumerate(zip(*group, strict=True))]
    return rewarded(Lexicographic(rewards, group_size=group_size or len(group)), len(group))


def before(one: Vector, other: Vector) -> bool | None:
    """Whether one ranks before the other, written out; None if they are equal."""
    for mine, theirs in zip(one, other, strict=True):
        known, other_known = not isinstance(mine, Undefined), not isinstance(theirs, Undefined)
        if known != other_known:
            return known
        if known and mine != theirs:
            assert isinstance(mine, float) and isinstance(theirs, float)
            return mine > theirs
    return None


def test_a_later_reward_only_breaks_ties() -> None:
    assert places([(1.0, 0.0), (0.0, 1.0), (1.0, 0.5), (0.0, 1.0)]) == [2 / 3, 1 / 6, 1, 1 / 6]


@given(groups)
def test_a_completion_of_a_lower_stratum_never_outranks_one_of_a_higher(group: list[Vector]) -> None:
    found = places(group)
    for one, place in zip(group, found, strict=True):
        beaten = [before(one, other) for other in group]
        assert place == pytest.approx((beaten.count(True) + (beaten.count(None) - 1) / 2) / (len(group) - 1))


@given(groups, st.data())
def test_a_higher_value_of_any_reward_never_lowers_the_place(group: list[Vector], data: st.DataObject) -> None:
    at, which = data.draw(st.integers(0, len(group) - 1)), data.draw(st.integers(0, 2))
    value = group[at][which]
    higher = data.draw(st.floats(0 if isinstance(value, Undefined) else value, 2))
    raised = [*group]
    raised[at] = tuple(higher if column == which else one for column, one in enumerate(group[at]))  # type: ignore[assignment]
    assert places(raised)[at] >= places(group)[at]


@given(groups, st.randoms())
def test_the_position_in_the_group_decides_nothing(group: list[Vector], shuffled: Any) -> None:
    order = shuffled.sample(range(len(group)), len(group))
    found = places(group)
    assert places([group[at] for at in order]) == [found[at] for at in order]


@given(groups, st.lists(st.sampled_from([lambda x: x, lambda x: 1000 * x - 7, lambda x: x**3]), min_size=3, max_size=3))
def test_only_the_order_of_values_counts_and_not_their_scale(group: list[Vector], scales: list[Any]) -> None:
    scaled = [
        [one if isinstance(one, Undefined) else scale(one) for one, scale in zip(vector, scales, strict=True)]
        for vector in group
    ]
    assert places(scaled) == places(group)


def test_where_all_are_in_one_stratum_each_is_in_the_middle() -> None:
    assert places([(1.0, 0.5)] * 4) == places([(UNKNOWN, UNKNOWN)] * 4) == [0.5] * 4
    assert places([(1.0,)]) == [0.5]
    assert places([(1.0, 0.5), (1.0, 0.75)]) == [0.0, 1.0], "then the next reward decides"


def test_groups_are_ranked_apart_and_must_be_whole() -> None:
    assert places([(0.1,), (0.2,), (0.9,), (0.8,)], group_size=2) == [0, 1, 1, 0]
    assert "3 completions are not groups of 2 of one prompt each" in refused(
        lambda: places([(0.0,), (0.0,), (0.0,)], group_size=2)
    )


def test_the_trainer_says_how_many_completions_a_prompt_has() -> None:
    reward = Lexicographic([Given("one", [0.1, 0.2, 0.9, 0.8])])
    assert rewarded(reward, 4, log_metric=Trainer(Model(True)).log) == [0, 1, 1, 0]
    assert rewarded(reward, 4, log_metric=Trainer(Model(False)).log) == pytest.approx([0, 1 / 3, 1, 2 / 3])
    assert "'one' does not know how many completions a prompt has; give group_size" in refused(
        lambda: rewarded(reward, 4)
    )


def test_good_steps_never_lift_a_wrong_answer_above_a_right_one() -> None:
    log = Log()
    steps = StepReward(ByLength(), confidence=False)
    texts = ["A: Qatar", "So much is said of it that it is long.\nA: Chile", "It was Qatar.\nA: Qatar", "It was Qatar"]
    reward = Lexicographic([orm, format, steps], group_size=4)
    found = reward(["?"] * 4, texts, **rows(4), **log.arguments)
    assert found == pytest.approx([2 / 3, 1 / 3, 1, 0])
    name = "orm_then_format_then_ra_msd"
    assert (reward.__name__, log.metrics[f"{name}/orm"], log.metrics[f"{name}/undefined"]) == (name, 0.5, 0)
    assert 0 < log.metrics[f"{name}/ra_msd/fact"] < 1 and len(log.columns[f"{name}_ra_msd_steps"]) == 4


def test_what_cannot_be_ranked_by_is_refused() -> None:
    assert "rewards must be one or more rewards" in refused(lambda: Lexicographic([]))
    assert "group_size must be a whole number of at least 1; got 0" in refused(
        lambda: Lexicographic([orm], group_size=0)
    )
    with pytest.raises(ArgumentError, match="2 rewards are named 'orm'"):
        Lexicographic([orm, orm])


def test_an_error_of_a_part_is_raised() -> None:
    with pytest.raises(ArgumentError, match="'orm' needs the column 'task'"):
        rewarded(Lexicographic([Given("one", [0.0]), orm], group_size=1), 1)


def test_it_is_pickled_and_may_be_made_of_groups() -> None:
    inner = GroupReward(group_size=2)
    reward = pickle.loads(pickle.dumps(Lexicographic([inner, format], group_size=2)))  # noqa: S301
    assert reward.compares and reward.needs == ("question", "evidence", "task")
    assert reward(["?"] * 2, ["Qatar", "A: Chile"], **rows(2)) == [1, 0]


# --- by name ----------------------------------------------------------------------------------------------------------


def test_the_named_ones_are_what_their_names_say() -> None:
    named: list[Any] = [ra_msd_conditioned, ra_msd_gated, orm_then_format_then_ra_msd]
    assert [type(one) for one in named] == [Conditioned, Gated, Lexicographic] and named[0].at_least == 1.0
    assert [[part.__name__ for part in one.parts] for one in named] == [
        ["orm", "ra_msd"],
        ["ra_msd"],
        ["orm", "format", "ra_msd"],
    ]
    assert weights_of(named) == [1.0] * 3


@pytest.mark.parametrize("name", ["ra_msd_conditioned", "ra_msd_gated", "orm_then_format_then_ra_msd"])
def test_a_recipe_names_them_and_its_weights_and_gate_are_theirs(name: str) -> None:
    arguments = RewardArguments(rewards=[name], nli="folder", drop=["fact"], tau=0.25)
    (found,) = rewards_of(arguments)
    assert name in NAMES and found.__name__ == name
    assert found.parts[-1].scorer.weighting == arguments.weighting() and found.parts[-1].scorer.nli.model == "folder"
    if isinstance(found, Gated):
        assert (set(found.weighting.gated), found.weighting.tau) == ({"logic"}, 0.25)
