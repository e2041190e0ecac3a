"""Selectors that count what a pool states of its candidates: one table of formulas, and one judge for all of them.

No LM is asked. Each formula makes a weight of each candidate's value; the highest weight wins, or the class of answers
with the highest sum. A missing value is an abstention, and never 0, .5 or 1.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import dspy

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.judges.frames import CountingJudge, abstained, preferring_by
from eldgr_dspy.rule.ballots import Ballot, Logprobs
from eldgr_dspy.rule.consultations import Abstention

Column = Literal["confidence", "logprobs", "scores"]
_FOLDS: dict[str, tuple[str, ...]] = {"scores": ("min", "last", "product"), "logprobs": ("mean", "min")}
"""How the scores of steps become one: the lowest, the last, or their product; and the probabilities of tokens."""
_UNFOLDED = "has a number for each step; min, last or product makes one of them"


@dataclass(frozen=True, slots=True)
class Weighing:
    """A formula.

    Attributes:
        column: What it reads. elects: Whether weights are added by class; otherwise the highest weight wins.
        weights: Makes the weights of values, one for each candidate that votes, with the parameter.
        parameter: The parameter's default; None where the formula has none. range: where it must lie.
        least: The lowest value that has a meaning. positioned: Whether it imitates a system that was not rerun.
        abstains_below: Whether it abstains if the highest weight is below the parameter.
    """

    column: Column
    elects: bool
    weights: Callable[[Sequence[float], float], Sequence[float]] = lambda values, _: values
    parameter: float | None = None
    range: tuple[float, float] = (0.0, math.inf)
    least: float = -math.inf
    positioned: bool = False
    abstains_below: bool = False


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
    "bcrl_max": Weighing("confidence", elects=False, positioned=True),
    "bcrl_vote": Weighing("confidence", elects=True, positioned=True),
    "bcrl_abstaining": Weighing(
        "confidence", elects=False, parameter=0.5, range=(0.0, 1.0), positioned=True, abstains_below=True
    ),
}
"""The formulas by name.

* `best_of_n`: the highest score. `weighted_best_of_n`: the class with the highest sum of scores (Li et al. 2023).
* `borda`: the class with most points (G - rank)^p, p = 0.5 (Kang et al. 2025, with self-certainty as the score). Equal
  scores share the mean of their ranks' points.
* `cisc`: the class with the highest sum of softmax(confidence / T), T = 1 (Taubenfeld et al. 2025).
* `soft_sc`: the highest mean probability of tokens, or that of the least probable one (Wang et al. 2024).
* `bcrl_max`, `bcrl_vote`, `bcrl_abstaining`: in the style of BCRL; see the page on positioned selectors.
"""


class WeightedVote(CountingJudge):
    """Counts the candidates by a formula of `WEIGHINGS`; a judge without an LM.

        select.judge = WeightedVote("cisc:0.5")
        select(question=..., candidates=[{"answer": "Doha", "confidence": 0.9}, ...], evidence=passages)

    It abstains if a candidate that votes lacks the value. Of equal weights the answer with more votes wins, then the
    earliest candidate.

    Attributes:
        formula: The name in `WEIGHINGS`, as `NAME[:SCORE][:FOLD][:PARAMETER]`.
    """

    def __init__(self, formula: str) -> None:
        """Read a formula: `cisc`, `cisc:0.5`, `soft_sc:min`, `best_of_n:prm:last`, `borda:self_certainty:1`.

        Args:
            formula: A name of `WEIGHINGS`. After `best_of_n`, `weighted_best_of_n` and `borda` the score's name, and
                for scores of steps `min`, `last` or `product`. After `soft_sc` `mean` (the default) or `min`. Last the
                parameter, if it has one: T, p, or the confidence below which `bcrl_abstaining` abstains.

        Raises:
            ArgumentError: naming the formula and what was expected.
        """
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
        """Count a ballot; returns `preferred` and `judge_rationale`, or `abstained` with the reason.

        Also `assessments`, the values, where all of them lie from 0 to 1; 0 for a candidate that does not vote.
        """
        values, weighing = values_of(ballot, self._weighing.column, *self._reading), self._weighing
        if isinstance(values, Abstention):
            return abstained(values)
        low = min(values, key=values.__getitem__)
        if values[low] < weighing.least:
            return abstained(f"weights that are added must be at least 0; candidate {low} has {values[low]:g}")
        weights = dict(zip(values, weighing.weights([*values.values()], self._parameter), strict=True))
        preferred = ballot.elected(weights) if weighing.elects else ballot.first(weights)
        if weighing.abstains_below and weights[preferred] < self._parameter:
            return abstained(f"the highest confidence is {weights[preferred]:g}, below {self._parameter:g}")
        return preferring_by(ballot, preferred, f"{self.formula}: weight {weights[preferred]:.4g}", values)


def _parameter(formula: str, weighing: Weighing, text: str) -> float:
    """Return the parameter that a formula ends with."""
    low, high = weighing.range
    end = f"a number from {low:g} to {high:g}"
    if weighing.parameter is None:
        folds = ", ".join(_FOLDS.get(weighing.column, ()))
        end = f"one of {folds}, or with nothing more" if folds else "nothing more"
    try:
        if weighing.parameter is not None and low <= (value := float(text)) <= high and math.isfinite(value):
            return value
    except ValueError:
        pass
    raise ArgumentError(f"formula={formula!r:.80} must end with {end}; got {text!r:.40}. Leave it out.")


def values_of(ballot: Ballot, column: Column, score: str = "", fold: str = "") -> dict[int, float] | Abstention:
    """Return the value of each candidate that votes in a column, by pool index; or why one is missing.

    Args:
        ballot: The candidates. column: What is read.
        score: The score's name. fold: How scores of steps become one, or for log-probabilities `min`.
    """
    what, stated = _read(ballot, column, score, fold)
    if all(value is None for value in stated):
        return Abstention.of("not applicable", f"the pool states no {what}")
    if not fold and all(isinstance(stated[index], list | tuple) for index in ballot.voters):
        return Abstention.of("not applicable", f"{what} {_UNFOLDED}")
    values: dict[int, float] = {}
    for index in ballot.voters:
        if (value := stated[index]) is None:
            return Abstention(f"no {what} is stated of candidate {index}")
        folded = _folded(value, fold)
        if isinstance(folded, str):
            return Abstention(f"{folded} (score {score!r} of candidate {index})")
        values[index] = folded
    return values


def _read(
    ballot: Ballot, column: Column, score: str, fold: str
) -> tuple[str, Sequence[float | Sequence[float] | None]]:
    """Return what a column is called, and what is stated in it of each candidate."""
    if column == "confidence":
        return column, [of.confidence for of in ballot.stated]
    if column == "scores":
        return f"score {score!r}", [of.scores.get(score) for of in ballot.stated]
    known = [of.logprobs or Logprobs() for of in ballot.stated]
    if not any(of.logprobs for of in ballot.stated):
        return "log-probabilities", [None] * len(known)
    if fold == "min":
        return "lowest log-probability", [None if of.least is None else math.exp(of.least) for of in known]
    return "mean probability of tokens", [of.probability for of in known]


def _folded(value: float | Sequence[float], fold: str) -> float | str:
    """Return one score for scores of steps, or why there is none; a single number is its own."""
    if isinstance(value, int | float):
        return float(value)
    if fold == "product":
        return math.prod(value) if all(0 <= step <= 1 for step in value) else "a product needs steps from 0 to 1"
    if not fold:
        return f"it {_UNFOLDED}"
    return float(min(value) if fold == "min" else value[-1])
