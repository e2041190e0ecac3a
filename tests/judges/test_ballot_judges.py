"""Judges that ask no LM: best of n by a reward, as `dspy.BestOfN` chooses, and the selector in the style of DRM."""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import dspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.programs.judges.counting_judges import BestOf, WeightedVote
from eldgr_dspy.programs.judges.drm import DimensionalSelector
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.rule.ballots import Ballot, Logprobs, Stated
from tests.case_tables import each_case
from tests.judges.balloting import ballot, majority, shuffled
from tests.modules import Does
from tests.refusing import refused, says

POOL = ballot("aab-c", texts=("I say a", "a", "It may be b", "", "c, I think"))


def length(example: dspy.Example, pred: dspy.Prediction) -> int:
    return len(pred.text)


def brevity(example: dspy.Example, pred: dspy.Prediction) -> int:
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
    return BestOf(rewards(*values))(ballot=ballot(keys, texts=[str(index) for index in range(len(keys))]))


def test_the_highest_reward_wins_then_the_answer_with_more_votes_then_the_earliest() -> None:
    """It is told question, evidence, text and answer and nothing else."""
    assert BestOf(length)(ballot=POOL).preferred == 2  # 11 characters; "c, I think" has 10
    assert BestOf(brevity)(ballot=POOL).preferred == 1
    assert BestOf(lambda example, pred: pred.answer == "c")(ballot=POOL).preferred == 4
    told: list[Any] = []

    def reward(example: dspy.Example, pred: dspy.Prediction) -> float:
        told.append((dict(example.inputs()), dict(pred)))
        return 0.0

    BestOf(reward)(ballot=POOL)
    assert len(told) == 4
    inputs = {"question": "Which?", "evidence": ["T\nSome text."]}
    assert told[2] == (inputs, {"text": "It may be b", "answer": "b"})
    assert [judged("abb", *values).preferred for values in ((1, 1, 1), (1, 0, 1), (1, 0, 0))] == [1, 2, 0]
    assert judged("ab", 0.5, 0.5).preferred == 0


NUMBERS = [True, np.True_, 1, np.int64(1), np.float32(1), dspy.Prediction(score=1, feedback="so")]
NO_NUMBERS = [None, math.nan, math.inf, -math.inf, "0.5", [0.5], 1j, Decimal("NaN"), np.float64("nan")]


@pytest.mark.parametrize("yes", NUMBERS)
def test_truth_values_and_numbers_of_numpy_count(yes: Any) -> None:
    reply = judged("aab", 0, False, yes)
    assert (reply.preferred, [one["scalar"] for one in reply.assessments]) == (2, [0.0, 0.0, 1.0])


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_not_a_finite_number_is_an_abstention_that_names_the_candidate(value: Any) -> None:
    reply = judged("aabb", 0.1, 0.9, value, 0.2)
    assert says("the reward of candidate 2 is ..., not a finite number", reply.abstained)
    assert "preferred" not in reply


@settings(max_examples=20)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True))
def test_it_chooses_as_dspy_best_of_n_does_without_a_threshold(values: list[float]) -> None:
    """Rewards differ: of equal ones DSPy takes the earliest, and the judge the answer with more votes."""

    def attempt(self: Any, question: str) -> Any:  # DSPy numbers its attempts, so that it gets each candidate once
        number = self.predict.lm.kwargs["rollout_id"]
        return dspy.Prediction(text=str(number), answer=str(number))

    program = Does(attempt, predict=dspy.Predict("question -> answer"))
    program.set_lm(scripted_lm(lambda request: ""))
    best: Any = dspy.BestOfN(program, len(values), rewards(*values), math.inf)
    choice = int(best(question="Which?").answer)
    assert judged("abcde"[: len(values)], *values).preferred == choice == values.index(max(values))


