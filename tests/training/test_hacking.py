"""A reward that rises while answers get worse: the found example, and the weights under which it does not happen."""

from pathlib import Path

import pytest

from benchmarks.hacking import WEIGHTS, rolled, trained
from eldgr_dspy.training.curves import Point
from tests.training.training_on import trains

pytestmark = [trains, pytest.mark.slow]


def change(points: list[Point], name: str) -> tuple[float, float]:
    """What the policy did before it was trained, in the first step, and the mean over the last ten steps."""
    first, last = rolled(points[:1], name)[-1], rolled(points, name)[-1]
    assert first is not None and last is not None
    return first, last


def test_where_steps_are_all_that_is_rewarded_the_reward_rises_and_exact_match_falls_to_nothing(tmp_path: Path) -> None:
    """The policy learns to copy a passage, which is grounded in it and answers nothing."""
    points = trained(WEIGHTS["steps-alone"], tmp_path)
    (matched, matches), (earned, earns), (grounded, copied) = (
        change(points, name) for name in ("exact_match", "reward", "ra_msd/fact")
    )
    assert matches < matched / 4 and earns > earned and copied > grounded


def test_by_the_weights_of_the_paper_the_same_policy_learns_to_answer(tmp_path: Path) -> None:
    points = trained(WEIGHTS["paper"], tmp_path)
    (matched, matches), (earned, earns), (grounded, paraphrased) = (
        change(points, name) for name in ("exact_match", "reward", "ra_msd/fact")
    )
    assert matches > matched * 1.4 and earns > earned
    assert paraphrased < grounded, "what is grounded is not what is right: the channel falls as answers get better"
