"""The sizes of the experiment: a smoke test, a small one for two cores, and one for a GPU."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.experiments.partition.policy import Shape
from eldgr_dspy.programs.scoring.cross_encoder import Precision


@dataclass(frozen=True, slots=True)
class Warm:
    """How the start of all policies is taught.

    Attributes:
        questions: Of each task, to be taught with their right replies.
        batch: Examples of a task in a batch while the policy is below the range in that task.
        kept: Examples of a task in a batch once it has reached the range.
        rate: The learning rate.
        every: Batches between two looks at the exact match on questions for validation.
        validated: Questions of each task for that.
        most: Batches at most.
        reached: The exact match of a task, in percent, at which it counts as taught.
        in_range: Whether a start outside the range of `starting` ends the run.
    """

    questions: int
    batch: int
    kept: int
    rate: float
    every: int
    validated: int
    most: int
    reached: float
    in_range: bool = True


@dataclass(frozen=True, slots=True)
class Size:
    """A size of the experiment.

    Attributes:
        seeds: Of worlds, problems, weights and the reader; each has a start of its own.
        runs: How often each arm is trained from a start.
        arms: Of `arms.ARMS`.
        shape: Of the policy.
        warm: How the start is taught.
        reader: Batches that the NLI model is taught, and pairs in one.
        trained: Questions of each task that rewards are earned on.
        held: Questions of each task for the greedy replies.
        pooled: Questions of each task for the sampled pools.
        samples: Candidates of a question.
        reply: Tokens of a reply at most.
        training: Fields of the recipe.
        nli_dtype: The precision in which the reader reads.
        device: As torch names it.
        processes: Jobs at once.
        sampled: Completions at once when a pool is sampled.
    """

    seeds: tuple[int, ...]
    runs: int
    arms: tuple[str, ...]
    shape: Shape
    warm: Warm
    reader: tuple[int, int]
    trained: int
    held: int
    pooled: int
    samples: int
    reply: int
    training: Mapping[str, str]
    nli_dtype: Precision
    device: str
    processes: int
    sampled: int


ALL: Final = ("orm", "orm_format", "ra_msd", "ra_msd_conditioned", "eldgr_rank", "steps")

_ON_CPU: Final = {"use_cpu": "true", "bf16": "false"}

SMOKE: Final = Size(
    seeds=(1,),
    runs=1,
    arms=ALL,
    shape=Shape(layers=2, hidden=64, heads=2, positions=256),
    warm=Warm(questions=64, batch=8, kept=2, rate=3e-3, every=20, validated=8, most=20, reached=22.0, in_range=False),
    reader=(10, 16),
    trained=16,
    held=8,
    pooled=8,
    samples=3,
    reply=56,
    training={**_ON_CPU, "per_device_train_batch_size": "16", "learning_rate": "3e-4", "max_steps": "1"},
    nli_dtype="float32",
    device="cpu",
    processes=1,
    sampled=32,
)

SMALL: Final = Size(
    seeds=(1, 2, 3, 4),
    runs=2,
    arms=ALL,
    shape=Shape(layers=2, hidden=128, heads=4, positions=256),
    warm=Warm(questions=8000, batch=16, kept=2, rate=2e-3, every=20, validated=100, most=2000, reached=22.0),
    reader=(500, 48),
    trained=1500,
    held=200,
    pooled=150,
    samples=8,
    reply=64,
    training={**_ON_CPU, "per_device_train_batch_size": "64", "learning_rate": "3e-4", "max_steps": "80"},
    nli_dtype="float32",
    device="cpu",
    processes=2,
    sampled=128,
)

GPU: Final = Size(
    seeds=(1, 2, 3, 4),
    runs=2,
    arms=ALL,
    shape=Shape(layers=8, hidden=512, heads=8, positions=512),
    warm=Warm(questions=100_000, batch=128, kept=16, rate=5e-4, every=50, validated=400, most=3000, reached=22.0),
    reader=(800, 128),
    trained=20_000,
    held=1000,
    pooled=500,
    samples=8,
    reply=64,
    training={
        "use_cpu": "false",
        "bf16": "true",
        "per_device_train_batch_size": "512",
        "learning_rate": "1e-4",
        "max_steps": "120",
    },
    nli_dtype="bfloat16",
    device="cuda",
    processes=6,
    sampled=1024,
)

SIZES: Final[Mapping[str, Size]] = {"smoke": SMOKE, "small": SMALL, "gpu": GPU}
