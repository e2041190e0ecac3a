"""A reward that gives what a test says, and counts how often it was measured."""

from collections.abc import Sequence
from typing import ClassVar

from eldgr_dspy.channels.undefined import Score, Scores
from eldgr_dspy.training import Reward
from eldgr_dspy.training.reward_base import RewardResults
from eldgr_dspy.training.reward_calls import Call


class Given(Reward):
    """A reward with these scores, whatever the completions are."""

    weight: ClassVar[float] = 1.0

    def __init__(self, name: str, scores: Sequence[Score]) -> None:
        super().__init__(name, [])
        self.scores, self.calls = list(scores), 0

    def measure(self, call: Call) -> RewardResults:
        self.calls += 1
        return RewardResults(Scores.of(self.scores))


def rewarded(reward: Reward, n: int, **arguments: object) -> list[float]:
    """What a reward gives n completions of one prompt."""
    return reward(["?"] * n, ["text"] * n, **arguments)
