"""A reward that counts only where another passes can't be bought; what can't be told is undefined and earns 0."""

import math
import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.channels.undefined import Score, Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training import Conditioned, StepReward, format, orm, weights_of
from tests.refusing import refused
from tests.scoring.readers import Reader
from tests.training.calling import Fixed, Log, by_heart, rows
from tests.training.given import Given, rewarded

UNKNOWN = Undefined("not measured")

scores = st.none().map(lambda _: UNKNOWN) | st.floats(0, 1)
pairs = st.lists(st.tuples(scores, scores), min_size=1, max_size=5)


def conditioned(pairs: Sequence[tuple[Score, Score]], at_least: float = 0.5) -> list[float]:
    """The reward of completions whose condition and reward are given."""
    condition, reward = (
        Given(name, column) for name, column in zip(("on", "reward"), zip(*pairs, strict=True), strict=True)
    )
    return rewarded(Conditioned(reward, on=condition, at_least=at_least), len(pairs))


@given(pairs, st.floats(-1, 2))
@example([(0.5, 0.25), (0.49, 1.0), (1.0, 0.75)], 0.5)
def test_each_completion_earns_its_reward_or_nothing(drawn: list[tuple[Score, Score]], at_least: float) -> None:
    for (on, reward), result in zip(drawn, conditioned(drawn, at_least), strict=True):
        passes = not isinstance(on, Undefined) and on >= at_least
        assert result == (reward if passes and not isinstance(reward, Undefined) else 0.0)


def test_what_is_undefined_earns_nothing_and_is_logged_as_undefined() -> None:
    log = Log()
    reward = Conditioned(Given("steps", [0.5, UNKNOWN, UNKNOWN, 0.5]), on=Given("on", [1, 1, 0, UNKNOWN]), name="both")
    assert rewarded(reward, 4, **log.arguments) == [0.5, 0, 0, 0]
    assert log.metrics["both/undefined"] == 0.5, "where the condition fails, the reward need not be known"
    assert log.metrics["both/passed"] == pytest.approx(2 / 3) and log.metrics["both/on"] == pytest.approx(2 / 3)
    assert (log.metrics["both/steps"], log.metrics["both/steps/undefined"], log.metrics["both/on/undefined"]) == (
        0.5,
        0.5,
        0.25,
    )


def test_a_row_without_gold_favours_no_completion_of_it() -> None:
    reward = Conditioned(StepReward(Fixed(), confidence=False), on=orm)
    texts = ["The host was Qatar.\nA: Qatar", "The host was Dubai.\nA: Dubai"]
    assert reward(["?"] * 2, texts, **rows(2, gold=[None, None])) == [0.0, 0.0]
    assert reward(["?"] * 2, texts, **rows(2)) == [1.0, 0.0]


def test_a_wrong_answer_earns_nothing_for_any_steps_and_is_logged_with_them() -> None:
    log = Log()
    steps = StepReward(NLIScorer(Reader(by_heart)), confidence=False)
    texts = ["The host was Qatar.\nA: Chile", "The host was Qatar.\nA: Qatar"]
    alone = steps(["?"] * 2, texts, **rows(2))
    reward = Conditioned(steps, on=orm)
    assert reward(["?"] * 2, texts, **rows(2), **log.arguments) == [0.0, alone[1]] and alone[0] > 0.5
    assert log.metrics["ra_msd_conditioned/orm/exact_match"] == 0.5
    assert log.metrics["ra_msd_conditioned/ra_msd"] == pytest.approx(sum(alone) / 2)
    assert log.columns["ra_msd_conditioned_orm_answer"] == ["Chile", "Qatar"]


def test_a_reward_that_is_its_own_condition_is_a_threshold() -> None:
    one = Given("one", [0.4, 0.6])
    assert rewarded(Conditioned(one, on=one, at_least=0.5), 2) == [0.0, 0.6] and one.calls == 1


@pytest.mark.parametrize("at_least", [math.nan, math.inf, -math.inf, True, "1", None])
def test_a_threshold_that_is_not_a_finite_number_is_refused(at_least: Any) -> None:
    sentence = refused(lambda: Conditioned(format, on=orm, at_least=at_least))
    assert sentence == f"at_least must be a finite number; got {at_least!r}. Give one, such as 1.0."


def test_it_is_pickled_named_and_weighed_as_the_other_rewards() -> None:
    reward = Conditioned(format, on=orm)
    again = pickle.loads(pickle.dumps(reward))  # noqa: S301
    assert (again.__name__, again.needs, again.at_least) == ("format_conditioned", ("gold", "task"), 1.0)
    assert weights_of([orm, reward, Conditioned(format, on=orm, name="other")]) == [3.0, 1.0, 1.0]
    with pytest.raises(ArgumentError, match="2 rewards are named 'orm'"):
        Conditioned(Given("orm", [1.0]), on=orm)
