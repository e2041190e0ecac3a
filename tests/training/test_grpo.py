"""Real trainings by TRL: what is logged follows from completions, rewards change nothing else; what a step costs."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from benchmarks import training, training_counts
from benchmarks.hacking import WEIGHTS as RATIOS
from benchmarks.hacking import roll, train_policy
from benchmarks.nli_times import SHAPE
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training import GroupReward, StepReward, format, orm, weights_of
from eldgr_dspy.training.curves import Point
from eldgr_dspy.training.grpo import parse_arguments
from eldgr_dspy.training.named_rewards import process_reward
from tests.scoring.readers import Reader
from tests.training.calling import by_heart
from tests.training.drawing import Drawing
from tests.training.training_on import GOLD, completions, trainer, trains

pytestmark = [trains, pytest.mark.slow]

WEIGHTS = {"orm": 3.0, "format": 0.5, "ra_msd": 1.0, "prm": 1.0, "eldgr_rank": 1.0}
CHANNELS = {"logic": 0.2, "fact": 0.2, "epist": 0.1, "info": 0.15, "triang": 0.1, "adv": 0.15, "min": 0.1}


class Run(NamedTuple):
    log: list[dict[str, Any]]
    steps: list[list[dict[str, Any]]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three steps with all rewards, LoRA with dropout, and an NLI model that reads at once."""
    from peft import LoraConfig

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("run")
    reader = Reader(by_heart)
    prm = process_reward(reader)
    rewards = [orm, format, StepReward(NLIScorer(reader)), prm, GroupReward(auxiliary=process_reward(reader))]
    adapter = LoraConfig(r=4, lora_alpha=8, lora_dropout=0.3, target_modules=["q_proj", "v_proj"])
    grpo = trainer(rewards, folder, peft_config=adapter, reward_weights=weights_of(rewards), log_completions=True)
    grpo.train()
    lines = completions(folder)
    log = [entry for entry in grpo.state.log_history if "reward" in entry]
    return Run(log, [[row for row in lines if row["step"] == entry["step"]] for entry in log])


def text_of(row: dict[str, Any]) -> str:
    text: str = row["completion"][0]["content"]
    return text


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def test_three_steps_of_eight_completions_differ_and_the_total_is_the_weighted_sum_and_finite(run: Run) -> None:
    assert [len(step) for step in run.steps] == [8, 8, 8]
    assert len({text_of(row) for step in run.steps for row in step}) > 8
    assert {row["orm"] for step in run.steps for row in step} == {0.0, 1.0}
    for entry, step in zip(run.log, run.steps, strict=True):
        total = [sum(weight * row[name] for name, weight in WEIGHTS.items()) for row in step]
        assert entry["reward"] == pytest.approx(mean(total), abs=1e-5)
        assert all(math.isfinite(value) for value in entry.values() if value is not None)
        assert None not in [entry[name] for name in entry if name.partition("/")[0] in WEIGHTS]
    assert all(sum(row["eldgr_rank"] for row in step) == pytest.approx(4) for step in run.steps)


def test_exact_match_and_format_are_those_of_the_texts(run: Run) -> None:
    for entry, step in zip(run.log, run.steps, strict=True):
        matches = [re.findall(r"^A: *(.*\S)", text_of(row), re.MULTILINE) for row in step]
        answers = [result[-1] if result else text_of(row) for result, row in zip(matches, step, strict=True)]
        gold = [GOLD[row["prompt"][0]["content"]] for row in step]
        right = [float(plain(answer) == plain(one)) for answer, one in zip(answers, gold, strict=True)]
        assert [row["orm"] for row in step] == right
        assert entry["rewards/orm/mean"] == entry["orm/exact_match"] == mean(right)
        assert entry["rewards/format/mean"] == mean([float(bool(result)) for result in matches])


def plain(answer: str) -> str:
    """HotpotQA's normalisation, as far as these texts need it."""
    return " ".join(word for word in re.sub(r"[^\w\s]", "", answer.lower()).split() if word not in {"a", "an", "the"})


def step_reward(channels: dict[str, float | None]) -> float | None:
    """R_step (Eq. 2) of one step, written out."""
    scores = {name: score for name, score in channels.items() if score is not None}
    gate = [scores[name] for name in ("logic", "fact") if name in scores]
    if gate and min(gate) < 0.5:
        return min(gate)
    total = sum(CHANNELS[name] for name in scores)
    return sum(CHANNELS[name] * score for name, score in scores.items()) / total if scores else None


def over_all_steps(rewards: Sequence[float], text: str) -> float:
    """What steps earn together by the number of all steps, measured or not, and of lines of padding."""
    table: dict[str, Any] = json.loads(text)
    return float(sum(rewards) / max(1, len(table["steps"]) + table["padding"]))


def test_the_rewards_of_steps_are_those_of_the_shown_channels_and_of_logic_alone(run: Run) -> None:
    for entry, step in zip(run.log, run.steps, strict=True):
        tables = [[one["channels"] for one in json.loads(row["ra_msd_steps"])["steps"]] for row in step]
        for row, table in zip(step, tables, strict=True):
            rewards = [reward for reward in map(step_reward, table) if reward is not None]
            assert row["ra_msd"] == pytest.approx(over_all_steps(rewards, row["ra_msd_steps"]), abs=1e-6)
            assert (row["ra_msd_note"] is None) == bool(rewards)
        for name in CHANNELS:
            means = [[one[name] for one in table if one[name] is not None] for table in tables]
            assert entry[f"ra_msd/{name}"] == pytest.approx(mean([mean(one) for one in means if one]), abs=1e-6), name
        assert entry["rewards/ra_msd/mean"] == pytest.approx(mean([row["ra_msd"] for row in step]), abs=1e-6)
        assert entry["ra_msd/steps"] == mean([len(table) for table in tables])
        assert entry["ra_msd/undefined"] == mean([float(row["ra_msd_note"] is not None) for row in step])
        for row in step:
            logic = [one["channels"]["logic"] for one in json.loads(row["prm_steps"])["steps"]]
            scores = [score for score in logic if score is not None]
            assert row["prm"] == pytest.approx(over_all_steps(scores, row["prm_steps"]), abs=1e-6)
        assert entry["rewards/prm/mean"] == pytest.approx(mean([row["prm"] for row in step]), abs=1e-6)


