"""A reward that cannot be bought with another one: it counts only where another passes.

In a weighted sum a high score of one kind makes up for a low one of another kind, so a policy learns whichever is
cheapest. Here it earns nothing for its steps while its answer is wrong.
"""

import math
from dataclasses import replace
from typing import ClassVar

from eldgr_dspy.channels.undefined import Score, Scores, Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.reward_base import Reward, RewardResults, require_names
from eldgr_dspy.training.reward_calls import Call


class Conditioned(Reward):
    """A reward that counts only where another one reaches a threshold; elsewhere a completion earns 0.

    It grows with both rewards, as long as the conditioned one is never negative. Where the condition is undefined, so
    is the reward; where the condition passes and the reward is undefined, it is undefined.

    Also logged: `passed`, the share of completions that pass; each of the two, as `NAME/orm`; the share of completions
    where it is undefined, as `NAME/orm/undefined`; and its parts, as `NAME/ra_msd/fact`. What the two show of each
    completion has their name in front, as `NAME_orm_answer`.

    Source: ours.
    """

    weight: ClassVar[float] = 1.0

    def __init__(self, reward: Reward, *, on: Reward, at_least: float = 1.0, name: str | None = None) -> None:
        """Make the reward.

        Args:
            reward: What counts.
            on: The condition; it is measured once a call for all completions.
            at_least: What the condition must reach.
            name: Under which it is logged; None adds `_conditioned` to that of `reward`.

        Raises:
            ArgumentError: `at_least` is not a finite number, or the two are different rewards of one name.
        """
        if type(at_least) not in (int, float) or not math.isfinite(at_least):
            raise ArgumentError(f"at_least must be a finite number; got {at_least!r:.80}. Give one, such as 1.0.")
        parts = [on] if on is reward else [on, reward]
        require_names(part.__name__ for part in parts)
        super().__init__(name or f"{reward.__name__}_conditioned", [], parts=parts)
        self.at_least = float(at_least)

    def measure(self, call: Call) -> RewardResults:
        """Return the reward where the condition passes, and 0 elsewhere; see `Reward.measure`."""
        terms = {part.__name__: part.measure(replace(call, reward=part.__name__)) for part in self.parts}
        condition, reward = (terms[part.__name__].scores for part in (self.parts[0], self.parts[-1]))
        passes = [one if isinstance(one, Undefined) else float(one >= self.at_least) for one in condition]
        scores = Scores.of([self._of(one, score) for one, score in zip(passes, reward, strict=True)])
        parts: dict[str, Scores] = {"passed": Scores.of(passes)}
        for name, term in terms.items():
            parts |= {name: term.scores, f"{name}/undefined": Scores.of((~term.scores.defined).astype(float))}
            parts |= {f"{name}/{inner}": part for inner, part in term.parts.items()}
        columns = {f"{name}_{column}": rows for name, term in terms.items() for column, rows in term.columns.items()}
        return RewardResults(scores, parts, columns)

    def _of(self, passes: Score, score: Score) -> Score:
        if isinstance(passes, Undefined):
            return Undefined(f"its condition {self.parts[0].__name__} is undefined: {passes.reason}")
        return score if passes else 0.0
