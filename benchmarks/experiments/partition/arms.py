"""The arms of the experiment: policies that are trained from one start and differ in their rewards alone."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.experiments.partition.exercises import Exercise
from benchmarks.experiments.partition.sizes import Size
from eldgr_dspy.base.files import replacing
from eldgr_dspy.training.curves import read_curve
from eldgr_dspy.training.grpo import parse_arguments, train

START: Final = "start"
"""The policy before any reward."""

ARMS: Final[Mapping[str, Mapping[str, float]]] = {
    "orm": {"orm": 3.0},
    "orm_format": {"orm": 3.0, "format": 0.5},
    "ra_msd": {"orm": 3.0, "format": 0.5, "ra_msd": 1.0},
    "ra_msd_conditioned": {"orm": 3.0, "format": 0.5, "ra_msd_conditioned": 1.0},
    "eldgr_rank": {"eldgr_rank": 1.0},
    "steps": {"ra_msd": 1.0},
}
"""The rewards of each arm and their weights. `eldgr_rank` and `steps` read no gold; `steps` is the control."""

RECIPE: Final = Path(__file__).with_name("recipe.yaml")


def write_rows(path: Path, questions: Iterable[Exercise]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.writelines(json.dumps(exercise.row()).encode("ascii") + b"\n" for exercise in questions)


def flags(folder: Path, arm: str, run: int, size: Size, seed: int) -> list[str]:
    """Return the flags of `python -m eldgr_dspy.training.grpo` by which an arm is trained.

    Seed and number of the run determine order and completions.
    """
    rewards = ARMS[arm]
    own: dict[str, object] = {
        "config": RECIPE,
        "model_name_or_path": folder / START,
        "dataset_name": folder / "data",
        "output_dir": folder / f"{arm}-{run}",
        "nli": folder / "reader",
        "nli_dtype": size.nli_dtype,
        "nli_batch_size": 256,
        "max_completion_length": size.reply,
        "seed": 1000 * seed + run,
        "data_seed": 1000 * seed + run,
        **size.training,
    }
    words = [word for name, value in own.items() for word in (f"--{name}", str(value))]
    return [*words, "--rewards", *rewards, "--reward_weights", *map(str, rewards.values())]


def train_arm(folder: Path, arm: str, run: int, size: Size, seed: int) -> Mapping[str, Sequence[float]]:
    """Train an arm, and return its mean reward step by step. Raises what `train` raises."""
    train(parse_arguments(flags(folder, arm, run, size, seed)))
    return {"reward": [round(point.reward or 0.0, 4) for point in read_curve(folder / f"{arm}-{run}")]}