def test_fact_and_logic_are_what_the_nli_model_was_told_to_read_and_epist_comes_from_token_confidence(run: Run) -> None:
    """By heart: Dubai and bricks contradict everything, and a sentence of the evidence is entailed by it."""
    read = [one for step in run.steps for row in step for one in json.loads(row["ra_msd_steps"])["steps"]]
    cases = [one for one in read if re.search("Dubai|bricks", one["text"]) and len(one["text"].split()) > 1]
    results = [one["channels"]["fact"] for one in cases if one["document"] is not None]
    assert results and set(results) == {0} and {one["channels"]["logic"] for one in cases} == {0}
    assert {one["channels"]["fact"] for one in read if one["text"].strip() == "The host was Qatar."} == {1}
    pairs = [(one["channels"]["epist"], one["channels"]["fact"]) for one in read if one["channels"]["fact"] is not None]
    assert pairs and all(epist is not None and 0 < epist < 1 for epist, _ in pairs)
    assert len({round(epist, 6) for epist, _ in pairs}) > 4


def trajectory(rewards: list[Any], folder: Path, weights: list[float]) -> tuple[list[str], list[Any]]:
    grpo = trainer(rewards, folder, reward_weights=weights, log_completions=True, max_steps=2)
    grpo.train()
    return [text_of(row) for row in completions(folder)], [one.tolist() for one in grpo.model.parameters()]


def test_draws_of_a_reward_change_nothing_and_without_that_care_would_change_what_is_sampled(tmp_path: Path) -> None:
    plain_run = trajectory([orm, format], tmp_path / "plain", [3.0, 0.5])
    scorer = Drawing()
    drawing = StepReward(scorer, name="drawing")
    assert trajectory([orm, format, drawing], tmp_path / "drawing", [3.0, 0.5, 0.0]) == plain_run
    assert (scorer.calls, len(scorer.inputs)) == (2, 16), "one call for all completions of a generation batch"
    texts, _ = trajectory([orm], tmp_path / "plain", [1.0])
    other, _ = trajectory([orm, unkept], tmp_path / "unkept", [1.0, 0.0])
    assert texts[:8] == other[:8] and texts != other


def unkept(prompts: list[Any], **columns: Any) -> list[float]:
    """A reward that nobody keeps from drawing."""
    torch.rand(3)
    return [0.0] * len(prompts)


def test_an_evaluation_is_rewarded_as_the_training_is(tmp_path: Path) -> None:
    from datasets import Dataset

    from tests.training.training_on import ROWS

    grpo = trainer([orm, GroupReward()], tmp_path, num_generations_eval=2, per_device_eval_batch_size=4)
    result = grpo.evaluate(Dataset.from_list(ROWS))
    assert result["eval_rewards/eldgr_rank/mean"] == 0.5 and 0 <= result["eval_orm/exact_match"] <= 1


@pytest.mark.filterwarnings("ignore:.*:ResourceWarning")
def test_a_step_of_the_tiny_shape_is_split_into_parts_that_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    training.main(["--shape", "tiny", "--device", "cpu", "--steps", "1"])
    table = dict(re.findall(r"^ *(.*\S) {2,}([\d.]+) ", capsys.readouterr().out, re.MULTILINE))
    result = {name: float(value) for name, value in table.items()}
    parts = [result[name] for name in ("generation", "confidence", "reward", "update")]
    assert all(part > 0 for part in parts) and sum(parts) == pytest.approx(result["seconds a step"], abs=0.003)
    assert result["share of the reward"] == pytest.approx(100 * result["reward"] / result["seconds a step"], rel=0.05)
    assert 30 < result["tokens a completion"] <= 40 and result["reasoning steps a completion"] > 1
    assert 2 < result["NLI pairs a reasoning step"] < 20 and result["peak memory of the process"] > 0


def test_what_is_counted_is_the_real_shape() -> None:
    counts = training_counts.counts_of(parse_arguments(["--config", "ra_msd", "--use_cpu", "true", "--bf16", "false"]))
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
    first, last = roll(points[:1], name)[-1], roll(points, name)[-1]
    assert first is not None and last is not None
    return first, last


def test_rewarded_for_steps_alone_a_policy_stops_answering_and_by_the_paper_it_learns_to(tmp_path: Path) -> None:
    """For steps alone it learns to copy a passage, which is grounded in it and answers nothing."""
    for name in ("steps-alone", "paper"):
        points = train_policy(RATIOS[name], tmp_path / name)
        (match, matches), (earn, earns), (fact, after) = (
            change(points, figure) for figure in ("exact_match", "reward", "ra_msd/fact")
        )
        assert earns > earn
        if name == "paper":
            assert matches > match * 1.4
            assert after < fact, "what is grounded is not what is right: it falls as answers get better"
        else:
            assert matches < match / 4 and after > fact
