"""What a recipe says of rewards: which, by which weights, gate and corpus; all else of it is TRL's and passes through.

A recipe is a YAML file of fields. Those here stand beside every field of `GRPOConfig`, `ModelConfig` and TRL's script
arguments, so that vLLM, DeepSpeed, FSDP and whatever TRL comes to know need no line of ours.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.protocols import Retriever
from eldgr_dspy.channels.rewards import PAPER, TAU, Weighting
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.pools import read_records
from eldgr_dspy.programs.inputs import to_passages
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.programs.scoring.retrieval import retriever
from eldgr_dspy.training import eldgr_rank, format, orm
from eldgr_dspy.training.named_rewards import NLI_VARIABLE, NamedNLI, process_reward
from eldgr_dspy.training.steps_reward import StepReward

RECIPES: Final = Path(__file__).parent / "recipes"
"""Where the recipes of this package are."""

NAMES: Final = ("orm", "format", "prm", "ra_msd", "eldgr_rank")


@dataclass
class RewardArguments:
    """The fields of a recipe that are ours.

    Attributes:
        rewards: Names of rewards, of `NAMES` or dotted; `reward_weights` of TRL has their weights.
        nli: The NLI model, a name or a folder; None takes that of `ELDGR_NLI`, and without it the paper's.
        reading: How f is made of three probabilities.
        corpus: A file of passages that all steps are held against, JSON lines or Parquet with `text` and perhaps
            `title`; None holds each against the evidence of its row.
        documents: Passages that a step is held against at most.
        channel_weights: A weight a channel, summing to 1.
        gate: The channels whose least value has to reach `tau`.
        tau: The threshold of the gate.
        drop: Channels whose weight is set to 0, the others renormalised; `logic` and `fact` also leave the gate.
        on_error: What becomes of a batch that the NLI model fails on: `raise` ends the run; `undefined` warns, and its
            completions earn 0 for their steps.
    """

    rewards: list[str] = field(default_factory=lambda: ["orm", "format", "ra_msd"], metadata={"help": "Names."})
    nli: str | None = field(default=None, metadata={"help": "NLI model, a name or a folder."})
    reading: str = field(default="label", metadata={"help": "How f_NLI is made: label, expected or settled."})
    corpus: str | None = field(default=None, metadata={"help": "File of passages for all rows."})
    documents: int = field(default=5, metadata={"help": "Passages that a step is held against at most."})
    channel_weights: dict | str | None = field(  # type: ignore[type-arg]  # the form that the parser understands
        default=None, metadata={"help": "A weight a channel, as JSON on the command line."}
    )
    gate: list[str] = field(default_factory=lambda: ["logic", "fact"], metadata={"help": "Channels of the gate."})
    tau: float = field(default=TAU, metadata={"help": "Threshold of the gate."})
    drop: list[str] = field(default_factory=list, metadata={"help": "Channels to drop."})
    on_error: str = field(default="raise", metadata={"help": "When the NLI model fails: raise or undefined."})

    def __post_init__(self) -> None:
        self.nli = self.nli or os.environ.get(NLI_VARIABLE)  # so that the record of a run has it

    def weighting(self) -> Weighting:
        """Return weights, gate and threshold.

        Raises:
            ArgumentError: A name is no channel, or the weights do not sum to 1.
        """
        given: Any = self.channel_weights
        if isinstance(given, str):
            try:
                given = json.loads(given)
            except ValueError as error:
                raise ArgumentError(
                    f"channel_weights={given!r:.80} is not JSON ({error}); give an object, as "
                    f"{json.dumps(dict(PAPER.weights))}."
                ) from error
        weights = dict(PAPER.weights) if given is None else dict(given)
        gated: frozenset[Any] = frozenset(self.gate)
        dropped: list[Any] = [*self.drop]
        return Weighting(weights, gated, self.tau).without(*dropped)


def rewards_of(arguments: RewardArguments) -> list[Any]:
    """Return the rewards that a recipe names, in its order.

    Raises:
        ArgumentError: A name is none, or a field has a value that it may not have.
    """
    return [_reward(name, arguments) for name in arguments.rewards]


def recipe_path(name: str) -> Path:
    """Return the file of a recipe: that path, or the recipe of this package with that name, as `ra_msd`.

    Raises:
        ArgumentError: There is neither.
    """
    own = RECIPES / f"{name}.yaml"
    if Path(name).is_file():
        return Path(name)
    if own.is_file():
        return own
    known = sorted(path.relative_to(RECIPES).with_suffix("").as_posix() for path in RECIPES.rglob("*.yaml"))
    raise ArgumentError(f"--config {name!r:.80} is no file and no recipe; give a file, or one of {', '.join(known)}.")


def _reward(name: str, arguments: RewardArguments) -> Any:
    if name == "ra_msd":
        return _steps(arguments)
    if name == "prm":
        return process_reward(NamedNLI(arguments.nli), on_error=_any(arguments.on_error))
    plain = {"orm": orm, "format": format, "eldgr_rank": eldgr_rank}
    return plain[name] if name in plain else _imported(name)


def _steps(arguments: RewardArguments) -> StepReward:
    scorer = NLIScorer(
        NamedNLI(arguments.nli),
        retriever=None if arguments.corpus is None else _corpus(Path(arguments.corpus)),
        k=arguments.documents,
        reading=_any(arguments.reading),
        weighting=arguments.weighting(),
    )
    return StepReward(scorer, evidence=arguments.corpus is None, on_error=_any(arguments.on_error))


def _any(given: Any) -> Any:
    """A word of a recipe, of which whoever is given it looks whether it is one of those that may be."""
    return given


def _corpus(path: Path) -> Retriever:
    passages: list[Passage] = []
    try:
        for where, record in read_records(path):
            passages += _passages(path, where, record)
    except PoolError as error:
        raise ArgumentError(
            f"corpus={str(path)!r} cannot be read ({error}); give a file of passages, or leave the field out to "
            "hold each step against the evidence of its row."
        ) from error
    if not passages:
        raise ArgumentError(
            f"corpus={str(path)!r} has no passage; give a file with some, or leave the field out to hold each step "
            "against the evidence of its row."
        )
    return retriever(passages)


def _passages(path: Path, where: str, record: Any) -> Sequence[Passage]:
    try:
        return to_passages([record])
    except ArgumentError as error:
        raise ArgumentError(f"{path}, {where}: {error}") from error


def _imported(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    try:
        sys.path.insert(0, str(Path.cwd()))  # where a reward of one's own lies, as under `trl grpo`
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ArgumentError(
            f"rewards has {name!r:.80}, which is none of {', '.join(NAMES)} and cannot be imported ({error}); give one "
            "of these, or the dotted name of a reward."
        ) from error
    finally:
        sys.path.pop(0)
