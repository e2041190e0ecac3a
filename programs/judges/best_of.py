"""Best of n by any reward: a DSPy metric, a function, or the scores of the seven channels for each step.

On a frozen pool this is what `dspy.BestOfN` does, without drawing new samples. `dspy.Refine` has no counterpart, since
it makes new candidates.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from numbers import Real
from typing import Any, Literal, get_args

import dspy
import numpy as np

from eldgr_dspy.ballots import Ballot
from eldgr_dspy.channels.protocols import Reasoning, Scorer
from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.consultations import show_passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.extraction import before_answer
from eldgr_dspy.named_objects import name_of, said, source_of
from eldgr_dspy.programs.consulting import FAILURES
from eldgr_dspy.programs.judges.counting import CallingJudge, abstained, assessments_of
from eldgr_dspy.programs.judges.weighted_votes import Fold, folded_steps
from eldgr_dspy.questions import require_one_of

Combine = Literal["best", "vote"]
Reward = Callable[[dspy.Example, dspy.Prediction], Any]
"""A metric without the trace: (question and evidence, text and answer of a candidate) -> number or truth value."""

_Rewarded = tuple[list[float | None], str]
"""The reward of each candidate, None of one that does not vote; and why one is missing, else an empty text."""


class _Rewarding(CallingJudge):
    """What judges by rewards share: the vote, once every candidate that votes has a reward."""

    def __init__(self, combine: Combine, threshold: float | None) -> None:
        super().__init__()
        require_one_of("combine", combine, get_args(Combine))
        if threshold is not None and (isinstance(threshold, bool) or _finite(threshold) is None):
            raise ArgumentError(f"threshold must be a finite number or None; got {threshold!r:.80}.")
        if threshold is not None and combine == "vote":
            raise ArgumentError(f"threshold must be None with combine='vote'; got {threshold!r:.80}. Leave it out.")
        self.combine: Combine = combine
        self.threshold = threshold

    def _rewarded(self, ballot: Ballot) -> _Rewarded:
        raise NotImplementedError

    def count(self, ballot: Ballot) -> dspy.Prediction:
        """Reward each candidate that votes; returns `preferred`, or `abstained` with the reason."""
        rewards, lacking = self._rewarded(ballot)
        if lacking:
            return abstained(lacking)
        weights = [reward or 0.0 for reward in rewards]
        if self.combine == "vote" and min(weights, default=0.0) < 0:
            reason = f"rewards that are added must be at least 0; candidate {weights.index(min(weights))} has less"
            return abstained(reason)
        preferred = ballot.elected(weights) if self.combine == "vote" else self._first(ballot, weights)
        if preferred is None:
            return abstained("there is no candidate to judge")
        return dspy.Prediction(
            preferred=preferred,
            judge_rationale=f"reward {weights[preferred]:.4g}",
            assessments=assessments_of(rewards),
            orders=[],
        )

    def _first(self, ballot: Ballot, weights: Sequence[float]) -> int | None:
        """The first candidate that reaches the threshold, else the best."""
        enough = (i for i in ballot.voters if self.threshold is not None and weights[i] >= self.threshold)
        return next(enough, ballot.first(weights))


class BestOf(_Rewarding):
    """Prefers the candidate with the highest reward; ties go to the answer with more votes, then to the earliest.

        select.judge = BestOf(lambda args, pred: len(pred.text))

    If the reward raises, or is not a finite number, the judge abstains and names the candidate: it may have been the
    best. A reward must not read the right answer.

    Attributes:
        reward: What is called as a DSPy metric, with an example (`question`, `evidence`) and a prediction (`text`,
            `answer`).
        combine: `best`, the highest reward; `vote`, the class of answers with the highest sum of rewards.
        threshold: As in `dspy.BestOfN`, the first candidate that reaches it wins; None for the highest reward.
    """

    def __init__(self, reward: Reward, combine: Combine = "best", threshold: float | None = None) -> None:
        """Wrap a reward.

        Raises:
            ArgumentError: naming the argument.
        """
        super().__init__(combine, threshold)
        if not callable(reward):
            raise ArgumentError(f"reward must be a function or a DSPy metric; got {type(reward).__name__}.")
        self.reward = reward
        self.source = {"name": name_of(reward), "source": source_of(reward)}  # so that a change is noticed

    def _rewarded(self, ballot: Ballot) -> _Rewarded:
        evidence = [show_passage(passage.title, passage.text) for passage in ballot.passages]
        example = dspy.Example(question=ballot.question, evidence=evidence).with_inputs("question", "evidence")
        rewards: list[float | None] = [None] * len(ballot.classes)
        for index in ballot.voters:
            candidate = dspy.Prediction(text=ballot.texts[index], answer=ballot.answers[index])
            try:
                value = self.reward(example, candidate)
            except Exception as error:
                if isinstance(error, FAILURES):
                    raise
                return rewards, f"the reward failed on candidate {index}: {said(error, self.reward)}"
            rewards[index] = _finite(value)
            if rewards[index] is None:
                return rewards, f"the reward of candidate {index} is {value!r:.40}, not a finite number"
        return rewards, ""


class BestOfSteps(_Rewarding):
    """Prefers the candidate whose steps score best on the seven channels: best of n by a process reward.

    Attributes:
        scorer: Scores the steps, such as `NLIScorer` or `ChannelScorer`; see `eldgr_dspy.channels.protocols`.
        fold: How the rewards of the steps (Eq. 2) become one: `min`, `last` or `product`; undefined ones are left out.
        combine: As of `BestOf`.
    """

    def __init__(self, scorer: Scorer, fold: Fold = "min", combine: Combine = "best") -> None:
        """Wrap a scorer.

        Raises:
            ArgumentError: naming the argument.
        """
        super().__init__(combine, None)
        require_one_of("fold", fold, get_args(Fold))
        if not callable(getattr(scorer, "score", None)):
            raise ArgumentError(f"scorer must have a method score; got {type(scorer).__name__}.")
        self.scorer = scorer
        self.fold: Fold = fold

    def _rewarded(self, ballot: Ballot) -> _Rewarded:
        rewards: list[float | None] = [None] * len(ballot.classes)
        tables = self.scorer.score([*_reasonings(ballot)])
        for index, table in zip(ballot.voters, tables, strict=True):
            steps = [float(step.reward) for step in table.scores if not isinstance(step.reward, Undefined)]
            value = folded_steps(steps, self.fold) if steps else "no step has a reward"
            if isinstance(value, str):
                return rewards, f"{value} (candidate {index})"
            rewards[index] = value
        return rewards, ""


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