def test_a_reward_that_raises_is_an_abstention_with_the_error() -> None:
    """A call that does not come through is raised; what is not a function is refused."""
    reply = judged("aab", 0.1, ValueError("no such word"), 0.9)
    assert reply.abstained.startswith("the reward failed on candidate 1: ValueError: no such word")
    assert judged("ab", 0.1, 10**400).abstained.startswith("the reward failed on candidate 1: OverflowError: ")
    for error in (dspy.LMServerError("away"), ConnectionError("away"), TimeoutError("late")):
        with pytest.raises(type(error)):
            judged("aab", 0.1, error, 0.9)
    wrong: Any = 0.5
    assert "reward must be a function or a DSPy metric; got float" in refused(lambda: BestOf(wrong))


def test_a_changed_reward_is_another_judge_and_so_is_another_lm_of_the_settings_which_it_may_ask() -> None:
    told = [describe(BestOf(reward)) for reward in (length, brevity, length)]
    assert told[0] == told[2] != told[1]
    assert told[0]["attributes"]["self"]["source"]["name"].endswith(":length")
    told = []
    for model in ("scripted/one", "scripted/other", "scripted/one"):
        with dspy.context(lm=scripted_lm([], model=model)):
            told.append(describe(BestOf(length)))
    assert told[0] == told[2] != told[1] and told[0]["lm"]["model"] == "scripted/one"


def stating(reasoning: float | None, answer: float | None, relevance: Any = 0.5, coherence: Any = 0.5) -> Stated:
    scores = {"relevance": relevance, "coherence": coherence}
    known = {name: value for name, value in scores.items() if value is not None}
    return Stated(logprobs=Logprobs(probability=0.5, reasoning=reasoning, answer=answer), scores=known)


def count(counted: Ballot) -> Any:
    return DimensionalSelector()(ballot=counted)


# Confidence: -1, -1, -2, -3; mean -1.75, so that a is above it. Relevance: 0, 0, 1, .4. Coherence: 0, 0, .4, 1.
EXAMPLE = ballot("aabc", [stating(-0.5, -0.5, 0.0, 0.0)] * 2 + [stating(-1, -1, 1.0, 0.4), stating(-2, -1, 0.4, 1.0)])


def test_the_sum_prefers_another_answer_than_majority_over_the_candidates_that_vote() -> None:
    """A candidate that does not vote may lack everything, and moves no mean."""
    # Confidence: deviations .75, .75, -.25, -1.25, standard deviation .829; z .905, .905, -.302, -1.508.
    # Relevance: mean .35, standard deviation .409; z -.855, -.855, 1.588, .122. Coherence: the last two change places.
    # Sums over 3: a (.905 - .855 - .855) / 3 = -.268; b (-.302 + 1.588 + .122) / 3 = .47; c (-1.508 + 1.711) / 3 = .07.
    reply = count(EXAMPLE)
    assert (reply.preferred, majority(EXAMPLE)) == (2, "a")
    assert reply.judge_rationale.startswith("0.47 standard deviations")
    assert WeightedVote("best_of_n:coherence")(ballot=EXAMPLE).preferred == 3
    assert WeightedVote("soft_sc")(ballot=EXAMPLE).preferred == 0
    voting = [stating(-0.5, -0.5, 0.0, 0.0)] * 2 + [stating(-1, -1, 1.0, 0.4), stating(-2, -1, 0.4, 1.0)]
    reply = count(ballot("aa-bc", [*voting[:2], Stated(), *voting[2:]]))
    assert (reply.preferred, reply.judge_rationale) == (3, count(EXAMPLE).judge_rationale)


