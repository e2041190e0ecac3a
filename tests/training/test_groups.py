"""The group rank as a reward: strata first, ties share a place, and a process has whole groups."""

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.rule.ranking import rank
from eldgr_dspy.training import GroupReward, StepReward, eldgr_rank
from eldgr_dspy.training.groups import Key, midranks
from tests.training.calling import Broken, ByLength, Log, Model, Trainer, rows


def places(*answers: str, **settings: Any) -> list[float]:
    """The places of answers to one question, of which the evidence says Qatar."""
    texts = [f"A: {answer}" if answer else "" for answer in answers]
    columns = settings.pop("columns", {})
    return GroupReward(group_size=len(answers), **settings)(["?"] * len(texts), texts, **rows(len(texts), **columns))


def test_a_certified_answer_stands_before_a_majority_that_is_not() -> None:
    assert places("Qatar", "Chile", "Chile", "Chile") == [1, *[1 / 3] * 3]


def test_among_supported_answers_consensus_stands_first() -> None:
    both = {"evidence": [["Qatar and Chile were the hosts."]] * 4}
    assert places("Qatar", "Chile", "Chile", "Peru", columns=both) == [
        pytest.approx(1 / 3),
        *[pytest.approx(5 / 6)] * 2,
        0,
    ]


def test_where_nothing_tells_completions_apart_each_is_in_the_middle() -> None:
    assert places("Qatar", "Qatar", "Qatar") == [0.5] * 3
    assert places("Chile", "Peru") == [0.5] * 2, "among the unsupported, votes do not count"
    assert places("Qatar") == [0.5]


ASKED = "Was Qatar the host?"


def test_a_yes_that_was_not_asked_for_is_behind_every_other_answer() -> None:
    """Its certificate is inapplicable, so nothing could ever speak against it."""
    assert places("Qatar", "yes") == [1, 0]
    assert places("Qatar", "Chile", "yes", "no") == [1, pytest.approx(2 / 3), *[pytest.approx(1 / 6)] * 2]
    assert places("yes", "yes", "yes", "Chile") == [*[pytest.approx(1 / 3)] * 3, 1], "votes do not help it"


def test_where_a_question_asks_for_yes_or_no_either_stands_with_the_certified() -> None:
    inputs = {"question": [ASKED] * 3}
    assert places("yes", "Chile", "Qatar", columns=inputs) == [0.75, 0, 0.75]
    assert places("yes", "no", "yes", columns=inputs) == [0.75, 0, 0.75], "and consensus breaks the tie"


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_policy_that_is_trained_on_the_rank_alone_does_not_learn_to_say_yes(size: int) -> None:
    """In every group that has both, a yes earns less on average than what is not one, certified or not.

    So does its advantage, which is what trains, however rarely the policy's other answers are certified.
    """
    for group in combinations_with_replacement(("Qatar", "Chile", "Peru", "yes"), size):
        result = places(*group)
        said_yes = [place for answer, place in zip(group, result, strict=True) if answer == "yes"]
        others = [place for answer, place in zip(group, result, strict=True) if answer != "yes"]
        if said_yes and others:
            assert max(said_yes) < 0.5 < sum(others) / len(others), group


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_the_mean_advantage_of_a_yes_is_negative_whatever_the_policy_says(yes: float, certified: float) -> None:
    """Exact over all groups of two: the gradient on the logit of "yes" is its probability times this."""
    policy = {"yes": yes, "Qatar": (1 - yes) * certified, "Chile": (1 - yes) * (1 - certified)}
    mean = sum(other * places("yes", answer)[0] for answer, other in policy.items())
    assert mean - 0.5 == pytest.approx(-(1 - yes) / 2)


def test_a_refusal_earns_no_more_than_an_answer_without_a_certificate() -> None:
    assert places("None", "Chile") == places("I don't know", "None") == [0.5, 0.5]
    assert places("None", "Qatar", "None") == [0.25, 1, 0.25]


def test_a_completion_without_an_answer_is_among_the_uncertified() -> None:
    assert places("Qatar", "", "Chile") == [1, 0.25, 0.25]
    assert places("yes", "", "no", columns={"question": [ASKED] * 3}) == [0.75, 0, 0.75]


def test_in_arithmetic_the_auxiliary_score_alone_ranks() -> None:
    columns = {"task": ["arithmetic"] * 3}
    assert places("7", "7", "8", columns=columns) == [0.5] * 3
    auxiliary = StepReward(ByLength(), confidence=False)
    texts = ["One step.\n#### 7", "Two longer steps.\n#### 7", "The longest of all steps.\n#### 8"]
    assert GroupReward(auxiliary=auxiliary, group_size=3)(["?"] * 3, texts, **rows(3, **columns)) == [0, 0.5, 1]


