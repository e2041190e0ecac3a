"""The base of rewards that are made of other rewards: it measures them in order, once each, and logs them by name."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from eldgr_dspy.channels.undefined import Scores, Undefined
from eldgr_dspy.errors import ArgumentError, settled
from eldgr_dspy.training.calls import Call
from eldgr_dspy.training.rewards import Measured, Reward, require_names

NO_VALUE: Final = Undefined("the reward function gave no number")

Function = Callable[..., Any]
"""A reward function as TRL takes it: called with keywords, it returns one number a completion, or None."""


class FunctionReward(Reward):
    """Any reward function of TRL as a part of a reward here; None and NaN, TRL's "not applicable", are undefined.

    Source: ours.
    """

    weight: ClassVar[float] = 1.0

    def __init__(self, function: Function) -> None:
        """Make the reward.

        Args:
            function: Called as a trainer calls it; it is pickled with the reward.

        Raises:
            ArgumentError: It can't be called.
        """
        if not callable(function):
            raise ArgumentError(
                f"A part of a reward must be a reward or a reward function; got {function!r:.80}. Give one, such as "
                "eldgr_dspy.training.orm."
            )
        super().__init__(getattr(function, "__name__", type(function).__name__), [], confidence=True)
        self.function = function

    def measure(self, call: Call) -> Measured:
        """Return the numbers of the function; see `Reward.measure`.

        Raises:
            ArgumentError: The function is async, or does not return a finite number or None for each completion.
        """
        name = self.__name__
        given = self.function(prompts=call.prompts, completions=call.completions, **call.columns)
        given = settled(given, f"The reward function {name!r}", "give one that is not")
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise ArgumentError(f"The reward function {name!r} must return a list; got {given!r:.80}. Fix it.")
        values = [_value(one) for one in given]
        if len(values) != len(call.texts):
            raise ArgumentError(
                f"The reward function {name!r} must return one number for each of {len(call.texts)} completions; got "
                f"{len(values)}. Fix it."
            )
        return Measured(Scores.of(values, name))


class Composite(Reward):
    """A reward that is computed from those of others, in `measure`.

    Each of them is logged under it, as `total/orm`, with the share of completions where it is undefined, as
    `total/orm/undefined`, and its parts, as `total/ra_msd/fact`. What they show of each completion has its name in
    front, as `total_orm_answer`.
    """

    def __init__(self, name: str, rewards: Sequence[Reward | Function]) -> None:
        """Make the reward.

        Args:
            name: Under which it is logged.
            rewards: What it is made of: rewards, or reward functions of TRL.

        Raises:
            ArgumentError: Two of them have one name, or one can't be called.
        """
        parts = [reward if isinstance(reward, Reward) else FunctionReward(reward) for reward in rewards]
        require_names(part.__name__ for part in parts)
        needs = dict.fromkeys(column for part in parts for column in part.needs)
        super().__init__(name, list(needs), confidence=any(part.confidence for part in parts), parts=parts)

    def wants_passages(self, task: str | None) -> bool:
        """Whether one of its rewards needs passages; see `Reward.wants_passages`."""
        return any(part.wants_passages(task) for part in self.parts)

    def terms(self, call: Call) -> dict[str, Measured]:
        """Return what each of its rewards gives, by name.

        One that is part of several rewards inside one is measured once a call, unless it compares a group. If one
        fails, the later ones are told, because other processes may wait there.
        """
        measured = dict[str, Measured]()
        for at, part in enumerate(self.parts):
            try:
                measured[part.__name__] = _measured(part, call)
            except Exception as error:
                for later in self.parts[at + 1 :]:
                    later.give_up(error)
                raise
        return measured

    def logged(self, own: Measured, terms: Mapping[str, Measured]) -> Measured:
        """Return its own results with those of its rewards, for the log."""
        scores = {name: term.scores for name, term in terms.items()}
        flags = {f"{name}/undefined": Scores.of((~one.defined).astype(float)) for name, one in scores.items()}
        parts = {f"{name}/{part}": one for name, term in terms.items() for part, one in term.parts.items()}
        shown = {f"{name}_{column}": rows for name, term in terms.items() for column, rows in term.shown.items()}
        return Measured(own.scores, {**scores, **flags, **parts, **own.parts}, {**shown, **own.shown})


def _measured(part: Reward, call: Call) -> Measured:
    if part.compares:
        return part.measure(replace(call, reward=part.__name__))
    measured: Measured = call.shared.get(id(part)) or part.measure(replace(call, reward=part.__name__))
    call.shared[id(part)] = measured
    return measured


def _value(given: Any) -> object:
    """Return what a function gave for one completion as a score: a boolean is 0 or 1, and an entry of an array counts.

    Anything that is not a number stays as it is, so that it is refused by name.
    """
    one = given.item() if callable(getattr(given, "item", None)) else given
    if one is None or (isinstance(one, float) and math.isnan(one)):
        return NO_VALUE
    return float(one) if isinstance(one, bool) else one
