"""The outcome and format rewards, called as TRL calls a reward function: by keyword, one entry a completion."""

from typing import Any

import pytest

from eldgr_dspy.channels.rewards import FORMAT_WEIGHT, OUTCOME_WEIGHT
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training import OutcomeReward, format, orm, weights_of
from tests.refusing import refused as refused_by
from tests.training.calling import Log, rows, said

TASKS = "'short', 'number', 'math'"


def outcome(completion: Any, gold: Any, task: str = "arithmetic") -> float:
    """The outcome reward of one completion."""
    (reward,) = orm(prompts=["?"], completions=[completion], gold=[gold], task=[task], completion_ids=[[1]])
    return reward


def marked(completion: Any, task: str = "arithmetic") -> float:
    """The format reward of one completion."""
    (reward,) = format(prompts=["?"], completions=[completion], task=[task], gold=["7"], trainer_state=None)
    return reward


CALLED: list[dict[str, object]] = [
    {"role": "assistant", "content": None, "tool_calls": []},
    {"role": "tool", "content": "#### 7"},
    {"role": "assistant", "content": "#### 8"},
]
"""With tools, a completion also holds the messages of the tools; an answer in one of these was not given."""
TOWER = ["La tour Eiffel", "Eiffel Tower"]


@pytest.mark.parametrize(
    ("completion", "gold", "task", "right", "states"),
    [
        ("3 + 4 = 7\n#### 7", "7", "arithmetic", 1, 1),
        ("3 + 4 = 8\n#### 8", "7", "arithmetic", 0, 1),
        ("#### 1,000.0", "1000", "arithmetic", 1, 1),
        ("#### 1000", "-1000", "arithmetic", 0, 1),
        ("A: the Eiffel Tower", TOWER, "retrieval", 1, 1),
        ("A: the Louvre", TOWER, "retrieval", 0, 1),
        ("so we get 7", "7", "arithmetic", 1, 0),
        (r"\boxed{8}", "7", "arithmetic", 0, 1),
        ("The answer is 7.", "7", "arithmetic", 1, 1),
        (said("#### 7"), "7", "arithmetic", 1, 1),
        (CALLED, "7", "arithmetic", 0, 1),
        (CALLED[:2], "7", "arithmetic", 0, 0),
    ],
    ids=str,
)
def test_a_right_answer_earns_one_and_a_stated_one_the_format_right_or_wrong(
    completion: Any, gold: Any, task: str, right: float, states: float
) -> None:
    assert (outcome(completion, gold, task), marked(completion, task)) == (right, states)


def test_the_weights_are_the_papers_and_stand_beside_the_rewards() -> None:
    assert weights_of([orm, format]) == [OUTCOME_WEIGHT, FORMAT_WEIGHT] == [3.0, 0.5]


def test_two_rewards_of_one_name_are_refused_for_a_trainer_would_log_them_as_one() -> None:
    assert weights_of([orm, OutcomeReward(name="numeric")]) == [3.0, 3.0]
    with pytest.raises(ArgumentError, match=r"2 rewards are named 'orm'.*give each a name of its own"):
        weights_of([orm, OutcomeReward()])


@pytest.mark.parametrize("gold", [None, [], ()])
def test_a_row_without_gold_is_undefined_and_earns_nothing_whatever_is_written(gold: Any) -> None:
    """As all completions of the row do, so that none of them gains by it."""
    log = Log()
    columns: dict[str, Any] = {"gold": [gold, "8", "8"], "task": ["arithmetic"] * 3}
    result = orm(["?"] * 3, ["#### 7", "#### 8", "#### 7"], **columns, **log.arguments)
    assert result == [0.0, 1.0, 0.0]
    assert log.metrics["orm/undefined"] == pytest.approx(1 / 3) and log.metrics["orm/exact_match"] == 0.5
    assert log.columns["orm_note"] == ["the row has no gold answer; give one in the column gold", None, None]


def test_a_batch_without_any_gold_logs_no_exact_match() -> None:
    log = Log()
    assert orm(["?"], ["#### 7"], gold=[None], task=["arithmetic"], **log.arguments) == [0.0]
    assert log.metrics["orm/undefined"] == 1 and "orm/exact_match" not in log.metrics


SOLUTION = "Natalia sold 48/2 = <<48/2=24>>24 clips in May.\nThat is 48+24 = <<48+24=72>>72 in all.\n#### 72"


@pytest.mark.parametrize("gold", [SOLUTION, [SOLUTION], "The answer is 72.", ["seventy-two", "72"]], ids=str)
def test_gold_that_states_its_number_is_read_for_it(gold: Any) -> None:
    """The field `answer` of GSM8K as it is: no completion equals a whole solution."""
    assert outcome("48 + 24 = 72\n#### 72", gold) == 1.0
    assert outcome("48 + 23 = 71\n#### 71", gold) == 0.0
    assert outcome(SOLUTION, gold) == 1.0


