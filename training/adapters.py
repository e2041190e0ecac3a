"""The same rewards for trainers with another interface: one callable with the weights inside, and a score a completion.

TRL's asynchronous GRPO has no `reward_weights`, so it needs `TotalReward`; that trainer was not run here.
`score_completions` gives a score and its parts, for a trainer with an interface of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import ClassVar

from eldgr_dspy.channels.undefined import Scores
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.calls import COLUMNS, Call
from eldgr_dspy.training.completions import outputs_of
from eldgr_dspy.training.composite import Composite
from eldgr_dspy.training.randomness import kept_random_state
from eldgr_dspy.training.rewards import Measured, Reward, weights_of


class TotalReward(Composite):
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
        super().__init__(name, rewards)
        self.weights = tuple(weights_of(self.parts) if weights is None else weights)
        if len(self.weights) != len(rewards):
            raise ArgumentError(
                f"weights must be one for each of {len(rewards)} rewards; got {len(self.weights)}. Give as many, or "
                "leave them out for the paper's."
            )

    def measure(self, call: Call) -> Measured:
        """Return the weighted sum of each completion with its terms; see `Reward.measure`."""
        terms = self.terms(call)
        rows = zip(*(term.rewards() for term in terms.values()), strict=True)
        return self.logged(Measured(Scores.of([sum(map(mul, self.weights, row)) for row in rows])), terms)


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
        outputs = outputs_of(completions, asked)
        measured = total.measure(Call(total.__name__, asked, outputs, columns, completions=completions))
    return [
        Scored(score, {name: value for name, part in measured.parts.items() if isinstance(value := part[at], float)})
        for at, score in enumerate(measured.rewards())
    ]
