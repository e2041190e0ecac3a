"""The sizes of the experiment: a smoke test, a small one for two cores, and one for a GPU."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.experiments.partition.small_policy import Shape
from eldgr_dspy.programs.scoring.cross_encoder import Precision


@dataclass(frozen=True, slots=True)
class Warm:
    """How the start of all policies is taught, in two phases; see `starting`.

    Attributes:
        questions: Of each task, to be taught with their right replies.
        batch: Examples of retrieval and of arithmetic in a batch; sums take longer to learn.
        worked: Batches of the first phase, and its greatest learning rate, which falls to 0.
        varied: Batches of the second phase, at least and at most, and its learning rate.
        every: Batches of the second phase between two looks at the exact match.
        validated: Questions of each task for that.
        in_range: Whether a start outside the range of `starting` ends the run.
    """

    questions: int
    batch: tuple[int, int]
    worked: tuple[int, float]
    varied: tuple[int, int, float]
    every: int
    validated: int
    in_range: bool = True


@dataclass(frozen=True, slots=True)
class Size:
    """A size of the experiment.

    Attributes:
        seeds: Of worlds, problems, weights and the reader; each has a start of its own.
        runs: How often each arm is trained from a start.
        arms: Of `arms.ARMS`.
        people: In the world of a retrieval question; with more than one, a policy must tell them apart.
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
    people: int
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
    people=1,
    shape=Shape(layers=2, hidden=64, heads=2, positions=256),
    warm=Warm(64, batch=(4, 4), worked=(10, 3e-3), varied=(10, 10, 5e-4), every=10, validated=8, in_range=False),
    reader=(10, 16),
    trained=16,
    held=8,
    pooled=8,
    samples=3,
    reply=72,
    training={**_ON_CPU, "per_device_train_batch_size": "16", "learning_rate": "2e-3", "max_steps": "1", "lora_r": "4"},
    nli_dtype="float32",
    device="cpu",
    processes=1,
    sampled=32,
)

SMALL: Final = Size(
    seeds=(11, 12, 13),
    runs=2,
    arms=ALL,
    people=1,
    shape=Shape(layers=2, hidden=128, heads=4, positions=256),
    warm=Warm(8000, batch=(16, 24), worked=(500, 3e-3), varied=(30, 120, 5e-4), every=10, validated=200),
    reader=(400, 48),
    trained=1500,
    held=200,
    pooled=150,
    samples=8,
    reply=72,
    training={
        **_ON_CPU,
        "per_device_train_batch_size": "64",
        "learning_rate": "2e-3",
        "max_steps": "50",
        "lora_r": "4",
    },
    nli_dtype="float32",
    device="cpu",
    processes=2,
    sampled=128,
)

GPU: Final = Size(
    seeds=(1, 2, 3, 4),
    runs=2,
    arms=ALL,
    people=3,
    shape=Shape(layers=8, hidden=512, heads=8, positions=512),
    warm=Warm(100_000, batch=(64, 64), worked=(2000, 1e-3), varied=(30, 300, 2e-4), every=10, validated=400),
    reader=(800, 128),
    trained=20_000,
    held=1000,
    pooled=500,
    samples=8,
    reply=72,
    training={
        "use_cpu": "false",
        "bf16": "true",
        "per_device_train_batch_size": "512",
        "learning_rate": "5e-4",
        "max_steps": "120",
        "lora_r": "16",
    },
    nli_dtype="bfloat16",
    device="cuda",
    processes=6,
    sampled=1024,
)

SIZES: Final[Mapping[str, Size]] = {"smoke": SMOKE, "small": SMALL, "gpu": GPU}
