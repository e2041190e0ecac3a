"""A ballot: the candidates of a question as a selector counts them, with what a pool states of each.

A pool may state of a candidate how sure its model was (`confidence`), the log-probabilities of its tokens, scores by
any name, and the tags of the pipeline that made it. This module uses only the standard library.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from statistics import fmean
from typing import Any, TypeAlias

from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import ArgumentError

MOST_SCORES = 100
"""How many scores a candidate may have."""

MOST_NUMBERS = 100_000
"""How many numbers a list of log-probabilities or of steps may have."""


@dataclass(frozen=True, slots=True)
class Logprobs:
    """Log-probabilities of a candidate's tokens (natural logarithms), in summary, or None where unknown.

    Attributes:
        mean: The mean over all tokens. least: The lowest.
        probability: The mean of the tokens' probabilities, in [0, 1].
        reasoning: The mean over the tokens before the answer. answer: The sum over the tokens of the answer.
    """

    mean: float | None = None
    least: float | None = None
    probability: float | None = None
    reasoning: float | None = None
    answer: float | None = None

    @classmethod
    def of_tokens(cls, tokens: Sequence[float], answer_tokens: int | None = None) -> "Logprobs":
        """Return the summary of tokens in their order, of which the last `answer_tokens` are the answer.

        Raises:
            ArgumentError: There are no tokens, or the answer has more than there are.
        """
        if not tokens:
            raise ArgumentError("tokens must have at least one log-probability; got an empty list. Leave it out.")
        if answer_tokens is not None and not 0 < answer_tokens <= len(tokens):
            raise ArgumentError(
                f"answer_tokens must be from 1 to {len(tokens)}, the tokens; got {answer_tokens}. Leave it out."
            )
        before = tokens[: len(tokens) - answer_tokens] if answer_tokens else ()
        return cls(
            fmean(tokens),
            min(tokens),
            fmean(map(math.exp, tokens)),
            fmean(before) if before else None,
            math.fsum(tokens[-answer_tokens:]) if answer_tokens else None,
        )


@dataclass(frozen=True, slots=True)
class Statement:
    """What a pool states of one candidate, besides text, answer and source.

    Attributes:
        confidence: The probability, in [0, 1], that its model states for its answer, or None if it states none.
        logprobs: Of its tokens, or None if unknown.
        scores: A number by name, or one for each step of its reasoning.
        tags: What made it: modules, prompts or models of its pipeline.
        source: Where it came from.
    """

    confidence: float | None = None
    logprobs: Logprobs | None = None
    scores: Mapping[str, float | Sequence[float]] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    source: str | None = None

    @property
    def pipeline(self) -> str:
        """The name of what made it: its tags, sorted, or else its source. Empty if neither is stated."""
        return "+".join(sorted(self.tags)) or self.source or ""


NOTHING = Statement()
Weights: TypeAlias = "Sequence[Any] | Mapping[int, Any]"


@dataclass(frozen=True)
class Ballot:
    """The candidates of a question. Each tuple has one entry a candidate, in pool order.

    Attributes:
        question: The question as asked. passages: The evidence.
        texts: The whole sampled texts. answers: Final answers, or None without one.
        classes: Which candidates vote together: equal keys do; None does not vote.
        stated: What the pool states of each.
    """

    question: str
    passages: tuple[Passage, ...]
    texts: tuple[str, ...]
    answers: tuple[str | None, ...]
    classes: tuple[str | None, ...]
    stated: tuple[Statement, ...]

    @cached_property
    def voters(self) -> tuple[int, ...]:
        """The candidates that vote, by pool index."""
        return tuple(index for index, key in enumerate(self.classes) if key is not None)

    @cached_property
    def _votes(self) -> Mapping[str | None, int]:
        return Counter(self.classes)

    def first(self, weights: Weights) -> int:
        """Return the voter with the highest weight; of equal ones that with most votes, then the earliest.

        Weights are one a candidate, or by pool index. At least one candidate must vote.
        """
        return max(self.voters, key=lambda i: (weights[i], self._votes[self.classes[i]], -i))

    def elected(self, weights: Weights) -> int:
        """Return the best candidate of the class with the highest sum of weights; ties are as in `first`.

        Weights are added as the decimals that they are written as, so that .1 + .2 ties with .3.
        """
        sums: dict[str | None, Fraction] = {}
        for i in self.voters:
            sums[self.classes[i]] = sums.get(self.classes[i], Fraction()) + Fraction(repr(float(weights[i])))
        # Of equal ones `max` takes the first, and classes are in the order of their earliest candidates.
        winner = max(sums, key=lambda key: (sums[key], self._votes[key]))
        return max((i for i in self.voters if self.classes[i] == winner), key=lambda i: (weights[i], -i))
