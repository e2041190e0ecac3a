"""What the scoring of reasoning is made of: the text to be scored, and who retrieves, who reads and who scores.

Nothing here retrieves or calls a model. What implements the protocols is in `eldgr_dspy.programs.scoring`; anything
else with these methods does as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.table import StepTable
from eldgr_dspy.channels.undefined import Floats, Score


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A text to be scored step by step.

    Attributes:
        text: The reasoning, without the question.
        question: What it answers; may be empty.
        passages: The corpus that it is held against; None where there is none at all, which is not the same as an empty
            one: nothing retrieved from a corpus is neutral, no corpus leaves `fact` undefined.
        answer: Its final answer, towards which progress is measured; may be empty.
        confidences: c_t, one for each step of `split_steps(text)`; None without token probabilities.
    """

    text: str
    question: str = ""
    passages: tuple[Passage, ...] | None = None
    answer: str = ""
    confidences: Sequence[Score] | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found: its number in the corpus, from 0, and how well it matches; above 0."""

    document: int
    score: float


class Retriever(Protocol):
    """Whoever finds documents in a corpus."""

    @property
    def documents(self) -> Sequence[Passage]:
        """The corpus, in order; or what was found of it so far, where nobody knows it whole. No number changes."""
        ...

    def search(self, queries: Sequence[str], k: int = 5) -> list[list[Hit]]:
        """Return at most k documents for each query, best first, ties to the earliest; only those that match."""
        ...


class NLI(Protocol):
    """Whoever reads whether a premise entails or contradicts a hypothesis."""

    @property
    def name(self) -> str:
        """What distinguishes its readings from another's: model, revision, precision, truncation."""
        ...

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return what it reads in (premise, hypothesis) pairs.

        Returns:
            Shape (n, 3): contradiction, neutral, entailment. A row of NaN is a pair that it could not read.
        """
        ...


class Scorer(Protocol):
    """Whoever scores reasoning on the seven channels: an NLI model, an LM, or both."""

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        """Return the table of each text, in order; what could not be measured is `Undefined` in it."""
        ...
