"""What a run lacks is said before it starts, in a sentence that names the field and the remedy."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training import StepReward, format, orm, require_inputs
from tests.training.calling import Fixed
from tests.training.training_on import ROWS, policy, trainer, trains

RENDERS = SimpleNamespace(chat_template="{{ messages }}")
BARE = SimpleNamespace(chat_template=None, name_or_path="tiny/base")


def refused(rows: Any, rewards: Any = (), tokenizer: Any = RENDERS, settings: Any = None) -> str:
    with pytest.raises(ArgumentError) as caught:
        require_inputs(rows, rewards, tokenizer, settings)
    return str(caught.value)


def test_a_dataset_with_all_columns_passes() -> None:
    rewards = [orm, format, StepReward(Fixed())]
    require_inputs(ROWS, rewards, RENDERS, SimpleNamespace(remove_unused_columns=False))
    require_inputs([{**ROWS[0], "prompt": "as text"}], rewards, BARE)


@pytest.mark.parametrize("column", ["task", "gold", "question", "evidence"])
def test_a_column_that_is_missing_is_named_with_the_reward_that_reads_it(column: str) -> None:
    rows = [{name: value for name, value in row.items() if name != column} for row in ROWS]
    sentence = refused(rows, [orm, StepReward(Fixed())])
    assert f"needs the column '{column}' (" in sentence and sentence.endswith("leave remove_unused_columns at False.")


def test_a_dataset_without_prompts_or_rows_is_named() -> None:
    assert refused([{"question": "?", "gold": "7"}]) == (
        "The dataset has no column 'prompt', but 'question', 'gold'; add one that holds text, or messages with role "
        "and content."
    )
    assert refused([]) == "The dataset has no row; give one with a column 'prompt'."


def test_messages_need_a_tokenizer_with_a_chat_template() -> None:
    assert refused(ROWS, [], BARE) == (
        "The column 'prompt' holds messages, and the tokenizer 'tiny/base' has no chat template to render them; set "
        "tokenizer.chat_template, train from an instruction-tuned model, or give prompts as text."
    )


def test_a_setting_that_drops_columns_is_named() -> None:
    assert refused(ROWS, [orm], settings=SimpleNamespace(remove_unused_columns=True)) == (
        "remove_unused_columns=True drops the columns that rewards read; leave it at False in the GRPOConfig."
    )


@trains
@pytest.mark.slow
def test_the_trainer_says_it_before_it_starts(tmp_path: Path) -> None:
    bare = [{"prompt": row["prompt"], "task": row["task"]} for row in ROWS]
    with pytest.raises(ArgumentError, match="The reward 'orm' needs the column 'gold'"):
        trainer([orm], tmp_path, rows=bare)
    with pytest.raises(ArgumentError, match="The reward 'orm' needs the column 'gold'"):
        trainer([orm], tmp_path, held_out=bare)
    _, tokenizer = policy()
    tokenizer.chat_template = None
    with pytest.raises(ArgumentError, match=r"'prompt' holds messages, and the tokenizer .* has no chat template"):
        trainer([format], tmp_path, tokenizer=tokenizer)
