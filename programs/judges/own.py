"""Judges by a function of yours: one that names the candidate it prefers, or one that rewards each candidate.

`BestOf` chooses on a frozen pool as `dspy.BestOfN` does, without drawing new samples. `dspy.Refine` has no counterpart,
since it makes new candidates.
"""

import inspect
import math
from collections.abc import Callable
from numbers import Real
from typing import Any, cast

import dspy
import numpy as np

from eldgr_dspy.base.named_objects import cause, name_of, object_named, source_of
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.judges.frames import CountingJudge, abstained, preferring_by
from eldgr_dspy.programs.lms.consulting import FAILURES
from eldgr_dspy.rule.ballots import Ballot
from eldgr_dspy.rule.consultations import Abstention, show_passage

Reward = Callable[[dspy.Example, dspy.Prediction], Any]
"""A metric without the trace: (question and evidence, text and answer of a candidate) -> number or truth value."""


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


class BestOf(CountingJudge):
    """Prefers the candidate with the highest reward; ties go to the answer with more votes, then to the earliest.

        select.judge = BestOf(lambda args, pred: len(pred.text))

    If the reward raises, or is not a finite number, the judge abstains and names the candidate: it may have been the
    best. A reward must not read the right answer.

    Attributes:
        reward: What is called as a DSPy metric, with an example (`question`, `evidence`) and a prediction (`text`,
            `answer`).
    """

    asks_lm = True

    def __init__(self, reward: Reward) -> None:
        """Wrap a reward; raise an ArgumentError if it is not a function."""
        super().__init__()
        if not callable(reward):
            raise ArgumentError(f"reward must be a function or a DSPy metric; got {type(reward).__name__}.")
        self.reward = reward
        self.source = {"name": name_of(reward), "source": source_of(reward)}

    def count(self, ballot: Ballot) -> dspy.Prediction:
        """Reward each candidate that votes; returns `preferred`, or `abstained` with the reason."""
        evidence = [show_passage(passage.title, passage.text) for passage in ballot.passages]
        example = dspy.Example(question=ballot.question, evidence=evidence).with_inputs("question", "evidence")
        rewards: dict[int, float] = {}
        for index in ballot.voters:
            try:
                value = self.reward(example, dspy.Prediction(text=ballot.texts[index], answer=ballot.answers[index]))
                rewards[index] = float(value) if isinstance(value, Real | np.bool_) else math.nan
            except Exception as error:
                if isinstance(error, FAILURES):
                    raise
                return abstained(f"the reward failed on candidate {index}: {cause(error, self.reward)}")
            if not math.isfinite(rewards[index]):
                return abstained(f"the reward of candidate {index} is {value!r:.40}, not a finite number")
        preferred = ballot.first(rewards)
        return preferring_by(ballot, preferred, f"reward {rewards[preferred]:.4g}", rewards)


def own_judge(judge: object) -> dspy.Module:
    """Return a judge: a module, a class of one, or a function of a ballot; each as it is or by its `module:object`.

    Raises:
        ArgumentError: It cannot be found, or is something else.
    """
    found: Any = object_named(judge, "judges", "my_selectors:longest") if isinstance(judge, str) else judge
    name = judge if isinstance(judge, str) else name_of(judge)
    if isinstance(found, type) and issubclass(found, dspy.Module):
        try:
            return found()
        except Exception as error:
            raise ArgumentError(
                f"judges: {name} must be a judge's class that needs no argument; it raised {cause(error)}. Name an "
                "object that is one."
            ) from error
    if isinstance(found, type) or not callable(found):
        got = f"the class {found.__name__}" if isinstance(found, type) else type(found).__name__
        raise ArgumentError(
            f"judges: {name} must be a dspy.Module or a function of a ballot; got {got}. Name a function or a judge."
        )
    return found if isinstance(found, dspy.Module) else OwnSelector(cast("Callable[[Ballot], int | Abstention]", found))
