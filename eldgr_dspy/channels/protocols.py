"""The interfaces for scoring reasoning: the text to score, and the protocols of retriever, NLI model and scorer.

Nothing here retrieves or calls a model. `eldgr_dspy.programs.scoring` implements the protocols; any other object with
these methods works too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from eldgr_dspy.certificates import Passage
from eldgr_dspy.channels.step_table import StepTable
from eldgr_dspy.channels.undefined import Floats, Score, Scores
from eldgr_dspy.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A text to score step by step.

    Attributes:
        text: The reasoning, without the question.
        question: What it answers; may be empty.
        passages: The corpus to check it against. None, for no corpus, differs from an empty corpus: without a corpus
            `fact` is undefined, and with an empty one it is neutral.
        answer: Its final answer, the goal for progress; may be empty.
        confidences: c_t, one for each step of `split_steps(text)`; None without token probabilities.
    """

    text: str
    question: str = ""
    passages: tuple[Passage, ...] | None = None
    answer: str = ""
    confidences: Sequence[Score] | None = None

    def confidences_of(self, n: int, name: str = "confidences") -> Scores | None:
        """Return c_t of the n steps of the text, None if it has none; `name` is theirs in an error.

        Raises:
            ArgumentError: There are more or fewer than n, or one is not in [0, 1].
        """
        if self.confidences is not None and len(self.confidences) != n:
            raise ArgumentError(
                f"{name} has {len(self.confidences)} entries, but the text has {n} steps; give one for each step of "
                "split_steps(text), Undefined(reason) for a step without token probabilities."
            )
        return None if self.confidences is None else Scores.of(self.confidences, name, 0, 1)


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found: its number in the corpus, from 0, and how well it matches; above 0."""

    document: int
    score: float


class Retriever(Protocol):
    """Finds documents in a corpus."""

    @property
    def documents(self) -> Sequence[Passage]:
        """The corpus, in order; or the documents found so far, if the whole is not known. Numbers never change."""
        ...

    def search(self, queries: Sequence[str], k: int = 5) -> list[list[Hit]]:
        """Return at most k documents for each query, best first, ties to the earliest; only those that match."""
        ...


class NLI(Protocol):
    """Judges whether a premise entails or contradicts a hypothesis."""

    @property
    def name(self) -> str:
        """Everything that can change its readings: model, revision, precision, truncation."""
        ...

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return the readings of (premise, hypothesis) pairs.

        The shape is (n, 3): contradiction, neutral, entailment. A row of NaN is a pair that it could not read.
        """
        ...


class Scorer(Protocol):
    """Scores reasoning on the seven channels, with an NLI model, an LM, or both."""

    def score(self, reasonings: Sequence[Reasoning]) -> list[StepTable]:
        """Return the table of each text, in order; scores that could not be measured are `Undefined`."""
        ...
