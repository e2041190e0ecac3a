"""The same rewards for trainers with another interface: one callable with the weights inside, and a score a completion.

TRL's asynchronous GRPO has no `reward_weights`, so it needs `TotalReward`. `score_completions` gives a score and its
parts, for a trainer with an interface of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from eldgr_dspy.channels.undefined import Scores
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.calls import COLUMNS, Call
from eldgr_dspy.training.completions import outputs_of
from eldgr_dspy.training.randomness import kept_random_state
from eldgr_dspy.training.rewards import Measured, Reward, weights_of


class TotalReward(Reward):
    """3.0 R_ORM + 0.5 R_format + mean_t R_step as one reward; each of its terms is logged under it, as `total/orm`.

    A term that is undefined adds 0, and is logged as `total/orm/undefined`; the sum itself is always defined.
    """

    weight: ClassVar[float] = 1.0

    def __init__(
        self, rewards: Sequence[Reward], *, weights: Sequence[float] | None = None, name: str = "total"
    ) -> None:
        """Make the reward.

        Args:
            rewards: The terms.
            weights: The weight of each; None takes the paper's.
            name: Under which it is logged.

        Raises:
            ArgumentError: Two terms have one name, or there is not a weight for each.
        """
        own = weights_of(rewards)
        self.weights = tuple(own if weights is None else weights)
        if len(self.weights) != len(rewards):
            raise ArgumentError(f"weights must be one for each of {len(rewards)} rewards; got {len(self.weights)}.")
        needs = dict.fromkeys(column for reward in rewards for column in reward.needs)
        super().__init__(name, list(needs), confidence=any(reward.confidence for reward in rewards), parts=rewards)

    def wants_passages(self, task: str | None) -> bool:
        """Whether one of its terms needs passages; see `Reward.wants_passages`."""
        return any(reward.wants_passages(task) for reward in self.parts)

    def measure(self, call: Call) -> Measured:
        """Return the weighted sum of each completion with its terms; see `Reward.measure`."""
        measured = dict(self._terms(call))
        sums = [
            sum(weight * value for weight, value in zip(self.weights, row, strict=True))
            for row in zip(*(term.rewards() for term in measured.values()), strict=True)
        ]
        terms = {name: term.scores for name, term in measured.items()}
        flags = {f"{name}/undefined": Scores.of((~scores.defined).astype(float)) for name, scores in terms.items()}
        parts = {f"{name}/{part}": scores for name, term in measured.items() for part, scores in term.parts.items()}
        shown = {f"{name}_{column}": rows for name, term in measured.items() for column, rows in term.shown.items()}
        return Measured(Scores.of(sums), {**terms, **flags, **parts}, shown)

    def _terms(self, call: Call) -> Iterator[tuple[str, Measured]]:
        """Measure the terms in order; if one fails, the later ones are told, because other processes may wait there."""
        for at, term in enumerate(self.parts):
            try:
                measured = term.measure(replace(call, reward=term.__name__))
            except Exception as error:
                for later in self.parts[at + 1 :]:
                    later.give_up(error)
                raise
            yield term.__name__, measured


@dataclass(frozen=True, slots=True)
class Scored:
    """A completion's score, finite, and its parts: `orm`, `ra_msd/fact` and so on, if they are defined."""

    score: float
    parts: Mapping[str, float]


def score_completions(
    rewards: Sequence[Reward],
    completions: Sequence[str],
    rows: Sequence[Mapping[str, object]],
    prompts: Sequence[object] | None = None,
) -> list[Scored]:
    """Return the weighted sum of rewards for each completion, and its parts; all completions are scored in one call.

    Token probabilities are not computed, so make rewards of steps with `confidence=False`.

    Args:
        rewards: The terms, with their own weights.
        completions: The completions.
        rows: For each completion, the columns of `COLUMNS` that the rewards need.
        prompts: One a completion, if a reward reads them.

    Raises:
        ArgumentError: A row lacks a column, or the lengths differ; also what the rewards raise.
    """
    if not completions and not rows:
        return []
    total = TotalReward(rewards)
    if len(rows) != len(completions):
        raise ArgumentError(f"rows must be one for each of {len(completions)} completions; got {len(rows)}.")
    columns = {name: [row[name] for row in rows] for name in COLUMNS if all(name in row for row in rows)}
    with kept_random_state():
        asked = prompts or [""] * len(rows)
        measured = total.measure(Call(total.__name__, asked, outputs_of(completions, asked), columns))
    return [
        Scored(score, {name: value for name, part in measured.parts.items() if isinstance(value := part[at], float)})
        for at, score in enumerate(measured.rewards())
    ]
