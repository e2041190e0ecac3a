"""The channels and the rule as rewards for trainers, runs from recipes, learning curves, and pools from checkpoints.

    trl grpo --reward_funcs eldgr_dspy.training.orm eldgr_dspy.training.format eldgr_dspy.training.ra_msd \
             --reward_weights 3.0 0.5 1.0 ...

Importing this package starts neither torch nor TRL.
"""

from eldgr_dspy.programs.pools.prompts import prompt_of
from eldgr_dspy.training.conditioned import Conditioned
from eldgr_dspy.training.confidence import TokenConfidence
from eldgr_dspy.training.curves import Point, learning_curve, read_curve, rolling_mean
from eldgr_dspy.training.generation import Sampling
from eldgr_dspy.training.groups import GroupReward, eldgr_rank
from eldgr_dspy.training.named_rewards import NamedNLI, prm, process_reward, ra_msd, ra_msd_conditioned
from eldgr_dspy.training.outcome import FormatReward, OutcomeReward, format, orm
from eldgr_dspy.training.policy import policy_confidence, token_logps
from eldgr_dspy.training.question_rows import training_rows
from eldgr_dspy.training.recipe import RewardArguments, recipe_path, rewards_of
from eldgr_dspy.training.reward_base import Reward, kept_random_state, require_columns, weights_of
from eldgr_dspy.training.reward_calls import COLUMNS
from eldgr_dspy.training.sampling import sample_pool
from eldgr_dspy.training.steps_reward import StepReward

__all__ = [
    "orm",
    "format",
    "prm",
    "ra_msd",
    "eldgr_rank",
    "ra_msd_conditioned",
    "weights_of",
    "OutcomeReward",
    "FormatReward",
    "StepReward",
    "GroupReward",
    "Conditioned",
    "Reward",
    "TokenConfidence",
    "require_columns",
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
