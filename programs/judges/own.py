"""A selector of your own in the judge's role: a function that reads a ballot and says which candidate it prefers."""

import inspect
from collections.abc import Callable
from typing import Any

import dspy

from eldgr_dspy.ballots import Ballot
from eldgr_dspy.consultations import Abstention
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.named_objects import cause, name_of, object_named, source_of
from eldgr_dspy.programs.judges.counting import CountingJudge, abstained

_EXAMPLE = "my_selectors:longest"


class OwnSelector(CountingJudge):
    """Prefers the candidate that a function names; a judge without an LM.

        select.judge = OwnSelector(lambda ballot: len(ballot.answers) - 1)

    The function takes a `Ballot` and returns a pool index, or an `Abstention` with the reason. An index that does not
    exist counts as an abstention, as any judge's does. What the function raises is raised.

    Attributes:
        choose: The function.
    """

    asks_lm = True

    def __init__(self, choose: Callable[[Ballot], int | Abstention]) -> None:
        """Wrap a function.

        Raises:
            ArgumentError: It is not a function, or is an async one.
        """
        super().__init__()
        given: object = choose
        called = (given, getattr(given, "__call__", None))  # noqa: B004 - the method is looked at, not tested for
        if not callable(given) or any(map(inspect.iscoroutinefunction, called)) or isinstance(given, dspy.Module):
            raise ArgumentError(
                f"choose must be a function of a ballot, not async; got {type(choose).__name__}. Write a dspy.Module "
                "in the judge's role to ask an LM."
            )
        self.choose = choose
        self.source = {"name": name_of(choose), "source": source_of(choose)}  # so that a change is noticed

    def count(self, ballot: Ballot) -> dspy.Prediction:
        """Return `preferred`, or `abstained` with the reason."""
        chosen = self.choose(ballot)
        if isinstance(chosen, Abstention):
            return abstained(chosen)
        return dspy.Prediction(preferred=chosen, judge_rationale=f"chosen by {self.source['name']}", orders=[])


def own_judge(given: object) -> dspy.Module:
    """Return a judge: a module, a class of one, or a function of a ballot; each as it is or by its `module:object`.

    Raises:
        ArgumentError: It cannot be found, or is something else.
    """
    found: Any = object_named(given, "judges", _EXAMPLE) if isinstance(given, str) else given
    name = given if isinstance(given, str) else name_of(given)
    got = f"the class {found.__name__}" if isinstance(found, type) else type(found).__name__
    if isinstance(found, type) and issubclass(found, dspy.Module):
        try:
            return found()
        except Exception as error:
            raise ArgumentError(
                f"judges: {name} must be a judge's class that needs no argument; it raised {cause(error)}. Name an "
                "object that is one."
            ) from error
    if isinstance(found, dspy.Module):
        return found
    if isinstance(found, type) or not callable(found):
        raise ArgumentError(
            f"judges: {name} must be a dspy.Module or a function of a ballot; got {got}. Name a function or a judge."
        )
    chosen: Any = found
    return OwnSelector(chosen)
