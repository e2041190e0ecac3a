"""A run by `python -m eldgr_dspy.training.grpo`: what it leaves, and what it refuses."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from eldgr_dspy.pools import open_pool
from eldgr_dspy.training.curves import read_curve
from eldgr_dspy.training.generation import Sampling
from eldgr_dspy.training.grpo import main, parse_arguments, trainer_of
from eldgr_dspy.training.sampling import sample_pool
from tests.case_tables import each_case, tables_of
from tests.refusing import refuses
from tests.tiny_policy import tiny_policy, tiny_tokenizer
from tests.training.saved import saved_policy
from tests.training.training_on import ROWS, SMALL, completions, policy, trains

pytestmark = [trains, pytest.mark.filterwarnings("ignore:.*:ResourceWarning")]

ROOT = Path(__file__).resolve().parents[2]
MINE = "tests.training.calling"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small run on the tiny policy, with an NLI model that reads at once."""
    folder = tmp_path_factory.mktemp("grpo")
    (folder / "data").mkdir()
    (folder / "data" / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS * 4), "utf-8")
    environment = {**os.environ, "HF_DATASETS_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "eldgr_dspy.training.grpo", *flags(folder / "run")]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    (folder / "printed").write_text(result.stdout, "utf-8")
    return folder / "run"


def flags(run: Path) -> list[str]:
    """The small recipe, with what a test has in the place of models and data."""
    rewards = ["orm", "format", "tests.training.calling.ra_msd"]
    return [
        *("--config", SMALL, "--output_dir", str(run), "--model_name_or_path", str(saved_policy())),
        *("--dataset_name", str(run.parent / "data"), "--rewards", *rewards, "--disable_tqdm", "true"),
    ]


@pytest.mark.slow
def test_a_run_prints_what_is_trained_leaves_model_curve_and_recipe_and_is_not_begun_twice(run: Path) -> None:
    output = (run.parent / "printed").read_text("utf-8")
    assert "Trainable parameters: 1,792 of " in output and f"The model is in {run}." in output
    assert (run / "adapter_model.safetensors").is_file() and (run / "tokenizer.json").is_file()
    recipe = json.loads((run / "recipe.json").read_text("utf-8"))
    assert (recipe["lora_r"], recipe["tau"], recipe["learning_rate"]) == (4, 0.5, 2e-5)
    points = read_curve(run)
    assert [point.step for point in points] == [1, 2, 3, 4]
    rows = completions(run)
    for point in points:
        own = [row["orm"] for row in rows if row["step"] == point.step]
        assert point.exact_match == pytest.approx(sum(own) / len(own))
        assert {"ra_msd/logic", "ra_msd/fact", "ra_msd/epist"} <= set(point.channels)
    with pytest.raises(SystemExit) as info:
        main(flags(run))
    assert "has checkpoints of a run; set resume_from_checkpoint: true to resume it" in str(info.value.code)


@pytest.mark.slow
def test_a_run_that_broke_off_resumes_as_if_not(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = shutil.copytree(run, tmp_path / "run")
    shutil.copytree(run.parent / "data", tmp_path / "data")
    shutil.rmtree(again / "checkpoint-4")
    before = read_curve(again)
    main([*flags(again), "--resume_from_checkpoint", "true"])
    after = read_curve(again)
    assert [point.step for point in after] == [1, 2, 3, 4]
    for one, other in zip(after, before, strict=True):
        assert one.exact_match == pytest.approx(other.exact_match)
        assert one.reward == pytest.approx(other.reward, abs=1e-4)
    assert "Trainable parameters" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_reads_a_stream_and_a_pool_is_sampled_from_what_it_leaves(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run.parent / "data", tmp_path / "data")
    main([*flags(tmp_path / "run"), "--dataset_streaming", "true", "--max_steps", "1"])
    assert len(read_curve(tmp_path / "run")) == 1
    questions = [{**row, "id": f"q{number}"} for number, row in enumerate(ROWS)]
    steps = {"early": run / "checkpoint-2", "late": run}
    pool = sample_pool(tmp_path / "pool.jsonl", questions, steps, Sampling(seed=42, max_new_tokens=18))
    assert open_pool(pool.path).sha256 == pool.sha256
    assert [[one.source for one in row.candidates] for row in pool.rows()] == [["early/1", "late/1"]] * 2


class Script:
    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.lines: list[str] = []
        self.train_dataset, self.model = ROWS, tiny_policy(tiny_tokenizer(["a b c"]))
        self.accelerator = SimpleNamespace(num_processes=1, print=self.lines.append)

    def is_world_process_zero(self) -> bool:
        return True

    def train(self, resume_from_checkpoint: object) -> Any:
        self.calls.append("train")
        return SimpleNamespace(metrics={"train_loss": 0.5})

    def __getattr__(self, name: str) -> Any:
        return lambda *values, **options: self.calls.append((name, *values, *options.values()))


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    result = Script()
    monkeypatch.setattr("eldgr_dspy.training.grpo.trainer_of", lambda recipe: result)
    return result


@pytest.mark.parametrize("push", [False, True])
def test_a_run_ends_as_trls_do_and_pushes_if_asked(push: bool, tmp_path: Path, script: Script) -> None:
    folder = str(tmp_path / "run")
    main(["--config", SMALL, "--output_dir", folder, "--push_to_hub", str(push), "--dataset_name", "mine"])
    pushes = [("push_to_hub", "mine")] if push else []
    log = ("log_metrics", "train", {"train_loss": 0.5})
    assert script.calls == ["train", log, ("save_state",), ("save_model", folder), *pushes, ("end",)]


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split by ZeRO-3"])
def test_parameters_of_other_processes_count_too(split: bool, tmp_path: Path, script: Script) -> None:
    """DeepSpeed leaves an empty parameter behind, and its size in `ds_numel`."""
    sizes = [param.numel() for param in script.model.parameters()]
    script.model.model.embed_tokens.requires_grad_(False)
    own, whole = sum(sizes[1:]), sum(sizes)
    for param in script.model.parameters() if split else ():
        param.ds_numel, param.data = param.numel(), torch.empty(0)
    main(["--config", SMALL, "--output_dir", str(tmp_path / "run")])
    assert script.lines[0] == f"Trainable parameters: {own:,} of {whole:,} ({own / whole:.3%})."
    assert 0 < own < whole
    script.model = torch.nn.Identity()
    main(["--config", SMALL, "--output_dir", str(tmp_path / "other")])
    assert [one for one in script.lines if one.startswith("Train")][1] == "Trainable parameters: 0 of 0 (0.000%)."


@each_case("training", "what a command lacks", small=lambda: SMALL)
def test_what_is_missing_is_one_sentence(arguments: list[str], message: str) -> None:
    refuses(SystemExit, message, main, arguments)


def row(**changes: Any) -> str:
    return json.dumps({**ROWS[0], **changes})


@each_case("training", "bad data and models", row=row, path=lambda name: str(ROOT / name))
def test_bad_data_and_models_give_one_sentence(text: str, more: list[str], message: str, tmp_path: Path) -> None:
    held_out = {"test": row(task="arithmetic")} if "--eval_strategy" in more else {}
    write(tmp_path / "data", train=text, **held_out)
    refuses(SystemExit, message, main, [*flags(tmp_path / "run"), *more])


def test_messages_need_a_chat_template_and_a_reward_may_be_whatever_trl_can_call(tmp_path: Path) -> None:
    policy = shutil.copytree(saved_policy(), tmp_path / "policy")
    (policy / "chat_template.jinja").unlink()
    write(tmp_path / "data", train=row())
    write(tmp_path / "text" / "data", train=row(prompt="Who?"))
    message = r"'prompt' holds messages, but the tokenizer '.*policy' has no chat template"
    refuses(SystemExit, message, main, [*flags(tmp_path / "run"), "--model_name_or_path", str(policy)])
    trainer_of(parse_arguments([*flags(tmp_path / "text" / "run"), "--model_name_or_path", str(policy)]))
    trainer = trainer_of(parse_arguments([*flags(tmp_path / "r"), "--rewards", "orm", f"{MINE}.part", f"{MINE}.half"]))
    assert trainer.reward_func_names == ["orm", "constant", "Half"]


def write(folder: Path, **splits: str) -> None:
    folder.mkdir(parents=True)
    for name, rows in splits.items():
        (folder / f"{name}.jsonl").write_text(rows, "utf-8")


@trains
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:ResourceWarning")
def test_the_plain_command_trains_with_rewards_and_confidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trl.scripts.grpo import main, make_parser

    model, tokenizer = policy()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    rewards = ["orm", "format", "tests.training.calling.ra_msd", "eldgr_rank"]
    settings: dict[str, Any] = dict(tables_of("training")["settings of the plain command"])
    settings |= {"model_name_or_path": str(tmp_path / "model"), "output_dir": str(tmp_path / "out")}
    settings["datasets"] = [{"path": "json", "data_files": str(tmp_path / "train.jsonl")}]
    settings["reward_funcs"] = [name if "." in name else f"eldgr_dspy.training.{name}" for name in rewards]
    (tmp_path / "grpo.yaml").write_text(json.dumps(settings))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    arguments = make_parser().parse_args_and_config(args=["--config", str(tmp_path / "grpo.yaml")])
    main(*arguments)
    state = json.loads((tmp_path / "out" / "checkpoint-1" / "trainer_state.json").read_text())
    first = state["log_history"][0]
    assert {"rewards/orm/mean", "rewards/format/mean", "rewards/ra_msd/mean", "rewards/eldgr_rank/mean"} <= set(first)
    assert 0 < first["ra_msd/epist"] < 1
    rows = completions(tmp_path / "out")
    assert len(rows) == 8 and {"orm_answer", "ra_msd_steps", "eldgr_rank_supported"} <= set(rows[0])