@pytest.mark.parametrize(
    ("gold", "task"), [("seventy-two", "arithmetic"), ("72 clips", "number"), ("", "retrieval"), ("  ", "number")]
)
def test_gold_that_no_answer_can_match_is_refused_and_not_scored_as_0(gold: str, task: str) -> None:
    assert refused_by(lambda: orm(["?"] * 2, ["#### 72"] * 2, gold=[None, gold], task=[task] * 2)) == (
        f"gold[1] must be an answer of the type {task!r}, or a text that states one, as '#### 72'; got {gold!r}. Fix "
        "the row of the dataset."
    )


@pytest.mark.parametrize("text", ["", "I do not know."])
def test_a_completion_without_an_answer_is_wrong_and_the_log_says_what_to_do(text: str) -> None:
    log = Log()
    assert orm(["?"], [text], gold=["7"], task=["arithmetic"], **log.arguments) == [0.0]
    assert log.metrics["orm/answered"] == 0 and log.columns["orm_answer"] == [None]
    note = "the completion has no answer; ask for one in the prompt, as '#### x' in arithmetic or 'A: x'"
    assert log.columns["orm_note"] == [note]


def test_each_row_is_read_by_its_own_task() -> None:
    """'1.0' and '1' are one number; as words they differ."""
    columns: dict[str, Any] = {"prompts": ["?", "?"], "completions": ["A: 1.0", "A: 1.0"], "gold": ["1", "1"]}
    assert orm(**columns, task=["arithmetic", "retrieval"]) == [1.0, 0.0]


def test_what_is_logged_beside_the_rewards() -> None:
    log = Log()
    columns: dict[str, Any] = {"gold": ["7", "7"], "task": ["arithmetic"] * 2}
    assert format(["?"] * 2, ["#### 7", "so 7"], **columns, **log.arguments) == [1.0, 0.0]
    orm(["?"] * 2, ["#### 7", "so 8"], **columns, **log.arguments)
    seconds = {log.metrics.pop("orm/seconds"), log.metrics.pop("format/seconds")}
    assert min(seconds) >= 0
    assert log.metrics == {"format/undefined": 0, "orm/undefined": 0, "orm/exact_match": 0.5, "orm/answered": 1}
    assert log.columns == {"format_form": ["hashes", "last_number"], "orm_answer": ["7", "8"], "orm_note": [None, None]}


def refused(**columns: Any) -> str:
    """The sentence with which a call is refused."""
    inputs: dict[str, Any] = {"gold": ["7"], "task": ["arithmetic"], **columns}
    return refused_by(lambda: orm(prompts=["?"], completions=["#### 7"], **inputs))


def test_a_missing_column_is_named_with_what_it_holds_and_what_may_have_dropped_it() -> None:
    assert refused_by(lambda: orm(prompts=["?"], completions=["#### 7"], task=["arithmetic"])) == (
        "The reward 'orm' needs the column 'gold' (the right answer, a list of accepted ones, or null), but it was not "
        "passed; add it to the dataset, and leave remove_unused_columns at False."
    )


def test_an_unknown_task_is_named() -> None:
    for name in ("maths", "choice"):  # no column has the options of a choice
        assert refused(task=[name]) == (f"task[0] must be one of {TASKS}, in the dataset's column task; got {name!r}.")
    assert refused(task=[None]) == (
        f"task[0] must be one of {TASKS} for the reward 'orm'; got None. Fix the row of the dataset."
    )


@pytest.mark.parametrize("gold", [7, 0, [7], {"text": "7"}, [None]], ids=str)
def test_gold_that_is_not_text_is_named(gold: Any) -> None:
    assert refused(gold=[gold]) == (
        "gold[0] must be the right answer, a list of accepted ones, or null, as strings, for the reward 'orm'; got "
        f"{gold!r}. Fix the row of the dataset."
    )


def test_content_in_parts_is_refused() -> None:
    assert refused_by(lambda: marked(said([{"type": "text", "text": "#### 7"}]))) == (
        "completions: a message's content must be text; got [{'type': 'text', 'text': '#### 7'}]. "
        "Join the text parts of the message before it is rewarded."
    )


@pytest.mark.parametrize("completion", [None, 7, ["A: x"], [None], {"role": "assistant"}], ids=str)
def test_what_is_neither_text_nor_messages_is_refused(completion: Any) -> None:
    assert refused_by(lambda: orm(["?"] * 2, ["A: x", completion], **rows(2))) == (
        f"completions[1] must be text or a list of messages; got {completion!r}. Give the output, '' if it is empty."
    )


@pytest.mark.parametrize(("gold", "text"), [([], "0 entries"), ("7", "1 entries"), (7, "7")], ids=str)
def test_a_column_of_another_length_is_refused(gold: Any, text: str) -> None:
    assert refused(gold=gold) == (
        f"The column 'gold' for the reward 'orm' must have one entry for each of 1 completions; got {text}."
    )


def test_a_call_without_completions_returns_none_and_logs_no_mean() -> None:
    log = Log()
    assert orm([], [], gold=[], task=[], **log.arguments) == []
    assert set(log.metrics) == {"orm/seconds"}
