"""Logs that a trainer of transformers would keep, and the folder of a run that has them."""

import json
from pathlib import Path
from typing import Any

from eldgr_dspy.training.curves import FILE

SAMPLED = {
    "loss": 0.1, "reward": 2.5, "rewards/orm/mean": 0.5, "rewards/orm/std": 0.5, "rewards/ra_msd/mean": 0.75,
    "orm/exact_match": 0.625, "ra_msd/fact": 0.25, "ra_msd/steps": 3.0, "entropy": 0.3,
}  # fmt: skip


def matched(*values: float | None) -> list[dict[str, Any]]:
    """The log of a step for each value of exact match; where it is None, nothing was sampled."""
    logs = [{"loss": 0.0} if value is None else {**SAMPLED, "orm/exact_match": value} for value in values]
    return [{**log, "step": step} for step, log in enumerate(logs, start=1)]


def kept(folder: Path, logs: list[dict[str, Any]]) -> Path:
    """A folder in which a trainer has kept these logs."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps({"global_step": len(logs), "log_history": logs}), "utf-8")
    return folder
