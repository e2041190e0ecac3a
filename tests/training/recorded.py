"""What a learning curve records of logs that a trainer would write."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from eldgr_dspy.training.curves import FILE, CurveRecorder

SAMPLED = {
    "loss": 0.1, "reward": 2.5, "rewards/orm/mean": 0.5, "rewards/orm/std": 0.5, "rewards/ra_msd/mean": 0.75,
    "orm/exact_match": 0.625, "ra_msd/fact": 0.25, "ra_msd/steps": 3.0, "entropy": 0.3,
}  # fmt: skip


def told(
    recorder: CurveRecorder, folder: Path, logs: list[dict[str, Any] | None], begun: int = 0
) -> list[dict[str, Any]]:
    """What the file holds after a run that begins at a step and logs these, a step each."""
    args = SimpleNamespace(output_dir=str(folder), logging_strategy="steps", logging_steps=1)
    state = SimpleNamespace(is_world_process_zero=True, global_step=begun)
    recorder.on_train_begin(args, state, None)
    for log in logs:
        state.global_step += 1
        recorder.on_log(args, state, None, logs=log)
    return [json.loads(line) for line in (folder / FILE).read_text("utf-8").splitlines()]


def matched(*values: float | None) -> list[dict[str, Any] | None]:
    return [{"loss": 0.0} if value is None else {**SAMPLED, "orm/exact_match": value} for value in values]
