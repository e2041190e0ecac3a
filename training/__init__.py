"""The channels and the rule as rewards for trainers, runs from recipes, learning curves, and pools from checkpoints.

    trl grpo --reward_funcs eldgr_dspy.training.orm eldgr_dspy.training.format eldgr_dspy.training.ra_msd \
             --reward_weights 3.0 0.5 1.0 ...

Public names load on first use: importing this package starts neither torch nor TRL.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eldgr_dspy.training.calls import COLUMNS
    from eldgr_dspy.training.conditioned import Conditioned, Gated
    from eldgr_dspy.training.confidence import TokenConfidence
    from eldgr_dspy.training.curves import Point, learning_curve, read_curve, rolling_mean
    from eldgr_dspy.training.generation import Sampling
    from eldgr_dspy.training.groups import GroupReward, eldgr_rank
    from eldgr_dspy.training.named_rewards import (
        NamedNLI,
        prm,
        process_reward,
        ra_msd,
        ra_msd_conditioned,
        ra_msd_gated,
    )
    from eldgr_dspy.training.outcome import FormatReward, OutcomeReward, format, orm
    from eldgr_dspy.training.policy import policy_confidence, token_logps
    from eldgr_dspy.training.questions import prompt_of, training_rows
    from eldgr_dspy.training.randomness import kept_random_state
    from eldgr_dspy.training.recipe import RewardArguments, recipe_path, rewards_of
    from eldgr_dspy.training.requirements import require_inputs
    from eldgr_dspy.training.rewards import Reward, weights_of
    from eldgr_dspy.training.sampling import sample_pool
    from eldgr_dspy.training.steps_reward import StepReward

__all__ = [
    "orm",
    "format",
    "prm",
    "ra_msd",
    "eldgr_rank",
    "ra_msd_conditioned",
    "ra_msd_gated",
    "weights_of",
    "OutcomeReward",
    "FormatReward",
    "StepReward",
    "GroupReward",
    "Conditioned",
    "Gated",
    "Reward",
    "TokenConfidence",
    "require_inputs",
    "kept_random_state",
    "training_rows",
    "prompt_of",
    "learning_curve",
    "read_curve",
    "Sampling",
    "sample_pool",
    "COLUMNS",
    "Point",
    "rolling_mean",
    "NamedNLI",
    "process_reward",
    "policy_confidence",
    "token_logps",
    "RewardArguments",
    "recipe_path",
    "rewards_of",
]

_HOMES = {
    "calls": ["COLUMNS"],
    "conditioned": ["Conditioned", "Gated"],
    "confidence": ["TokenConfidence"],
    "curves": ["Point", "learning_curve", "read_curve", "rolling_mean"],
    "generation": ["Sampling"],
    "groups": ["GroupReward", "eldgr_rank"],
    "named_rewards": ["NamedNLI", "prm", "process_reward", "ra_msd", "ra_msd_conditioned", "ra_msd_gated"],
    "outcome": ["FormatReward", "OutcomeReward", "format", "orm"],
    "policy": ["policy_confidence", "token_logps"],
    "questions": ["prompt_of", "training_rows"],
    "randomness": ["kept_random_state"],
    "recipe": ["RewardArguments", "recipe_path", "rewards_of"],
    "requirements": ["require_inputs"],
    "rewards": ["Reward", "weights_of"],
    "sampling": ["sample_pool"],
    "steps_reward": ["StepReward"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
