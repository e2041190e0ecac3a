"""Several rewards as one rank within a group: the first decides, and each later one only breaks ties."""

from collections.abc import Sequence
from typing import ClassVar

from eldgr_dspy.channels.undefined import Score, Scores, Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.calls import Call
from eldgr_dspy.training.composite import Composite, Function
from eldgr_dspy.training.gathering import in_groups, require_group_size, tell_failure
from eldgr_dspy.training.groups import midranks
from eldgr_dspy.training.rewards import Measured, Reward

Stratum = tuple[bool, float]
"""Whether a reward is defined, and its value: an undefined one ranks below all others."""


class Lexicographic(Composite):
    """The place of a completion in its group: 1 for the best, 0 for the worst, and ties share theirs.

    The first reward ranks the completions of a prompt, the second those that are equal in the first, and so on. So no
    value of a later reward makes up for an earlier one, and only the order of values counts, not their scale. An
    undefined value ranks below all others. If all are equal in every reward, each earns 0.5, from which a group learns
    nothing.

    A place does not show how good the group is; the means of the rewards, logged under it, do.

    Source: ours, after the lexicographic group rank below Eq. 4 of the paper.
    """

    weight: ClassVar[float] = 1.0

    def __init__(
        self, rewards: Sequence[Reward | Function], *, group_size: int | None = None, name: str | None = None
    ) -> None:
        """Make the reward.

        Args:
            rewards: Rewards, or reward functions of TRL, the most important first.
            group_size: How many completions a prompt has, if the caller is not a trainer that knows it.
            name: Under which it is logged; None joins those of the rewards, as `orm_then_format`.

        Raises:
            ArgumentError: There are no rewards, two have one name, or `group_size` is not a whole number from 1.
        """
        require_group_size(group_size)
        if not rewards:
            raise ArgumentError(
                "rewards must be one or more rewards; got an empty list. Give the most important first."
            )
        super().__init__("", rewards)
        self.__name__ = name or "_then_".join(part.__name__ for part in self.parts)
        self.group_size, self.compares = group_size, True

    def measure(self, call: Call) -> Measured:
        """Return the place of each completion; see `Reward.measure`.

        Raises:
            ArgumentError: The completions are not whole groups of one prompt each, or their size is not known.
            ScoringError: Another process of the run failed.
        """
        terms = dict[str, Measured]()

        def tell() -> list[tuple[Stratum, ...]]:
            terms.update(self.terms(call))
            return list(zip(*(map(_stratum, term.scores) for term in terms.values()), strict=True))

        groups, spots = in_groups(call, self.group_size, tell)
        places = {group: midranks(groups[group]) for group in {spot.group for spot in spots}}
        own = Scores.of([places[group][at] for group, at in spots], "place", 0, 1)
        return self.logged(Measured(own), terms)

    def give_up(self, error: Exception) -> None:
        """Tell the other processes, which wait for this one's completions; see `Reward.give_up`."""
        super().give_up(error)
        tell_failure(error)


def _stratum(score: Score) -> Stratum:
    return (False, 0.0) if isinstance(score, Undefined) else (True, score)
