"""The benchmark of a training step runs in small, and what is counted for the real shape is what the recipe says."""

import re

import pytest

from benchmarks import training, training_counts
from benchmarks.nli_times import SHAPE
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
