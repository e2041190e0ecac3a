"""What the selection rule and its channels look like to a trainer: rewards for TRL.

Importing this room loads neither torch nor TRL; a reward is a plain function that a trainer calls.
"""

from eldgr_dspy.training.rewards import format_reward, outcome_reward

__all__ = ["format_reward", "outcome_reward"]