def test_the_auxiliary_score_moves_nothing_across_strata_and_is_logged() -> None:
    log = Log()
    texts = ["A: Qatar", "So much is said of it that it is long. A: Chile", "It is said of it.\nA: Qatar"]
    reward = GroupReward(auxiliary=StepReward(ByLength(), confidence=False), group_size=3)
    assert reward(["?"] * 3, texts, **rows(3), **log.arguments) == [0.5, 0, 1]
    assert log.metrics["eldgr_rank/supported"] == pytest.approx(2 / 3) and 0 < log.metrics["eldgr_rank/auxiliary"] < 1
    assert log.columns["eldgr_rank_supported"] == [True, False, True]


keys = st.tuples(st.booleans(), st.booleans(), st.none() | st.sampled_from([0.0, 0.5, 1.0]))


@given(st.lists(keys, min_size=1, max_size=6))
def test_places_are_in_the_order_of_the_rank_of_a_pool_and_ties_share_theirs(drawn: list[Any]) -> None:
    """`eldgr_dspy.rule.ranking` breaks by position what is a tie here."""
    results: list[Key] = [(one, one and two, score is not None, score or 0.0) for one, two, score in drawn]
    supported, consensus, scores = zip(*drawn, strict=True)
    order = rank(supported, consensus, scores)
    assert [midranks(results)[at] for at in order] == sorted(midranks(results), reverse=True)
    assert sum(midranks(results)) == pytest.approx(len(results) / 2)
    assert all(
        (results[a] == results[b]) == (midranks(results)[a] == midranks(results)[b]) for a in order for b in order
    )


@given(st.lists(st.sampled_from(["Qatar", "qatar", "Chile", "yes", ""]), min_size=1, max_size=5), st.randoms())
def test_the_position_in_the_group_decides_nothing(answers: list[str], shuffled: Any) -> None:
    """Nor does it decide a tie of votes, as it has to where one answer ships."""
    order = shuffled.sample(range(len(answers)), len(answers))
    result = places(*answers)
    assert places(*(answers[at] for at in order)) == [result[at] for at in order]


# --- whose group it is ------------------------------------------------------------------------------------------------


def test_groups_are_places_in_the_order_of_the_trainer_and_not_equal_prompts() -> None:
    texts = ["A: Qatar", "A: Chile", "A: Qatar", "A: Chile"]
    evidence = [["It was Qatar."], ["It was Qatar."], ["It was Chile."], ["It was Chile."]]
    assert GroupReward(group_size=2)(["?"] * 4, texts, **rows(4, evidence=evidence)) == [1, 0, 0, 1]


@pytest.mark.parametrize(("training", "expected"), [(True, [1, 0, 0.5, 0.5]), (False, [1, 1 / 3, 1 / 3, 1 / 3])])
def test_the_trainer_says_how_many_completions_a_prompt_has(training: bool, expected: list[float]) -> None:
    log = Trainer(Model(training)).log
    texts = ["A: Qatar", "A: Chile", "A: Peru", "A: Chile"]
    assert eldgr_rank(["?"] * 4, texts, **rows(4), log_metric=log) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("prompts", "size", "wrong"),
    [(["a"] * 3, 2, "the 1 of group 1"), (["a", "a", "b"], 3, "the 3 of group 0")],
    ids=["a rest", "two prompts"],
)
def test_completions_that_are_not_whole_groups_are_refused(prompts: list[str], size: int, wrong: str) -> None:
    sentence = f"3 completions are not groups of {size} of one prompt each: {wrong} are too few, or have different"
    with pytest.raises(ArgumentError, match=sentence):
        GroupReward(group_size=size)(prompts, ["A: Qatar"] * 3, **rows(3))


@dataclass
class Picture:
    """As much of an image of PIL as is looked at: equal ones are equal, though they are two objects."""

    colour: bytes


def pictured(colour: bytes) -> Any:
    return [{"role": "user", "content": [{"type": "image", "image": Picture(colour)}, {"type": "text", "text": "?"}]}]


def test_prompts_with_equal_images_are_one_prompt_though_each_has_its_own_copy() -> None:
    reward = GroupReward(group_size=2)
    assert reward([pictured(b"red"), pictured(b"red")], ["A: Qatar", "A: Chile"], **rows(2)) == [1, 0]
    with pytest.raises(ArgumentError, match="the 2 of group 0 are too few, or have different prompts"):
        reward([pictured(b"red"), pictured(b"sky")], ["A: Qatar", "A: Chile"], **rows(2))


def test_who_cannot_know_the_size_of_a_group_says_so() -> None:
    with pytest.raises(ArgumentError, match="does not know how many completions a prompt has; give group_size"):
        eldgr_rank(["?"], ["A: Qatar"], **rows(1))
    with pytest.raises(ArgumentError, match="group_size must be a whole number of at least 1; got 0"):
        GroupReward(group_size=0)


def test_what_its_parts_need_it_needs_and_what_they_raise_it_raises() -> None:
    reward = GroupReward(auxiliary=StepReward(Broken(), confidence=False), group_size=1)
    assert reward.needs == ("question", "evidence", "task")
    with pytest.raises(Exception, match="out of memory"):
        reward(["?"], ["A: Qatar"], **rows(1))
