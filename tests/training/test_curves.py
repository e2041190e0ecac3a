"""The learning curve of a run: a point a step, null where nothing was sampled, and the channels beside it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training import StepReward, format, orm
from eldgr_dspy.training.curves import FILE, CurveRecorder, learning_curve, read_curve, rolling_mean
from tests.training.calling import Fixed
from tests.training.recorded import SAMPLED, matched, told
from tests.training.training_on import trainer

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing:FutureWarning")  # TRL sets the old name


def test_a_point_has_exact_match_rewards_and_channels_and_nothing_else(tmp_path: Path) -> None:
    assert told(CurveRecorder(), tmp_path, [SAMPLED]) == [
        {
            "step": 1,
            "exact_match": 0.625,
            "rolling": 0.625,
            "reward": 2.5,
            "rewards": {"orm": 0.5, "ra_msd": 0.75},
            "channels": {"ra_msd/fact": 0.25},
        }
    ]


def test_a_step_in_which_nothing_was_sampled_is_null(tmp_path: Path) -> None:
    points = told(CurveRecorder(), tmp_path, matched(None, 1.0, None, 0.0))
    assert [(one["exact_match"], one["rolling"], one["reward"]) for one in points] == [
        (None, None, None),
        (1.0, 1.0, 2.5),
        (None, 1.0, None),
        (0.0, 0.5, 2.5),
    ]
    assert points[0]["channels"] == points[0]["rewards"] == {}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "1"], ids=["nan", "inf", "none", "text"])
def test_what_is_not_a_number_is_null(value: Any, tmp_path: Path) -> None:
    (point,) = told(CurveRecorder(), tmp_path, [{**SAMPLED, "reward": value, "orm/exact_match": value}])
    assert point["reward"] is point["exact_match"] is None


def test_evaluations_and_the_summary_at_the_end_are_no_steps(tmp_path: Path) -> None:
    others = [{"eval_loss": 0.1, "eval_reward": 1.0}, {"train_runtime": 3.0, "train_loss": 0.1}, None]
    assert [one["step"] for one in told(CurveRecorder(), tmp_path, [SAMPLED, *others])] == [1]


def test_the_rolling_mean_is_over_the_last_ten_steps() -> None:
    assert rolling_mean([float(value) for value in range(12)])[-3:] == [4.5, 5.5, 6.5]
    assert rolling_mean([1.0, None, 3.0], window=2) == [1.0, 1.0, 3.0]
    assert rolling_mean([1.0, None, None], window=2) == [1.0, 1.0, None]
    assert rolling_mean([]) == []


def test_a_resumed_run_continues_from_the_step_that_it_resumes_at(tmp_path: Path) -> None:
    told(CurveRecorder(), tmp_path, matched(0.0, 0.5, 1.0))
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"step": 4, "exact')
    points = told(CurveRecorder(), tmp_path, matched(0.25), begun=2)
    assert [(one["step"], one["exact_match"], one["rolling"]) for one in points] == [
        (1, 0.0, 0.0),
        (2, 0.5, 0.25),
        (3, 0.25, 0.25),
    ]


def test_a_run_that_begins_keeps_nothing_of_another(tmp_path: Path) -> None:
    told(CurveRecorder(), tmp_path, matched(0.0, 0.5))
    assert [one["exact_match"] for one in told(CurveRecorder(), tmp_path, matched(1.0))] == [1.0]


def test_processes_beside_the_first_write_nothing(tmp_path: Path) -> None:
    args = SimpleNamespace(output_dir=str(tmp_path), logging_strategy="steps", logging_steps=1)
    state = SimpleNamespace(is_world_process_zero=False, global_step=0)
    recorder = CurveRecorder()
    recorder.on_train_begin(args, state, None)
    recorder.on_log(args, state, None, logs=SAMPLED)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("strategy", "steps"), [("steps", 10), ("epoch", 1)])
def test_a_trainer_that_does_not_log_every_step_is_refused(strategy: str, steps: int, tmp_path: Path) -> None:
    args = SimpleNamespace(output_dir=str(tmp_path), logging_strategy=strategy, logging_steps=steps)
    state = SimpleNamespace(is_world_process_zero=True, global_step=0)
    with pytest.raises(ArgumentError, match=r"logging_steps must be 1, for a point a step; got .* Set logging_steps=1"):
        CurveRecorder().on_train_begin(args, state, None)


@pytest.mark.parametrize("text", ["{}\n", "[1]\n", "step 1\n"])
def test_a_file_that_is_not_a_curve_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text, "utf-8")
    with pytest.raises(ArgumentError, match=r"learning_curve.jsonl, line 1: not a point"):
        read_curve(tmp_path / FILE)
    with pytest.raises(ArgumentError, match="cannot be read"):
        read_curve(tmp_path / "absent")


@pytest.mark.slow
def test_in_a_training_the_curve_has_a_point_a_step_and_null_where_completions_are_used_again(tmp_path: Path) -> None:
    rewards = [orm, format, StepReward(Fixed(fact=0.25), evidence=False, confidence=False)]
    made = trainer(rewards, tmp_path, num_iterations=2, max_steps=4)
    made.add_callback(learning_curve())
    made.train()
    points = read_curve(tmp_path / FILE)
    assert [point.step for point in points] == [1, 2, 3, 4]
    assert [point.exact_match is None for point in points] == [False, True, False, True]
    assert [point.exact_match for point in points] == [point.rewards.get("orm") for point in points]
    assert points[0].channels == {"ra_msd/logic": 1.0, "ra_msd/fact": 0.25}
