"""The learning curve of a run: a point a step, null where nothing was sampled, and the channels beside it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training import StepReward, format, orm
from eldgr_dspy.training.curves import FILE, learning_curve, read_curve
from tests.refusing import refuses
from tests.training.calling import SAMPLE, Steady, keep, logs_of
from tests.training.training_on import trainer

HUGE = f'{{"log_history": [{{"loss": 0, "step": 1, "reward": 1{"0" * 400}}}]}}'

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing:FutureWarning")  # TRL sets the old name


def test_a_point_is_a_step_in_which_something_was_sampled_with_its_rewards_and_channels() -> None:
    (point,) = learning_curve([{**SAMPLE, "step": 1, "sampling/importance_sampling_ratio/min": 0.9}])
    assert asdict(point) == {
        "step": 1, "exact_match": 0.625, "rolling": 0.625, "reward": 2.5, "rewards": {"orm": 0.5, "ra_msd": 0.75},
        "channels": {"ra_msd/fact": 0.25},
    }  # fmt: skip
    points = learning_curve(logs_of(None, 1.0, None, 0.0))
    expected = [(None, None, None), (1.0, 1.0, 2.5), (None, 1.0, None), (0.0, 0.5, 2.5)]
    assert [(one.exact_match, one.rolling, one.reward) for one in points] == expected
    assert points[0].channels == points[0].rewards == {}
    others = [{"eval_loss": 0.1, "eval_reward": 1.0, "step": 1}, {"train_runtime": 3.0, "train_loss": 0.1, "step": 1}]
    assert [point.step for point in learning_curve([*logs_of(0.5), *others])] == [1]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "1"], ids=["nan", "inf", "none", "text"])
def test_what_is_not_a_number_is_null(value: Any) -> None:
    (point,) = learning_curve([{**SAMPLE, "step": 1, "reward": value, "orm/exact_match": value}])
    assert point.reward is point.exact_match is None


def test_the_curve_of_a_run_that_has_not_ended_is_that_of_its_last_whole_checkpoint(tmp_path: Path) -> None:
    keep(tmp_path / "checkpoint-9", logs_of(0.0))
    keep(tmp_path / "checkpoint-10", logs_of(0.0, 0.5))
    (tmp_path / "checkpoint-11").mkdir()
    assert [point.exact_match for point in read_curve(tmp_path)] == [0.0, 0.5]
    assert [point.exact_match for point in read_curve(keep(tmp_path, logs_of(0.0)))] == [0.0, 0.5], "it was resumed"
    assert [point.exact_match for point in read_curve(keep(tmp_path, logs_of(0.0, 0.5, 1.0)))] == [0.0, 0.5, 1.0]
    keep(tmp_path / "torn" / "checkpoint-1", logs_of(0.5))
    file = keep(tmp_path / "torn" / "checkpoint-2", logs_of(0.5, 1.0)) / FILE
    file.write_bytes(file.read_bytes()[:-9])
    assert [point.exact_match for point in read_curve(tmp_path / "torn")] == [0.5]


@pytest.mark.parametrize("text", ["{}", "[1]", "step", '{"log_history": [{"loss": 1}]}', '{"log_history": [1]}', HUGE])
def test_a_file_that_is_not_the_log_of_a_trainer_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text, "utf-8")
    message = "trainer_state.json: not the log of a trainer; give the output folder"
    refuses(ArgumentError, message, read_curve, tmp_path)
    refuses(
        ArgumentError, "has no trainer_state.json; give the output folder of a run", read_curve, tmp_path / "absent"
    )


@pytest.mark.slow
def test_in_a_training_the_curve_has_a_point_a_step_and_null_where_completions_are_used_again(tmp_path: Path) -> None:
    rewards = [orm, format, StepReward(Steady(fact=0.25), evidence=False, confidence=False)]
    grpo = trainer(rewards, tmp_path, num_iterations=2, max_steps=4)
    grpo.train()
    grpo.save_state()
    points = read_curve(tmp_path)
    assert points == learning_curve(grpo.state.log_history)
    assert [point.step for point in points] == [1, 2, 3, 4]
    assert [point.exact_match is None for point in points] == [False, True, False, True]
    assert [point.exact_match for point in points] == [point.rewards.get("orm") for point in points]
    assert points[0].channels == {"ra_msd/logic": 1.0, "ra_msd/fact": 0.25}
