"""What a run lacks is said before it starts, in a sentence that names the field and the remedy."""

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training import (
    Conditioned,
    GroupReward,
    Reward,
    StepReward,
    format,
    orm,
    prm,
    require_columns,
)
from eldgr_dspy.training.named_rewards import NamedNLI, process_reward
from tests.refusing import refused as refused_by
from tests.training.calling import Fixed
from tests.training.training_on import ROWS


def repr_of(reward: Reward) -> str:
    return "+".join([reward.__name__, *(part.__name__ for part in reward.parts)])


def refused(rows: Any, rewards: Any = ()) -> str:
    return refused_by(lambda: require_columns(rows, rewards))


@pytest.mark.parametrize("column", ["task", "gold", "question", "evidence"])
def test_a_column_that_is_missing_is_named_with_the_reward_that_reads_it(column: str) -> None:
    rows = [{name: value for name, value in row.items() if name != column} for row in ROWS]
    sentence = refused(rows, [orm, StepReward(Fixed())])
    assert f"needs the column '{column}' (" in sentence and sentence.endswith("leave remove_unused_columns at False.")


def test_a_dataset_without_prompts_or_rows_is_named() -> None:
    assert refused([{"question": "?", "gold": "7"}]) == (
        "The dataset must have the column 'prompt'; got 'question', 'gold'. Add one that holds text, or messages "
        "with role and content."
    )
    assert refused([]) == "The dataset must have at least one row; give one with a column 'prompt'."


STEPS = StepReward(Fixed())
SOLVED = [{**ROWS[0], "task": "arithmetic", "gold": ["7"], "evidence": None}]


@pytest.mark.parametrize("nothing", [None, []], ids=["null", "empty"])
@pytest.mark.parametrize(
    "reward", [STEPS, Conditioned(STEPS, on=orm), GroupReward(), GroupReward(auxiliary=STEPS)], ids=repr_of
)
def test_where_no_row_has_passages_a_reward_that_reads_them_is_refused(reward: Reward, nothing: Any) -> None:
    rows = [{**row, "evidence": nothing} for row in ROWS]
    own = reward if isinstance(reward, GroupReward) and not reward.parts else STEPS
    assert refused(rows, [orm, reward]) == (
        f"The reward '{own.__name__}' reads passages, but no row of the dataset has any in the column 'evidence'; "
        "add them as strings or as {title, text}, or give all rows one corpus, by the field corpus of a recipe or by "
        "StepReward(NLIScorer(nli, retriever=...), evidence=False)."
    )
    require_columns([*rows, ROWS[0]], [reward])
    require_columns(iter(rows), [reward])  # a stream may bring them later


def test_in_arithmetic_the_group_rank_reads_no_passage_and_its_auxiliary_reward_may() -> None:
    require_columns(SOLVED, [orm, GroupReward(), GroupReward(auxiliary=prm, name="by_logic")])
    assert "no row of the dataset has any" in refused(SOLVED, [GroupReward(auxiliary=STEPS)])
    assert "no row of the dataset has any" in refused(SOLVED, [STEPS])


@pytest.mark.parametrize("reward", [orm, Conditioned(format, on=orm), GroupReward(auxiliary=orm)], ids=repr_of)
@pytest.mark.parametrize("on_disk", [False, True])
def test_gold_that_is_not_a_number_where_one_is_expected_is_refused_with_its_row(reward: Reward, on_disk: bool) -> None:
    """Before the first step, wherever the row is; what states a number is read for it."""
    golds: list[Any] = [["72"], ["So <<24+48=72>>72 clips.\n#### 72"], None, ["seventy-two"]]
    rows: Any = [{**SOLVED[0], "gold": gold} for gold in golds]
    rows = Dataset.from_list(rows) if on_disk else rows
    assert refused(rows, [reward]) == (
        "gold[3] must be an answer of the type 'arithmetic', or a text that states one, as '#### 72'; got "
        "'seventy-two'. Fix the row of the dataset."
    )
    require_columns(rows.select(range(3)) if on_disk else rows[:3], [reward])
    require_columns(iter(rows), [reward])  # the reward itself refuses the row of a stream


@pytest.mark.parametrize("within", [lambda one: one, lambda one: Conditioned(one, on=orm)], ids=["alone", "in another"])
def test_an_nli_model_that_is_not_there_is_named_before_the_first_step(within: Any, tmp_path: Path) -> None:
    """It is loaded before the policy, and not when the first step is scored."""
    absent = NamedNLI(str(tmp_path))
    with pytest.raises(ArgumentError, match=r"has no config.json.*give a folder"):
        within(process_reward(absent)).prepare()
    with pytest.raises(ArgumentError, match=r"has no config.json.*give a folder"):
        GroupReward(auxiliary=StepReward(NLIScorer(absent))).prepare()
