"""What an answer type is: how answers compare, how one is scored, what certifies it and who may repair it.

The rule knows no types. It knows two ways of certifying an answer: by the evidence, and by a derivation. A type says
which of the two is its own. This package uses only the standard library.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from eldgr_dspy.certificates import Certificate, Evidence, Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.sentence_ends import first_sentence
from eldgr_dspy.structured import Structured
from eldgr_dspy.text_keys import AnswerClass
from eldgr_dspy.words import Form, Homogeneous, Mark, Policy, Role, Task

Way = Literal["evidence", "derivation"]

_TASKS: dict[Way, Task] = {"evidence": "retrieval", "derivation": "arithmetic"}


@dataclass(frozen=True, slots=True)
class Score:
    """An answer's score: whether it is right (for short text, exact match), and its token F1 in [0, 1] or None."""

    em: bool
    f1: float | None


class Certifying(Protocol):
    """The passages of one question, as they certify answers."""

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passages."""
        ...

    def certify(self, answer: str | None, question: str = "") -> Certificate:
        """Return the certificate of an answer."""
        ...


class AnswerType(ABC):
    """A type of answers: a value without state, which any number of threads use.

    Attributes:
        name: The name by which pools, settings and results state the type. One of your own gets it when it is loaded:
            the `module:name` under which it was found first.
        way: What certifies an answer: `evidence`, by the certificate of the settings, or a checked `derivation`.
        scores: The scores as tables name them: whether an answer is right, then F1 if the type has one.
        enumerates_spans: Whether a repair is always a span of the evidence. Only then can a bound try all repairs.
        gives_up: The laws that do not hold for the type, by their names in `eldgr_dspy.laws`.
    """

    name: Task = ""
    way: ClassVar[Way]
    scores: ClassVar[tuple[str, ...]]
    enumerates_spans: ClassVar[bool] = False
    gives_up: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def read(self, answer: str) -> AnswerClass | None:
        """Return the class in which an answer votes, or None if it shows nothing; a pure function of the answer."""

    @abstractmethod
    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        """Return whether an answer is right, given one or more gold answers."""

    def score(self, answer: str | None, gold: Sequence[str]) -> Score:
        """Return the scores of an answer, given one or more gold answers."""
        return Score(self.is_right(answer, gold), None)

    def official_score(self, answer: str | None, gold: Sequence[str]) -> Score:
        """Return the scores by the official script of the field, where that reads an answer differently."""
        return self.score(answer, gold)

    def class_of(self, answer: str | None) -> AnswerClass | None:
        """Return the class of any answer; a list or an object (`Structured`) votes by the classes of its leaves."""
        if answer is None:
            return None
        if isinstance(answer, Structured):
            return AnswerClass(
                "json:" + answer.key(lambda leaf: leaf if (of := self.class_of(leaf)) is None else of.key)
            )
        return self.read(answer)

    def classes(self, answers: Sequence[str | None], question: str) -> list[AnswerClass | None]:
        """Return the class of each answer of a pool, given the question."""
        return [self.class_of(answer) for answer in answers]

    def evidence(self, passages: Sequence[Passage], policy: Policy) -> Certifying:
        """Return the passages as they certify under a policy: by default, if the answer occurs in them as short text.

        It is not asked if a derivation certifies, or if the settings have a certificate of the user's own.
        """
        return Evidence(passages, policy)

    # -- how a final answer is found in a text, see `eldgr_dspy.extraction` -------------------------------------------

    def sentence(self, line: str) -> str:
        """Return the part of a line after "the answer is" in which the answer is."""
        return first_sentence(line)

    def stated(self, payload: str, mark: Mark) -> str:
        """Return the answer in what follows a mark; empty if there is none."""
        return payload

    def unmarked(self, text: str) -> tuple[str, Form]:
        """Return the answer of a text that marks none, and the form that says how it was guessed."""
        return text.strip(), "whole"

    # -- what follows from the way ------------------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        """The way as the rule's protocol names it: `retrieval` (by evidence) or `arithmetic` (by a derivation)."""
        return _TASKS[self.way]

    @property
    def repairer(self) -> Role:
        """The role that may repair."""
        return "repairer" if self.way == "evidence" else "deriver"

    @property
    def homogeneous(self) -> Homogeneous:
        """Whether a pool of one class is repaired, unless the settings say otherwise."""
        return "repair" if self.way == "evidence" else "skip"

    @property
    def has_f1(self) -> bool:
        """Whether answers have an F1."""
        return len(self.scores) > 1


def require_gold(gold: Sequence[str]) -> None:
    """Raise an ArgumentError unless there is a list of gold answers that is not empty."""
    if isinstance(gold, str) or not gold:
        raise ArgumentError(f"gold must be a list of one or more gold answers; got {gold!r}. Pass one such as ['18'].")
