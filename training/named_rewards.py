"""Rewards that need no arguments: `trl grpo --reward_funcs eldgr_dspy.training.orm eldgr_dspy.training.ra_msd`.

That command can pass no arguments, so these take theirs from the dataset's columns and from one environment variable,
`ELDGR_NLI`: the NLI model, by its name or folder. It is loaded when a step is first scored, once a process, and shared
by all of them. They hold no model and pickle in a few hundred bytes.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from eldgr_dspy.channels.protocols import NLI
from eldgr_dspy.channels.rewards import PAPER, Weighting
from eldgr_dspy.channels.undefined import Floats
from eldgr_dspy.programs.scoring.cross_encoder import DEFAULT, CrossEncoderNLI, Precision
from eldgr_dspy.programs.scoring.nli_scorer import NLIScorer
from eldgr_dspy.training.conditioned import Conditioned
from eldgr_dspy.training.outcome import orm
from eldgr_dspy.training.steps_reward import StepReward
from eldgr_dspy.words import CHANNELS, Channel, Reading

NLI_VARIABLE: Final = "ELDGR_NLI"

BATCH: Final = 16
"""Pairs that an NLI model reads at once, unless a recipe says otherwise."""

_OTHERS: tuple[Channel, ...] = tuple(name for name in CHANNELS if name != "logic")
LOGIC_ALONE: Final[Weighting] = PAPER.without(*_OTHERS)
"""The weighting of `prm`: the mean of `logic` over the steps."""


@dataclass(frozen=True, slots=True)
class NamedNLI:
    """An NLI model that is loaded on first use, once a process; it pickles as its name and settings.

    Attributes:
        model: A name on the Hugging Face Hub or a folder; None takes that of `ELDGR_NLI` on first use, or else the
            paper's.
        dtype: The precision of weights and arithmetic.
        batch_size: Pairs at once.
        device: As torch names it; None follows the trainer of the process, and takes a GPU if there is neither a
            trainer nor a device.
    """

    model: str | None = None
    dtype: Precision = "float32"
    batch_size: int = BATCH
    device: str | None = None

    @property
    def name(self) -> str:
        """The name of the loaded model."""
        return self._load().name

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return what the model reads in (premise, hypothesis) pairs; see `NLI`.

        Raises:
            ArgumentError: The model cannot be loaded.
        """
        return self._load().probabilities(pairs)

    def _load(self) -> NLI:
        model = self.model or os.environ.get(NLI_VARIABLE) or DEFAULT
        return _load(model, self.dtype, self.batch_size, self.device or _device_of_trainer())


@cache
def _load(model: str, dtype: Precision, batch_size: int, device: str | None) -> CrossEncoderNLI:
    return CrossEncoderNLI(model, dtype=dtype, batch_size=batch_size, device=device)


def _device_of_trainer() -> str | None:
    """Return the device of the trainer in this process, as accelerate keeps it; None if there is no trainer yet."""
    accelerate = sys.modules.get("accelerate")
    state: Any = None if accelerate is None else accelerate.PartialState
    return str(state().device) if state is not None and state._shared_state else None


def process_reward(nli: NLI, name: str = "prm", reading: Reading = "label") -> StepReward:
    """Return the process reward: mean_t of `logic`, which needs no passage and no token probability.

    Args:
        nli: Who reads pairs.
        name: Under which it is logged.
        reading: How f is made of three probabilities; an `ArgumentError` if it is not known.
    """
    scorer = NLIScorer(nli, reading=reading, weighting=LOGIC_ALONE)
    return StepReward(scorer, name=name, evidence=False, confidence=False)


prm = process_reward(NamedNLI())
ra_msd = StepReward(NLIScorer(NamedNLI()))
ra_msd_conditioned = Conditioned(ra_msd, on=orm)
