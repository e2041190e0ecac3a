"""Rewards that cannot be bought with other rewards: one counts only where another passes.

In a weighted sum a high score of one kind makes up for a low one of another kind, so a policy learns whichever is
cheapest. Here it earns nothing for its steps while its answer is wrong, or no more than the weaker of `logic` and
`fact`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from eldgr_dspy.channels.rewards import PAPER, Columns, Weighting, gate
from eldgr_dspy.channels.undefined import Score, Scores, Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.calls import Call
from eldgr_dspy.training.rewards import Measured, Reward, require_names
from eldgr_dspy.training.steps_reward import StepReward


class _Composite(Reward):
    """A reward that is computed from those of others, in `measure`; each is logged under it, as `NAME/orm`.

    So are the share of completions where it is undefined, as `NAME/orm/undefined`, and its parts, as
    `NAME/ra_msd/fact`. What they show of each completion has its name in front, as `NAME_orm_answer`.
    """

    weight: ClassVar[float] = 1.0

    def __init__(self, name: str, parts: Sequence[Reward]) -> None:
        require_names(part.__name__ for part in parts)
        needs = dict.fromkeys(column for part in parts for column in part.needs)
        super().__init__(name, list(needs), confidence=any(part.confidence for part in parts), parts=parts)

    def wants_passages(self, task: str | None) -> bool:
        """Whether one of its rewards needs passages; see `Reward.wants_passages`."""
        return any(part.wants_passages(task) for part in self.parts)

    def terms(self, call: Call) -> list[Measured]:
        """Return what each of its rewards gives."""
        return [part.measure(replace(call, reward=part.__name__)) for part in self.parts]

    def logged(self, scores: Scores, parts: Mapping[str, Scores], terms: Sequence[Measured]) -> Measured:
        """Return its own results with those of its rewards, for the log."""
        own, shown = dict[str, Scores](), dict[str, Sequence[object]]()
        for part, term in zip(self.parts, terms, strict=True):
            name = part.__name__
            own |= {name: term.scores, f"{name}/undefined": Scores.of((~term.scores.defined).astype(float))}
            own |= {f"{name}/{inner}": one for inner, one in term.parts.items()}
            shown |= {f"{name}_{column}": rows for column, rows in term.shown.items()}
        return Measured(scores, {**own, **parts}, shown)


class Conditioned(_Composite):
    """A reward that counts only where another one reaches a threshold; elsewhere a completion earns 0.

    It grows with both rewards, as long as the conditioned one is never negative. Where the condition is undefined, so
    is the reward; where the condition passes and the reward is undefined, it is undefined. Also logged: `passed`, the
    share of completions that pass.

    Source: ours.
    """

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
        super().__init__("", [on] if on is reward else [on, reward])
        self.__name__ = name or f"{self.parts[-1].__name__}_conditioned"
        self.at_least = float(at_least)

    def measure(self, call: Call) -> Measured:
        """Return the reward where the condition passes, and 0 elsewhere; see `Reward.measure`."""
        terms = self.terms(call)
        condition, reward = (terms[at].scores for at in (0, -1))
        passed = [one if isinstance(one, Undefined) else float(one >= self.at_least) for one in condition]
        scores = [self._of(one, score) for one, score in zip(passed, reward, strict=True)]
        return self.logged(Scores.of(scores), {"passed": Scores.of(passed)}, terms)

    def _of(self, passed: Score, score: Score) -> Score:
        if isinstance(passed, Undefined):
            return Undefined(f"its condition {self.parts[0].__name__} is undefined: {passed.reason}")
        return score if passed else 0.0


class Gated(_Composite):
    """The reward of the steps where the gate of the whole completion reaches tau; elsewhere the gate itself.

    The gate is the smaller of mean_t `logic` and mean_t `fact`, of those that are defined; if neither is, there is no
    gate, and the reward counts. Weights and tau are those of the scorer, and a channel that is dropped there is not in
    the gate. It is not monotone at the gate, as Eq. 2 is not: a completion that now passes may earn less. Also
    logged: `gate`, and `passed`, the share of completions that reach tau.

    Source: the gate of Eq. 2 of the paper, which is that of one step; ours: over the means of a completion. For a
    completion of one step the two are equal.
    """

    def __init__(self, steps: StepReward, *, name: str | None = None) -> None:
        """Make the reward.

        Args:
            steps: The reward of the steps, which measures the channels.
            name: Under which it is logged; None adds `_gated` to that of `steps`.

        Raises:
            ArgumentError: `steps` is another kind of reward.
        """
        if not isinstance(steps, StepReward):
            raise ArgumentError(
                f"steps must be a StepReward, which measures the channels of the gate; got {steps!r:.80}. Use "
                "Conditioned for any other reward."
            )
        super().__init__(name or f"{steps.__name__}_gated", [steps])
        given = getattr(steps.scorer, "weighting", None)
        self.weighting = given if isinstance(given, Weighting) else PAPER

    def measure(self, call: Call) -> Measured:
        """Return the reward, or the gate where it is below tau; see `Reward.measure`."""
        terms, tau = self.terms(call), self.weighting.tau
        (steps,) = terms
        columns: Columns = {name: steps.parts[name] for name in self.weighting.gated if name in steps.parts}
        without = Scores.of([Undefined("no channel of the gate was measured")] * len(steps.scores))
        least = gate(columns, self.weighting) if columns else without
        pairs = list(zip(least, steps.scores, strict=True))
        scores = [score if isinstance(low, Undefined) or low >= tau else low for low, score in pairs]
        passed = [low if isinstance(low, Undefined) else float(low >= tau) for low, _ in pairs]
        return self.logged(Scores.of(scores), {"gate": least, "passed": Scores.of(passed)}, terms)
