"""The benchmarks of training: what a step costs, and a reward that rises while answers get worse."""

import re
from pathlib import Path

import pytest

from benchmarks import training, training_counts
from benchmarks.hacking import WEIGHTS, rolled, trained
from benchmarks.nli_times import SHAPE
from eldgr_dspy.training.curves import Point
from eldgr_dspy.training.grpo import parse_arguments
from tests.training.training_on import trains

pytestmark = [trains, pytest.mark.slow]


@pytest.mark.filterwarnings("ignore:.*:ResourceWarning")
def test_a_step_of_the_tiny_shape_is_split_into_parts_that_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    training.main(["--shape", "tiny", "--device", "cpu", "--steps", "1"])
    printed = dict(re.findall(r"^ *(.*\S) {2,}([\d.]+) ", capsys.readouterr().out, re.MULTILINE))
    result = {name: float(value) for name, value in printed.items()}
    parts = [result[name] for name in ("generation", "confidence", "reward", "update")]
    assert all(part > 0 for part in parts) and sum(parts) == pytest.approx(result["seconds a step"], abs=0.003)
    assert result["share of the reward"] == pytest.approx(100 * result["reward"] / result["seconds a step"], rel=0.05)
    assert 30 < result["tokens a completion"] <= 40 and result["reasoning steps a completion"] > 1
    assert 2 < result["NLI pairs a reasoning step"] < 20 and result["peak memory of the process"] > 0


def test_what_is_counted_is_the_real_shape() -> None:
    counts = training_counts.counted(parse_arguments(["--config", "ra_msd", "--use_cpu", "true", "--bf16", "false"]))
    assert (counts.policy, counts.adapter) == (3_085_938_688, 7_372_800)
    assert counts.nli == pytest.approx(141.9e6, rel=0.01)
    assert counts.decoding > 36 * 20 and counts.updating > counts.reading > 36 * 20


def test_the_formula_for_a_pair_is_what_torch_counts() -> None:
    """On one layer of the real width, with the positions that are projected once a batch."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    judge = training_counts._judge({"vocab_size": 64, "num_hidden_layers": 1})
    ids = torch.ones((1, training_counts.PAIR), dtype=torch.long)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        judge(input_ids=ids, attention_mask=ids)
    layers = SHAPE["num_hidden_layers"]
    by_formula = (training_counts._pair_flops() + training_counts._batch_flops()) / layers
    assert counter.get_total_flops() == pytest.approx(by_formula, rel=0.001)


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
