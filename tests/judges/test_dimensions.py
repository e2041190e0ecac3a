"""The selector in the style of DRM: an example by hand, and what it lacks."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.programs.judges.counting_judges import WeightedVote
from eldgr_dspy.programs.judges.drm import DimensionalSelector
from eldgr_dspy.rule.ballots import Ballot, Logprobs, Stated
from tests.judges.balloting import ballot, majority, shuffled


def stating(reasoning: float | None, answer: float | None, relevance: Any = 0.5, coherence: Any = 0.5) -> Stated:
    scores = {"relevance": relevance, "coherence": coherence}
    known = {name: value for name, value in scores.items() if value is not None}
    return Stated(logprobs=Logprobs(probability=0.5, reasoning=reasoning, answer=answer), scores=known)


def count(counted: Ballot) -> Any:
    return DimensionalSelector()(ballot=counted)


# Confidence: -1, -1, -2, -3; mean -1.75, so that a is above it. Relevance: 0, 0, 1, .4. Coherence: 0, 0, .4, 1.
EXAMPLE = ballot("aabc", [stating(-0.5, -0.5, 0.0, 0.0)] * 2 + [stating(-1, -1, 1.0, 0.4), stating(-2, -1, 0.4, 1.0)])


def test_the_sum_prefers_another_answer_than_majority_and_than_one_dimension_each() -> None:
    # Confidence: deviations .75, .75, -.25, -1.25, standard deviation .829; z .905, .905, -.302, -1.508.
    # Relevance: mean .35, standard deviation .409; z -.855, -.855, 1.588, .122. Coherence: the last two change places.
    # Sums over 3: a (.905 - .855 - .855) / 3 = -.268; b (-.302 + 1.588 + .122) / 3 = .47; c (-1.508 + 1.711) / 3 = .07.
    reply = count(EXAMPLE)
    assert (reply.preferred, majority(EXAMPLE)) == (2, "a")
    assert reply.judge_rationale.startswith("0.47 standard deviations")
    assert WeightedVote("best_of_n:coherence")(ballot=EXAMPLE).preferred == 3
    assert WeightedVote("soft_sc")(ballot=EXAMPLE).preferred == 0


def test_the_confidence_is_the_mean_of_the_reasoning_plus_the_sum_of_the_answer() -> None:
    # Of tokens -.1, -.3 | -1: mean -.2 plus sum -1. Of -.4, -.4 | -.3, -.3: mean -.4 plus sum -.6, which is higher.
    given_tokens = [Logprobs.of_tokens([-0.1, -0.3, -1.0], 1), Logprobs.of_tokens([-0.4, -0.4, -0.3, -0.3], 2)]
    stated = [Stated(logprobs=one, scores={"relevance": 0.5, "coherence": 0.5}) for one in given_tokens]
    assert count(ballot("ab", stated)).preferred == 1
    # The mean over all tokens of the second, -.35, is above the first's, -.467; the summed answers are -1 and -.6.
    longer = [Logprobs.of_tokens([-0.1, -0.3, -1.0], 1), Logprobs.of_tokens([-0.4, -0.3, -0.3, -0.3], 3)]
    stated = [Stated(logprobs=one, scores={"relevance": 0.5, "coherence": 0.5}) for one in longer]
    assert count(ballot("ab", stated)).preferred == 0  # -1.2 against -.4 - .9 = -1.3


def test_a_dimension_that_is_the_same_for_all_adds_nothing() -> None:
    alike = ballot("abb", [stating(-1, -1, 0.3, 0.1), stating(-1, -1, 0.3, 0.1), stating(-1, -1, 0.3, 0.2)])
    assert count(alike).preferred == 2
    assert count(ballot("abb", [stating(-1, -1)] * 3)).preferred == 1  # nothing differs, so that votes decide


def test_sums_that_differ_however_little_are_no_tie() -> None:
    assert count(ballot("ab", [stating(-1, -1, 0.5), stating(-1, -1, 0.5000000000001)])).preferred == 1
    least = 5e-324  # the smallest float above 0
    assert count(ballot("abc", [stating(-1, -least), stating(-1, 0.0), stating(-2, 0.0)])).preferred == 1


def test_values_are_standardised_over_the_candidates_that_vote() -> None:
    """A candidate that does not vote may lack everything, and moves no mean."""
    voting = [stating(-0.5, -0.5, 0.0, 0.0)] * 2 + [stating(-1, -1, 1.0, 0.4), stating(-2, -1, 0.4, 1.0)]
    reply = count(ballot("aa-bc", [*voting[:2], Stated(), *voting[2:]]))
    assert (reply.preferred, reply.judge_rationale) == (3, count(EXAMPLE).judge_rationale)


SCORED: list[Any] = [stating(-1, -1), stating(-2, -2)]


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ([Stated()] * 2, "{N/A}the pool states no log-probabilities"),
        ([Stated(scores=SCORED[0].scores)] * 2, "{N/A}the pool states no log-probabilities"),
        ([stating(-1, None)] * 2, "{N/A}the pool states no log-probability of the answer"),
        ([stating(-1, -1, None)] * 2, "{N/A}the pool states no score 'relevance'"),
        ([stating(-1, -1, 0.5, None)] * 2, "{N/A}the pool states no score 'coherence'"),
        ([stating(-1, -1, None), stating(-1, None, None)], "{N/A}the pool states no score 'relevance'"),
        ([SCORED[0], Stated(scores=SCORED[0].scores)], "no log-probability of the reasoning is stated of candidate 1"),
        ([SCORED[0], stating(None, -1)], "no log-probability of the reasoning is stated of candidate 1"),
        ([SCORED[0], stating(-1, -1, None)], "no score 'relevance' is stated of candidate 1"),
        ([SCORED[0], stating(-1, -1, [0.1, 0.2])], "it has a number for each step"),
    ],
)
def test_what_is_lacking_is_an_abstention(stated: Sequence[Stated], reason: str) -> None:
    reply = count(ballot("ab", stated))
    assert reply.abstained.startswith(reason.replace("{N/A}", "not applicable: "))
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
