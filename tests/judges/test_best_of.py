"""Best of n by a reward: as `dspy.BestOfN` chooses, and what a reward may return."""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import dspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.judges.counting_judges import BestOf
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.programs.testing import scripted_lm
from tests.judges.balloting import ballot

POOL = ballot("aab-c", texts=("I say a", "a", "It may be b", "", "c, I think"))


def length(example: dspy.Example, pred: dspy.Prediction) -> int:
    """A reward that reads nothing but the text."""
    return len(pred.text)


def brevity(example: dspy.Example, pred: dspy.Prediction) -> int:
    """Another one of the same kind."""
    return -len(pred.text)


def rewards(*values: Any) -> Callable[[Any, Any], Any]:
    """A reward that gives each candidate of a ballot its value, by the text that names its place."""

    def reward(example: dspy.Example, pred: dspy.Prediction) -> Any:
        value = values[int(pred.text)]
        if isinstance(value, Exception):
            raise value
        return value

    return reward


def judged(keys: str, *values: Any) -> Any:
    texts = [str(index) for index in range(len(keys))]
    return BestOf(rewards(*values))(ballot=ballot(keys, texts=texts))


# -- the reward --
def test_the_highest_reward_wins_and_a_candidate_without_a_vote_gets_none() -> None:
    assert BestOf(length)(ballot=POOL).preferred == 2  # 11 characters; "c, I think" has 10
    assert BestOf(brevity)(ballot=POOL).preferred == 1
    assert BestOf(lambda example, pred: pred.answer == "c")(ballot=POOL).preferred == 4


def test_a_reward_is_told_question_evidence_text_and_answer_and_nothing_else() -> None:
    told: list[Any] = []

    def reward(example: dspy.Example, pred: dspy.Prediction) -> float:
        told.append((dict(example.inputs()), dict(pred)))
        return 0.0

    BestOf(reward)(ballot=POOL)
    assert len(told) == 4
    inputs = {"question": "Which?", "evidence": ["T\nSome text."]}
    assert told[2] == (inputs, {"text": "It may be b", "answer": "b"})


def test_ties_go_to_the_answer_with_more_votes_then_to_the_earliest() -> None:
    assert [judged("abb", *values).preferred for values in ((1, 1, 1), (1, 0, 1), (1, 0, 0))] == [1, 2, 0]
    assert judged("ab", 0.5, 0.5).preferred == 0


@pytest.mark.parametrize(
    "yes", [True, np.True_, 1, np.int64(1), np.float32(1), dspy.Prediction(score=1, feedback="so")]
)
def test_truth_values_and_numbers_of_numpy_count(yes: Any) -> None:
    reply = judged("aab", 0, False, yes)
    assert (reply.preferred, [one["scalar"] for one in reply.assessments]) == (2, [0.0, 0.0, 1.0])


@pytest.mark.parametrize(
    "value", [None, math.nan, math.inf, -math.inf, "0.5", [0.5], 1j, Decimal("NaN"), np.float64("nan")]
)
def test_what_is_not_a_finite_number_is_an_abstention_that_names_the_candidate(value: Any) -> None:
    reply = judged("aabb", 0.1, 0.9, value, 0.2)
    assert reply.abstained.startswith("the reward of candidate 2 is ")
    assert reply.abstained.endswith(", not a finite number")
    assert "preferred" not in reply


def test_a_reward_that_raises_is_an_abstention_with_the_error() -> None:
    reply = judged("aab", 0.1, ValueError("no such word"), 0.9)
    assert reply.abstained.startswith("the reward failed on candidate 1: ValueError: no such word")
    assert judged("ab", 0.1, 10**400).abstained.startswith("the reward failed on candidate 1: OverflowError: ")


@pytest.mark.parametrize("error", [dspy.LMServerError("away"), ConnectionError("away"), TimeoutError("late")])
def test_a_call_of_a_reward_that_does_not_come_through_is_raised(error: Exception) -> None:
    with pytest.raises(type(error)):
        judged("aab", 0.1, error, 0.9)


# -- as dspy.BestOfN --
class OneByOne(dspy.Module):  # a program that returns the candidates of a pool one by one: DSPy numbers its attempts
    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self.texts, self.predict = texts, dspy.Predict("question -> answer")

    def forward(self, question: str) -> Any:
        lm: Any = self.predict.lm
        number = lm.kwargs["rollout_id"]
        return dspy.Prediction(text=self.texts[number], answer=str(number))


@settings(max_examples=20)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True))
def test_it_chooses_as_dspy_best_of_n_does_without_a_threshold(values: list[float]) -> None:
    """Rewards differ: of equal ones DSPy takes the earliest, and the judge the answer with more votes."""
    program = OneByOne([str(index) for index in range(len(values))])
    program.set_lm(scripted_lm(lambda request: ""))
    best: Any = dspy.BestOfN(program, len(values), rewards(*values), math.inf)
    choice = int(best(question="Which?").answer)
    assert judged("abcde"[: len(values)], *values).preferred == choice == values.index(max(values))


def test_what_is_not_a_function_is_refused() -> None:
    wrong: Any = 0.5
    with pytest.raises(ArgumentError, match="reward must be a function or a DSPy metric; got float"):
        BestOf(wrong)


# -- what identifies them --
def test_a_changed_reward_is_another_judge() -> None:
    told = [describe(BestOf(reward)) for reward in (length, brevity, length)]
    assert told[0] == told[2] != told[1]
    assert told[0]["attributes"]["self"]["source"]["name"].endswith(":length")


def test_a_reward_may_ask_the_lm_of_the_settings_so_another_lm_is_another_judge() -> None:
    told = []
    for model in ("scripted/one", "scripted/other", "scripted/one"):
        with dspy.context(lm=scripted_lm([], model=model)):
            told.append(describe(BestOf(length)))
    assert told[0] == told[2] != told[1] and told[0]["lm"]["model"] == "scripted/one"