def test_the_confidence_is_the_mean_of_the_reasoning_plus_the_sum_of_the_answer_and_equal_dimensions_add_nothing() -> (
    None
):
    def preferred(*texts: tuple[list[float], int]) -> Any:
        scores = {"relevance": 0.5, "coherence": 0.5}
        return count(
            ballot("ab", [Stated(logprobs=Logprobs.of_tokens(*one), scores=scores) for one in texts])
        ).preferred

    # Of tokens -.1, -.3 | -1: mean -.2 plus sum -1. Of -.4, -.4 | -.3, -.3: mean -.4 plus sum -.6, which is higher.
    assert preferred(([-0.1, -0.3, -1.0], 1), ([-0.4, -0.4, -0.3, -0.3], 2)) == 1
    # The mean over all tokens of the second, -.35, is above the first's, -.467; the summed answers are -1 and -.6.
    assert preferred(([-0.1, -0.3, -1.0], 1), ([-0.4, -0.3, -0.3, -0.3], 3)) == 0  # -1.2 against -.4 - .9 = -1.3
    alike = ballot("abb", [stating(-1, -1, 0.3, 0.1), stating(-1, -1, 0.3, 0.1), stating(-1, -1, 0.3, 0.2)])
    assert count(alike).preferred == 2
    assert count(ballot("abb", [stating(-1, -1)] * 3)).preferred == 1  # nothing differs, so that votes decide
    assert count(ballot("ab", [stating(-1, -1, 0.5), stating(-1, -1, 0.5000000000001)])).preferred == 1
    least = 5e-324  # the smallest float above 0
    assert count(ballot("abc", [stating(-1, -least), stating(-1, 0.0), stating(-2, 0.0)])).preferred == 1


@each_case("judges", "dimensions that lack", stating=stating, scores=lambda **scores: Stated(scores=scores))
def test_what_is_lacking_is_an_abstention(stated: Sequence[Stated], reason: str) -> None:
    reply = count(ballot("ab", stated))
    assert reply.abstained.startswith(reason)
    assert "preferred" not in reply


@pytest.mark.parametrize(
    ("confidences", "relevances"),
    [((-0.1, -0.2, -0.3), (1.0, 2.0, 3.0)), ((-0.3, -0.7, -0.9), (0.3, 0.7, 0.9)), ((-1.0, -1.3, -7.0), (1, 1.3, 7))],
)
def test_what_cancels_exactly_is_a_tie_that_votes_settle(confidences: Any, relevances: Any) -> None:
    """In floats one candidate of the three would win by a last digit; the answer with most votes wins."""
    pairs = zip(confidences, relevances, strict=True)
    stated = [stating(confidence, 0.0, relevance) for confidence, relevance in pairs]
    assert count(ballot("abcc", [*stated, stated[2]])).preferred in (2, 3)
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        assert count(ballot("aba", [stated[index] for index in order])).preferred == 0


_SCORES = st.sampled_from((0.1, 0.2, 0.3, 0.7, 1.1))


@given(st.lists(st.tuples(_SCORES, _SCORES, _SCORES), min_size=1, max_size=5))
def test_dimensions_that_change_places_between_two_candidates_tie(values: list[tuple[float, float, float]]) -> None:
    """Every candidate has a twin with relevance and coherence swapped, so the two dimensions are alike."""
    pairs = [[(a, b, c), (a, c, b)] for a, b, c in values]
    stated = [stating(-a, -a, b, c) for pair in pairs for a, b, c in pair]
    keys = [key for index, _ in enumerate(pairs) for key in (f"a{index}", "z")]
    result = Ballot("?", (), ("",) * len(keys), ("",) * len(keys), tuple(keys), tuple(stated))
    if len(pairs) > 1:
        assert result.classes[count(result).preferred] == "z"  # each twin ties with a class of more votes


@settings(max_examples=30)
@given(st.permutations(range(4)), st.integers(0, 99))
def test_another_order_of_the_candidates_prefers_the_same_candidate(order: list[int], seed: int) -> None:
    values = [2.0**-index for index in shuffled(4, seed)]
    stated = [stating(-value, -1.0, value, value * value) for value in values]
    keys = "aabc"
    before = count(ballot(keys, stated)).preferred
    after = count(ballot("".join(keys[i] for i in order), [stated[i] for i in order])).preferred
    assert order[after] == before
