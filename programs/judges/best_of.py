"""Best of n by any reward: a DSPy metric, a function, or the scores of the seven channels for each step.

On a frozen pool this is what `dspy.BestOfN` does, without drawing new samples. `dspy.Refine` has no counterpart, since
it makes new candidates.
"""

import math
from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any, get_args

import dspy
import numpy as np

from eldgr_dspy.ballots import Ballot
from eldgr_dspy.channels.protocols import Reasoning, Scorer
from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.consultations import show_passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.extraction import before_answer
from eldgr_dspy.named_objects import cause, name_of, source_of
from eldgr_dspy.programs.consulting import FAILURES
from eldgr_dspy.programs.judges.counting import CountingJudge, abstained, preferring_by
from eldgr_dspy.programs.judges.weighted_votes import Fold, folded_steps
from eldgr_dspy.questions import require_one_of

Reward = Callable[[dspy.Example, dspy.Prediction], Any]
"""A metric without the trace: (question and evidence, text and answer of a candidate) -> number or truth value."""


class _Rewarding(CountingJudge):
    """What judges by rewards share: the highest reward wins, once every candidate that votes has one."""

    asks_lm = True

    def _rewarded(self, ballot: Ballot) -> dict[int, float] | str:
        """The reward of each candidate that votes, by pool index; or why one is missing."""
        raise NotImplementedError

    def count(self, ballot: Ballot) -> dspy.Prediction:
        """Reward each candidate that votes; returns `preferred`, or `abstained` with the reason."""
        rewards = self._rewarded(ballot)
        if isinstance(rewards, str):
            return abstained(rewards)
        preferred = ballot.first(rewards)
        return preferring_by(ballot, preferred, f"reward {rewards[preferred]:.4g}", rewards)


class BestOf(_Rewarding):
    """Prefers the candidate with the highest reward; ties go to the answer with more votes, then to the earliest.

        select.judge = BestOf(lambda args, pred: len(pred.text))

    If the reward raises, or is not a finite number, the judge abstains and names the candidate: it may have been the
    best. A reward must not read the right answer.

    Attributes:
        reward: What is called as a DSPy metric, with an example (`question`, `evidence`) and a prediction (`text`,
            `answer`).
    """

    def __init__(self, reward: Reward) -> None:
        """Wrap a reward.

        Raises:
            ArgumentError: naming the argument.
        """
        super().__init__()
        if not callable(reward):
            raise ArgumentError(f"reward must be a function or a DSPy metric; got {type(reward).__name__}.")
        self.reward = reward
        self.source = {"name": name_of(reward), "source": source_of(reward)}  # so that a change is noticed

    def _rewarded(self, ballot: Ballot) -> dict[int, float] | str:
        evidence = [show_passage(passage.title, passage.text) for passage in ballot.passages]
        example = dspy.Example(question=ballot.question, evidence=evidence).with_inputs("question", "evidence")
        rewards: dict[int, float] = {}
        for index in ballot.voters:
            candidate = dspy.Prediction(text=ballot.texts[index], answer=ballot.answers[index])
            try:
                value = self.reward(example, candidate)
            except Exception as error:
                if isinstance(error, FAILURES):
                    raise
                return f"the reward failed on candidate {index}: {cause(error, self.reward)}"
            if (number := _finite(value)) is None:
                return f"the reward of candidate {index} is {value!r:.40}, not a finite number"
            rewards[index] = number
        return rewards


class BestOfSteps(_Rewarding):
    """Prefers the candidate whose steps score best on the seven channels: best of n by a process reward.

    Attributes:
        scorer: Scores the steps, such as `NLIScorer` or `ChannelScorer`; see `eldgr_dspy.channels.protocols`.
        fold: How the rewards of the steps (Eq. 2) become one: `min`, `last` or `product`; undefined ones are left out.
    """

    def __init__(self, scorer: Scorer, fold: Fold = "min") -> None:
        """Wrap a scorer.

        Raises:
            ArgumentError: naming the argument.
        """
        super().__init__()
        require_one_of("fold", fold, get_args(Fold))
        if not callable(getattr(scorer, "score", None)):
            raise ArgumentError(f"scorer must have a method score; got {type(scorer).__name__}.")
        self.scorer = scorer
        self.fold: Fold = fold

    def _rewarded(self, ballot: Ballot) -> dict[int, float] | str:
        rewards: dict[int, float] = {}
        tables = self.scorer.score([*_reasonings(ballot)])
        for index, table in zip(ballot.voters, tables, strict=True):
            steps = [float(step.reward) for step in table.scores if not isinstance(step.reward, Undefined)]
            value = folded_steps(steps, self.fold) if steps else "no step has a reward"
            if isinstance(value, str):
                return f"{value} (candidate {index})"
            rewards[index] = value
        return rewards


def _finite(value: object) -> float | None:
    """Return a number or truth value, numpy's included, as a number; None if it is not finite or something else."""
    if not isinstance(value, Real | np.bool_):
        return None
    try:
        number = float(value)
    except OverflowError:  # a whole number with more digits than a float holds
        return None
    return number if math.isfinite(number) else None


def _reasonings(ballot: Ballot) -> Iterator[Reasoning]:
    for index in ballot.voters:
        answer = ballot.answers[index] or ""
        yield Reasoning(before_answer(answer, ballot.texts[index]), ballot.question, ballot.passages, answer)
