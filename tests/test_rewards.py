"""The outcome and format rewards, called as TRL calls a reward function: by keyword, one entry a completion."""

import inspect
import pickle

import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training import format_reward, outcome_reward
from eldgr_dspy.training.rewards import Completion, Gold
from eldgr_dspy.words import Task


def said(text: object) -> list[dict[str, object]]:
    """A completion of one assistant message, as TRL passes it for a conversational data set."""
    return [{"role": "assistant", "content": text}]


def outcome(completion: Completion, gold: Gold, task: Task = "arithmetic") -> float | None:
    """The outcome reward of one completion."""
    (reward,) = outcome_reward(prompts=["?"], completions=[completion], gold=[gold], task=[task], completion_ids=[[1]])
    return reward


def marked(completion: Completion, task: Task = "arithmetic") -> float | None:
    """The format reward of one completion."""
    (reward,) = format_reward(prompts=["?"], completions=[completion], task=[task], gold=["7"], trainer_state=None)
    return reward


def test_a_right_answer_earns_three_and_a_wrong_one_nothing() -> None:
    assert outcome("3 + 4 = 7\n#### 7", "7") == 3.0
    assert outcome("3 + 4 = 8\n#### 8", "7") == 0.0


def test_numbers_are_compared_by_value() -> None:
    assert outcome("#### 1,000.0", "1000") == 3.0
    assert outcome("#### 1000", "-1000") == 0.0


def test_a_retrieval_answer_may_match_any_accepted_spelling() -> None:
    assert outcome("A: the Eiffel Tower", ["La tour Eiffel", "Eiffel Tower"], "retrieval") == 3.0
    assert outcome("A: the Louvre", ["La tour Eiffel", "Eiffel Tower"], "retrieval") == 0.0


@pytest.mark.parametrize("gold", [None, [], ()])
def test_a_row_without_gold_is_undefined_and_not_wrong(gold: Gold) -> None:
    assert outcome("#### 7", gold) is None


@pytest.mark.parametrize("text", ["", "I do not know."])
def test_a_completion_without_an_answer_is_wrong(text: str) -> None:
    assert outcome(text, "7") == 0.0


def test_an_unmarked_last_number_counts_for_the_outcome_and_not_for_the_format() -> None:
    assert outcome("so we get 7", "7") == 3.0
    assert marked("so we get 7") == 0.0


@pytest.mark.parametrize("text", ["#### 7", "A: 7", r"\boxed{7}", "The answer is 7."])
def test_a_marked_final_answer_earns_the_format_reward_right_or_wrong(text: str) -> None:
    assert marked(text) == 0.5
    assert marked(text.replace("7", "8")) == 0.5


def test_only_what_the_assistant_wrote_is_read() -> None:
    """With tools, a completion also holds the messages of the tools; an answer in one of these was not given."""
    called: list[dict[str, object]] = [
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "#### 7"},
        {"role": "assistant", "content": "#### 8"},
    ]
    assert outcome(called, "7") == 0.0
    assert outcome(called[:2], "7") == 0.0
    assert marked(called[:2]) == 0.0


def test_a_conversation_earns_what_its_text_earns() -> None:
    assert outcome(said("#### 7"), "7") == outcome("#### 7", "7") == 3.0
    assert marked(said("#### 7")) == marked("#### 7") == 0.5


def test_each_row_is_read_by_its_own_task() -> None:
    """'1.0' and '1' are one number; as words they differ."""
    rewards = outcome_reward(
        prompts=["?", "?"], completions=["A: 1.0", "A: 1.0"], gold=["1", "1"], task=["arithmetic", "retrieval"]
    )
    assert rewards == [3.0, 0.0]


def test_an_unknown_task_is_named() -> None:
    with pytest.raises(ArgumentError) as caught:
        outcome_reward(prompts=["?"], completions=["#### 7"], gold=["7"], task=["maths"])  # type: ignore[list-item]
    assert str(caught.value) == (
        "task='maths' is not a task; give 'retrieval' or 'arithmetic' in the dataset's task column."
    )


def test_content_in_parts_is_refused() -> None:
    with pytest.raises(ArgumentError) as caught:
        marked(said([{"type": "text", "text": "#### 7"}]))
    assert str(caught.value) == (
        "completions: a message's content is [{'type': 'text', 'text': '#### 7'}], but text was expected; "
        "join the text parts of the message before it is rewarded."
    )


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        outcome_reward(prompts=["?"], completions=["#### 7"], gold=[], task=["arithmetic"])


@pytest.mark.parametrize("reward", [outcome_reward, format_reward])
def test_a_reward_is_what_the_trainer_expects(reward: object) -> None:
    """It accepts arguments that it does not know, its name is its metric's, and a spawned child can load it."""
    assert callable(reward)
    kinds = [parameter.kind for parameter in inspect.signature(reward).parameters.values()]
    assert inspect.Parameter.VAR_KEYWORD in kinds
    assert outcome_reward.__name__ != format_reward.__name__
    assert pickle.loads(pickle.dumps(reward)) is reward  # noqa: S301 - our own bytes, made in this line
