"""The plain command `trl grpo`: rewards by dotted name from its settings, and token confidence without our trainer."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.training.training_on import ROWS, completions, policy, trains


@trains
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:ResourceWarning")
def test_the_plain_command_trains_with_our_rewards_and_has_token_confidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trl.scripts.grpo import main, make_parser

    model, tokenizer = policy()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    settings: dict[str, Any] = {
        "model_name_or_path": str(tmp_path / "model"),
        "datasets": [{"path": "json", "data_files": str(tmp_path / "train.jsonl")}],
        "reward_funcs": [
            "eldgr_dspy.training.orm",
            "eldgr_dspy.training.format",
            "tests.training.by_name.ra_msd",
            "eldgr_dspy.training.eldgr_rank",
        ],
        "reward_weights": [3.0, 0.5, 1.0, 1.0],
        "output_dir": str(tmp_path / "out"),
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 18,
        "max_steps": 1,
        "logging_steps": 1,
        "log_completions": True,
        "save_steps": 1,
        "use_peft": True,
        "lora_target_modules": ["q_proj", "v_proj"],
        "use_cpu": True,
        "bf16": False,
        "report_to": [],
        "disable_tqdm": True,
    }
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
