"""Judges without an LM: a formula over what a pool states of its candidates, or a function of yours.

A formula makes a weight of each candidate's value; the highest weight wins, or the class of answers with the highest
sum. A missing value is an abstention, and never 0, .5 or 1. `BestOf` chooses on a frozen pool as `dspy.BestOfN` does,
without new samples; `dspy.Refine` has no counterpart, since it makes new candidates.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import Any

import dspy
import numpy as np

from eldgr_dspy.base.named_objects import cause, name_of, source_of
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.judges.bcrl import BCRL
from eldgr_dspy.programs.judges.frames import Column, CountingJudge, Weighing, abstain, preferring_by
from eldgr_dspy.programs.lms.consulting import FAILURES
from eldgr_dspy.rule.ballots import Ballot
from eldgr_dspy.rule.consultations import Abstention, show_passage

Reward = Callable[[dspy.Example, dspy.Prediction], Any]
"""A metric without the trace: (question and evidence, text and answer of a candidate) -> number or truth value."""

_FOLDS: dict[str, tuple[str, ...]] = {"scores": ("min", "last", "product"), "logprobs": ("mean", "min")}
"""How the scores of steps become one: the lowest, the last, or their product; and the probabilities of tokens."""
_SUMMARIES = {
    **dict.fromkeys(("", "mean"), ("mean probability of tokens", "probability")),
    "min": ("lowest log-probability", "least"),
    "reasoning": ("log-probability of the reasoning", "reasoning"),
    "answer": ("log-probability of the answer", "answer"),
}
"""How log-probabilities are read: what is read, and the attribute of `Logprobs` that has it."""
_PER_STEP = "has a number for each step; min, last or product makes one of them"


def _softmax(values: Sequence[float], temperature: float) -> list[float]:
    highest = max(values)
    powers = [math.exp((value - highest) / temperature) for value in values]
    total = math.fsum(powers)
    return [power / total for power in powers]


def _borda(values: Sequence[float], power: float) -> list[float]:
    """Return (G - rank)^power, the highest value having rank 0; equal values share the mean of their ranks' points."""
    ranks: dict[float, list[float]] = {}
    for rank, value in enumerate(sorted(values, reverse=True)):
        ranks.setdefault(value, []).append((len(values) - rank) ** power)
    return [math.fsum(ranks[value]) / len(ranks[value]) for value in values]


WEIGHINGS: dict[str, Weighing] = {
    "best_of_n": Weighing("scores", elects=False),
    "weighted_best_of_n": Weighing("scores", elects=True, least=0.0),
    "borda": Weighing("scores", elects=True, weights=_borda, parameter=0.5, range=(0.0, 100.0)),
    "cisc": Weighing("confidence", elects=True, weights=_softmax, parameter=1.0, range=(1e-6, 1e6)),
    "soft_sc": Weighing("logprobs", elects=False),
    **BCRL,
}
"""The formulas by name; `docs/reference/selectors.md` has what each prefers, and its source."""


class WeightedVote(CountingJudge):
    """Counts the candidates by a formula of `WEIGHINGS`.

        select.judge = WeightedVote("cisc:0.5")
        select(question=..., candidates=[{"answer": "Doha", "confidence": 0.9}, ...], evidence=passages)

    It abstains if a candidate that votes lacks the value. Of equal weights the answer with more votes wins, then the
    earliest candidate.

    Attributes:
        formula: The name in `WEIGHINGS`, as `NAME[:SCORE][:FOLD][:PARAMETER]`.
    """

    def __init__(self, formula: str) -> None:
        """Read a formula, such as `cisc:0.5` or `best_of_n:prm:last`; an ArgumentError says what was expected."""
        super().__init__()
        name, *words = formula.split(":")
        if name not in WEIGHINGS:
            raise ArgumentError(f"formula must begin with one of {', '.join(WEIGHINGS)}; got {formula!r:.80}. Use one.")
        self.formula, self._weighing = formula, WEIGHINGS[name]
        column = self._weighing.column
        score = words.pop(0) if column == "scores" and words else ""
        if column == "scores" and not score:
            raise ArgumentError(f"formula={formula!r:.80} must name a score. Write {name}:SCORE, such as {name}:prm.")
        self._reading = score, words.pop(0) if words and words[0] in _FOLDS.get(column, ()) else ""
        self._parameter = self._weighing.parameter or 0.0
        if words:
            self._parameter = _parameter(formula, self._weighing, ":".join(words))

    @property
    def facts(self) -> dict[str, bool]:
        """What the selector needs, as tables show it."""
        positioned, column = self._weighing.positioned, self._weighing.column
        return {"gold_in_training": False, "logprobs": column == "logprobs", "positioned": positioned}

    def count(self, ballot: Ballot) -> dspy.Prediction:
        """Weigh the candidates; `assessments` are the values, where all of them lie from 0 to 1."""
        values, weighing = values_of(ballot, self._weighing.column, *self._reading), self._weighing
        if isinstance(values, Abstention):
            return abstain(values)
        low = min(values, key=values.__getitem__)
        if values[low] < weighing.least:
            return abstain(f"weights that are added must be at least 0; candidate {low} has {values[low]:g}")
        weights = dict(zip(values, weighing.weights([*values.values()], self._parameter), strict=True))
        preferred = ballot.elected(weights) if weighing.elects else ballot.first(weights)
        if weighing.abstains_below and weights[preferred] < self._parameter:
            return abstain(f"the highest confidence is {weights[preferred]:g}, below {self._parameter:g}")
        return preferring_by(ballot, preferred, f"{self.formula}: weight {weights[preferred]:.4g}", values)


