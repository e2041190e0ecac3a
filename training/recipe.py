"""The part of a recipe about rewards: which, with which weights, gate and corpus; the rest is TRL's, passed unchanged.

A recipe is a YAML file of fields. Those here are added to the fields of `GRPOConfig`, `ModelConfig` and TRL's script
arguments, so that vLLM, DeepSpeed, FSDP and whatever TRL adds need no line of ours.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args

from eldgr_dspy.base.named_objects import load_object
from eldgr_dspy.channels.protocols import Retriever
from eldgr_dspy.channels.rewards import PAPER, TAU, Weighting
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.programs.scoring.bm25 import BM25
from eldgr_dspy.programs.scoring.cross_encoder import Precision
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.programs.scoring.texts import read_passages
from eldgr_dspy.rule.questions import require_one_of
from eldgr_dspy.training.conditioned import Conditioned
from eldgr_dspy.training.groups import eldgr_rank
from eldgr_dspy.training.named_rewards import BATCH, NLI_VARIABLE, NamedNLI, process_reward
from eldgr_dspy.training.outcome import format, orm
from eldgr_dspy.training.reward_base import Reward
from eldgr_dspy.training.steps_reward import StepReward
from eldgr_dspy.words import Reading

RECIPES: Final = Path(__file__).parent / "recipes"
"""Where the recipes of this package are."""


@dataclass
class RewardArguments:
    """The fields of a recipe that are ours.

    Attributes:
        rewards: Names of rewards, of `NAMES` or dotted; `reward_weights` of TRL has their weights. A file of a recipe
            imports nothing, so dotted names must be on the command line.
        nli: The NLI model, a name or a folder; None takes that of `ELDGR_NLI`, or else the paper's.
        reading: How f is made of three probabilities.
        corpus: A file of passages that all steps are compared with, JSON lines or Parquet with `text` and perhaps
            `title`; None compares each with the evidence of its row.
        documents: Passages that a step is compared with at most.
        channel_weights: A weight a channel, summing to 1.
        gate: The channels whose least value must reach `tau`.
        tau: The threshold of the gate.
        train_rows: How many rows of the data are trained on, the first ones; None for all.
        drop: Channels whose weight is set to 0, the others renormalised; `logic` and `fact` also leave the gate.
        nli_dtype: The precision of the NLI model: float32, bfloat16 or float16.
        nli_batch_size: Pairs that it reads at once.
        nli_device: Where it reads, as torch names it; None follows the trainer.
    """

    rewards: list[str] = field(default_factory=lambda: ["orm", "format", "ra_msd"], metadata={"help": "Names."})
    nli: str | None = field(default=None, metadata={"help": "NLI model, a name or a folder."})
    reading: Reading = field(default="label", metadata={"help": "How f_NLI is made: label, expected or settled."})
    corpus: str | None = field(default=None, metadata={"help": "File of passages for all rows."})
    documents: int = field(default=5, metadata={"help": "Passages that a step is compared with at most."})
    channel_weights: dict | str | None = field(  # type: ignore[type-arg]  # the form that the parser understands
        default=None, metadata={"help": "A weight a channel, as JSON on the command line."}
    )
    gate: list[str] = field(default_factory=lambda: ["logic", "fact"], metadata={"help": "Channels of the gate."})
    tau: float = field(default=TAU, metadata={"help": "Threshold of the gate."})
    drop: list[str] = field(default_factory=list, metadata={"help": "Channels to drop."})
    train_rows: int | None = field(default=None, metadata={"help": "The first rows of the data; all by default."})
    nli_dtype: Precision = field(default="float32", metadata={"help": "Precision of the NLI model."})
    nli_batch_size: int = field(default=BATCH, metadata={"help": "Pairs that the NLI model reads at once."})
    nli_device: str | None = field(default=None, metadata={"help": "Device of the NLI model, if not the trainer's."})

    def __post_init__(self) -> None:
        self.nli = self.nli or os.environ.get(NLI_VARIABLE)  # so that the record of a run has it

    def weighting(self) -> Weighting:
        """Return weights, gate and threshold.

        Raises:
            ArgumentError: A name is not a channel, or the weights do not sum to 1.
        """
        weights: Any = self.channel_weights
        if isinstance(weights, str):
            try:
                weights = json.loads(weights)
            except ValueError as error:
                raise ArgumentError(
                    f"channel_weights={weights!r:.80} is not JSON ({error}); give an object, as "
                    f"{json.dumps(dict(PAPER.weights))}."
                ) from error
        gate: Any = frozenset(self.gate)
        drop: Any = self.drop
        return Weighting(dict(PAPER.weights if weights is None else weights), gate, self.tau).without(*drop)


def rewards_of(arguments: RewardArguments) -> list[Any]:
    """Return the rewards that a recipe names, in its order.

    Raises:
        ArgumentError: A name is not known, or a field has a value that is not allowed.
    """
    return [NAMES[name](arguments) if name in NAMES else _own(name) for name in arguments.rewards]


def recipe_path(name: str) -> Path:
    """Return the file of a recipe: that path, or the recipe of this package with that name, as `ra_msd`.

    Raises:
        ArgumentError: There is neither.
    """
    for path in (Path(name), RECIPES / f"{name}.yaml"):
        if path.is_file():
            return path
    names = sorted(path.relative_to(RECIPES).with_suffix("").as_posix() for path in RECIPES.rglob("*.yaml"))
    raise ArgumentError(f"--config must be a file or one of {', '.join(names)}; got {name!r:.80}.")


def _steps(arguments: RewardArguments) -> StepReward:
    scorer = NLIScorer(
        _nli(arguments),
        retriever=None if arguments.corpus is None else _corpus(Path(arguments.corpus)),
        k=arguments.documents,
        reading=arguments.reading,
        weighting=arguments.weighting(),
    )
    return StepReward(scorer, evidence=arguments.corpus is None)


def _nli(arguments: RewardArguments) -> NamedNLI:
    require_one_of("nli_dtype", arguments.nli_dtype, get_args(Precision))
    if arguments.nli_batch_size < 1:
        raise ArgumentError(f"nli_batch_size must be at least 1; got {arguments.nli_batch_size}. Give 1 or more.")
    return NamedNLI(arguments.nli, arguments.nli_dtype, arguments.nli_batch_size, arguments.nli_device)


NAMES: Final[Mapping[str, Callable[[RewardArguments], Reward]]] = {
    "orm": lambda _: orm,
    "format": lambda _: format,
    "prm": lambda arguments: process_reward(_nli(arguments), reading=arguments.reading),
    "ra_msd": _steps,
    "eldgr_rank": lambda _: eldgr_rank,
    "ra_msd_conditioned": lambda arguments: Conditioned(_steps(arguments), on=orm),
}
"""The rewards of this package that a recipe may name."""


def _corpus(path: Path) -> Retriever:
    try:
        passages = read_passages(path)
    except (PoolError, ArgumentError) as error:
        raise ArgumentError(
            f"corpus={str(path)!r} cannot be read ({error}); give a file of passages, or leave the field out to "
            "compare each step with the evidence of its row."
        ) from error
    if not passages:
        raise ArgumentError(f"corpus={str(path)!r} has no passage; give a file with some, or leave the field out.")
    return BM25(passages)


def _own(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    try:
        return load_object(f"{module}:{attribute}", "rewards", "my_rewards:mine")
    except ArgumentError as error:
        raise ArgumentError(
            f"rewards must have names of {', '.join(NAMES)}, or dotted names of other rewards; got {name!r:.80}, which "
            f"cannot be imported ({error})"
        ) from error
