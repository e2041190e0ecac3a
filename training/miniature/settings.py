"""The size of a miniature: the full form, and the short one with a single policy."""

from dataclasses import dataclass
from typing import Final

from eldgr_dspy.training.miniature.task import Sizes
from eldgr_dspy.words import Task

SEED: Final = 42
"""The paper's."""

CONFIRMING: Final = 2029
"""The seed of the confirmation pool, the paper's."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a miniature.

    Attributes:
        sizes: Of the task.
        taught: Batches of the supervised start.
        batch: Examples of each task in one of them; sums take longer to learn than facts.
        read: Batches of the NLI model; 0 if no reward reads.
        policies: Recipes that a policy is trained by, in the order of the pool's candidates.
        training: Fields that replace the recipe's, the same for all policies.
    """

    sizes: Sizes
    taught: int
    batch: dict[Task, int]
    read: int
    policies: tuple[str, ...]
    training: dict[str, str]


_TRAINING: Final = {
    "max_completion_length": "48",
    "num_generations": "8",
    "temperature": "0.7",
}

FULL: Final = Settings(
    sizes=Sizes(
        people=120,
        towns=16,
        firms=10,
        most=9,
        parts={"retrieval": (260, 160, 200, 100), "arithmetic": (1400, 400, 200, 100)},
    ),
    taught=1000,
    batch={"retrieval": 8, "arithmetic": 24},
    read=600,
    policies=("grpo", "orm", "prm", "ra_msd"),
    training={**_TRAINING, "per_device_train_batch_size": "64", "learning_rate": "2e-3", "max_steps": "100"},
)

SHORT: Final = Settings(
    sizes=Sizes(
        people=30, towns=6, firms=5, most=5, parts={"retrieval": (100, 36, 40, 4), "arithmetic": (60, 4, 8, 4)}
    ),
    taught=320,
    batch={"retrieval": 14, "arithmetic": 2},
    read=0,
    policies=("grpo",),
    training={**_TRAINING, "per_device_train_batch_size": "32", "learning_rate": "3e-3", "max_steps": "70"},
)