def _parameter(formula: str, weighing: Weighing, text: str) -> float:
    """Return the parameter that a formula ends with."""
    end, (low, high) = "nothing more", weighing.range
    if weighing.parameter is not None:
        with suppress(ValueError):
            if low <= (value := float(text)) <= high:
                return value
        end = f"a number from {low:g} to {high:g}"
    elif folds := ", ".join(_FOLDS.get(weighing.column, ())):
        end = f"one of {folds}, or with nothing more"
    raise ArgumentError(f"formula={formula!r:.80} must end with {end}; got {text!r:.40}. Leave it out.")


def values_of(ballot: Ballot, column: Column, score: str = "", fold: str = "") -> dict[int, float] | Abstention:
    """Return the value in a column of each candidate that votes, by pool index, or say why one is missing."""
    # `fold` says how scores of steps become one, or which summary of log-probabilities is meant.
    what: str = column
    if column == "confidence":
        entries: Sequence[Any] = [of.confidence for of in ballot.stated]
    elif column == "scores":
        what, entries = f"score {score!r}", [of.scores.get(score) for of in ballot.stated]
    else:
        what, summary = _SUMMARIES[fold] if any(of.logprobs for of in ballot.stated) else ("log-probabilities", "least")
        entries = [getattr(of.logprobs, summary, None) for of in ballot.stated]
        entries = entries if fold != "min" else [None if least is None else math.exp(least) for least in entries]
    if all(value is None for value in entries):
        return Abstention.of("not applicable", f"the pool states no {what}")
    if not fold and all(isinstance(entries[index], list | tuple) for index in ballot.voters):
        return Abstention.of("not applicable", f"{what} {_PER_STEP}")
    values: dict[int, float] = {}
    for index in ballot.voters:
        if (value := entries[index]) is None:
            return Abstention(f"no {what} is stated of candidate {index}")
        number = _fold(value, fold)
        if isinstance(number, str):
            return Abstention(f"{number} (score {score!r} of candidate {index})")
        values[index] = number
    return values


def _fold(value: float | Sequence[float], fold: str) -> float | str:
    """Return one score for scores of steps, or why there is none; a single number is its own."""
    if isinstance(value, int | float):
        return float(value)
    if fold == "product":
        exact = math.prod(Decimal(repr(float(step))) for step in value)  # .1 times .2 is .02
        return float(exact) if all(0 <= step <= 1 for step in value) else "a product needs steps from 0 to 1"
    return float(min(value) if fold == "min" else value[-1]) if fold else f"it {_PER_STEP}"


class OwnSelector(CountingJudge):
    """Prefers the candidate that a function names.

        select.judge = OwnSelector(lambda ballot: len(ballot.answers) - 1)

    The function takes a `Ballot` and returns a pool index, or an `Abstention` with the reason. An index that does not
    exist counts as an abstention, as any judge's does. What the function raises is raised.
    """

    asks_lm = True

    def __init__(self, choose: Callable[[Ballot], int | Abstention]) -> None:
        """Wrap a function; raise an ArgumentError if it is not a function, or is an async one."""
        super().__init__()
        function: object = choose
        is_async = any(map(inspect.iscoroutinefunction, (function, getattr(function, "__call__", None))))  # noqa: B004
        if not callable(function) or is_async or isinstance(function, dspy.Module):
            raise ArgumentError(
                f"choose must be a function of a ballot, not async; got {type(choose).__name__}. Write a dspy.Module "
                "in the judge's role to ask an LM."
            )
        self.choose = choose
        self.source = {"name": name_of(choose), "source": source_of(choose)}  # so that a change is noticed

    def count(self, ballot: Ballot) -> dspy.Prediction:
        """Return the function's preference."""
        choice = self.choose(ballot)
        if isinstance(choice, Abstention):
            return abstain(choice)
        return dspy.Prediction(preferred=choice, judge_rationale=f"chosen by {self.source['name']}", orders=[])


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
        """Reward each candidate that votes."""
        evidence = [show_passage(passage.title, passage.text) for passage in ballot.passages]
        example = dspy.Example(question=ballot.question, evidence=evidence).with_inputs("question", "evidence")
        rewards: dict[int, float] = {}
        for index in ballot.voters:
            try:
                value = self.reward(example, dspy.Prediction(text=ballot.texts[index], answer=ballot.answers[index]))
                rewards[index] = float(value) if isinstance(value, Real | np.bool_ | dspy.Prediction) else math.nan
            except Exception as error:
                if isinstance(error, FAILURES):
                    raise
                return abstain(f"the reward failed on candidate {index}: {cause(error, self.reward)}")
            if not math.isfinite(rewards[index]):
                return abstain(f"the reward of candidate {index} is {value!r:.40}, not a finite number")
        preferred = ballot.first(rewards)
        return preferring_by(ballot, preferred, f"reward {rewards[preferred]:.4g}", rewards)
