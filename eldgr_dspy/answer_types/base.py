"""What an answer type is: how answers compare, how one is scored, what certifies it and who may repair it.

The rule knows no types. It knows two ways of certifying an answer: by the evidence, and by a derivation. A type says
which of the two is its own. This module uses only the standard library.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from eldgr_dspy.answer_types.comparing import Comparisons
from eldgr_dspy.base.named_objects import source_of
from eldgr_dspy.base.structured import Structure
from eldgr_dspy.certificates import Certificate, Evidence, Passage
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.matching.text_keys import AnswerClass, short_class
from eldgr_dspy.text.sentence_ends import first_sentence
from eldgr_dspy.words import Form, Homogeneous, Mark, Policy, Role, Task

Way = Literal["evidence", "derivation"]

_TASKS: dict[Way, Task] = {"evidence": "retrieval", "derivation": "arithmetic"}
NAMES_IN_FILES: Mapping[Task, Task] = {"short": "retrieval", "number": "arithmetic"}
"""The types that pools, journals, runs and freezes state under another name."""


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


class QuestionView(Protocol):
    """What a type may read of a question: everything but the gold answers."""

    @property
    def text(self) -> str:
        """The question as asked."""
        ...

    @property
    def answers(self) -> tuple[str | None, ...]:
        """The candidates' answers."""
        ...

    @property
    def texts(self) -> tuple[str, ...]:
        """The candidates' full texts; empty if only the answers are known."""
        ...

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The evidence."""
        ...

    @property
    def options(self) -> tuple[str, ...]:
        """The options to choose from; empty for a type that has none."""
        ...

    @property
    def comparisons(self) -> Comparisons | None:
        """What a run recorded of comparing the answers, and until when they may be compared; None for a new start."""
        ...


@dataclass(frozen=True, slots=True)
class Grouping:
    """The answers of a pool in classes.

    Attributes:
        classes: The class of each answer, in pool order; None for an answer that does not vote.
        class_of: Returns the class of any answer, such as a repair: one of the pool's, or a new one.
    """

    classes: tuple[AnswerClass | None, ...]
    class_of: Callable[[str | None], AnswerClass | None]


class AnswerType(ABC):
    """A type of answers: a value without state, which any number of threads use.

    To read the answers of one question, a type may need the question: `of` returns the type for that question.

    Attributes:
        name: The name of the type. One of your own gets it when it is loaded: the `module:name` under which it was
            found first.
        loaded_as: The `module:name` under which it was found, if it was.
        way: What certifies an answer: `evidence`, by the certificate of the settings, or a checked `derivation`.
        scores: The scores as tables name them: whether an answer is right, then F1 if the type has one.
        enumerates_spans: Whether a repair is always a span of the evidence. Only then can a bound try all repairs.
        pooled: Whether classes depend on the pool: a further answer may then join two of its classes.
        needs_options: Whether a question must have options.
        gives_up: The laws that do not hold for the type, by their names in `eldgr_dspy.laws` and its `of_types`.
        example_options: Options under which the laws are tried, for a type that needs options.
        comparisons: Those of the question that the type is for, if it compares answers within a limit of time.
    """

    name: Task = ""
    loaded_as: str = ""
    way: ClassVar[Way]
    scores: ClassVar[tuple[str, ...]]
    enumerates_spans: ClassVar[bool] = False
    pooled: ClassVar[bool] = False
    needs_options: ClassVar[bool] = False
    gives_up: tuple[str, ...] = ()
    example_options: ClassVar[tuple[str, ...]] = ()
    comparisons: Comparisons | None = None

    def of(self, question: QuestionView) -> "AnswerType":
        """Return the type as it reads the answers of one question.

        Raises:
            ArgumentError: The question lacks what the type needs.
        """
        return self

    def shown_question(self, question: QuestionView) -> str:
        """Return the question as roles see it."""
        return question.text

    @abstractmethod
    def read(self, answer: str) -> AnswerClass | None:
        """Return the class in which an answer votes, or None if it shows nothing; a pure function of the answer."""

    @abstractmethod
    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        """Return whether an answer is right, given one or more gold answers."""

    def right(self, answer: str | None, gold: Sequence[str]) -> bool:
        """Return what `is_right` says; raise an ArgumentError if that is neither True nor False."""
        return truth(self.is_right(answer, gold), lambda: f"{self.name}.is_right({answer!r:.60}, {gold!r:.60})")

    def score(self, answer: str | None, gold: Sequence[str]) -> Score:
        """Return the scores of an answer, given one or more gold answers."""
        return Score(self.right(answer, gold), None)

    def official_score(self, answer: str | None, gold: Sequence[str]) -> Score:
        """Return the scores by the official script of the field, where that reads an answer differently."""
        return self.score(answer, gold)

    def class_of(self, answer: str | None) -> AnswerClass | None:
        """Return the class of any answer; a list or an object (`Structure`) votes by the classes of its leaves."""
        if answer is None:
            return None
        if isinstance(answer, Structure):
            return AnswerClass(
                "json:" + answer.key(lambda leaf: leaf if (of := self.class_of(leaf)) is None else of.key)
            )
        return a_class(self.read(answer), lambda: f"{self.name}.read({answer!r:.60})")

    def grouping(self, answers: Sequence[str | None]) -> Grouping:
        """Return the answers of a pool in classes: by default each answer's own class, whatever the pool."""
        return Grouping(tuple(map(self.class_of, answers)), self.class_of)

    def evidence(self, passages: Sequence[Passage], policy: Policy) -> Certifying:
        """Return the passages as they certify under a policy: by default, if the answer occurs in them as short text.

        It is not asked if a derivation certifies, or if the settings have a certificate of the user's own.
        """
        return Evidence(passages, policy)

    def examples(self) -> Sequence[str]:
        """Return answers with which the laws are tried, some of one class; empty for names of towns and numbers."""
        return ()

    # -- how a final answer is found in a text, see `eldgr_dspy.answer_types.extraction` -------------------------------

    def sentence(self, line: str) -> str:
        """Return the part of a line after "the answer is" in which the answer is."""
        return first_sentence(line)

    def stated(self, payload: str, mark: Mark) -> str:
        """Return the answer in what follows a mark; empty if there is none."""
        return payload

    def unmarked(self, text: str) -> tuple[str, Form]:
        """Return the answer of a text that marks none, and the form that says how it was guessed."""
        return text.strip(), "whole"

    def __reduce__(self) -> Any:
        from eldgr_dspy.answer_types import found_by_name

        return found_by_name(self) or super().__reduce__()

    def __deepcopy__(self, memo: Mapping[int, Any]) -> "AnswerType":
        return self  # a value; DSPy copies modules with all that they hold

    # -- what files state of the type ---------------------------------------------------------------------------------

    @property
    def name_in_files(self) -> Task:
        """The name by which pools, settings and results state the type."""
        return NAMES_IN_FILES.get(self.name, self.name)

    @property
    def is_own(self) -> bool:
        """Whether files state more of the type than its name, because the name alone does not tell what it does."""
        return not type(self).__module__.startswith("eldgr_dspy.")

    def to_json(self) -> dict[str, Any]:
        """Return what a file states of the type: its name, the hash of its source, the laws that it gives up.

        Extend it by what the type is made with, such as the name of a model.
        """
        origin = {"loaded_as": self.loaded_as} if self.loaded_as not in ("", self.name) else {}
        given_up = {"gives_up": [*self.gives_up]} if self.gives_up else {}
        return {"name": self.name, **origin, "source": source_of(type(self)), **given_up}

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


class StatedType(AnswerType):
    """A type of which finished figures say how it is shown, and whose code is not known here."""

    def __init__(self, name: Task, way: Way, scores: Sequence[str]) -> None:
        self.name, self.way, self.scores = name, way, tuple(scores)  # type: ignore[misc]

    def read(self, answer: str) -> AnswerClass | None:
        """Return the class of an answer as short text, by which tables of two runs say how many answers differ."""
        return short_class(answer)

    def is_right(self, answer: str | None, gold: Sequence[str]) -> bool:
        """Raise an ArgumentError."""
        raise ArgumentError(f"The answer type {self.name!r} must be loaded to score an answer. Give --answer NAME.")


def for_question(kind: AnswerType, question: QuestionView) -> AnswerType:
    """Return the type as it reads the answers of one question; raise an ArgumentError if `of` returns another thing."""
    result: object = kind.of(question)
    if not isinstance(result, AnswerType):
        raise ArgumentError(f"{kind.name}.of(question) must return an AnswerType; got {result!r:.60}. Return self.")
    return result


def a_class(value: object, what: Callable[[], str]) -> AnswerClass | None:
    """Return the class of an answer, or raise an ArgumentError that names what returned another thing."""
    if value is None or (isinstance(value, AnswerClass) and type(value.key) is str):
        return value
    raise ArgumentError(f"{what()} must be an AnswerClass or None, and its key text; got {value!r:.60}.")


def a_score(value: object, what: Callable[[], str]) -> Score:
    """Return the score of an answer, or raise an ArgumentError that names what returned another thing."""
    if isinstance(value, Score) and is_truth(value.em) and isinstance(value.f1, float | int | None):
        return value
    raise ArgumentError(f"{what()} must be a Score, of True or False and a number or None; got {value!r:.60}.")


def is_truth(value: object) -> bool:
    """Return whether a value is True or False, or one of numpy's, which has both under either of two names."""
    return type(value).__name__ in ("bool", "bool_")


def truth(value: object, what: Callable[[], str]) -> bool:
    """Return a truth value as Python's, or raise an ArgumentError that names what it is of."""
    if not is_truth(value):
        raise ArgumentError(f"{what()} must be True or False; got {value!r:.60}.")
    return bool(value)


def require_options(kind: AnswerType, options: Sequence[str]) -> None:
    """Raise an ArgumentError unless there are options if, and only if, the type needs them; and no two are the same."""
    if isinstance(kind, StatedType):
        return
    if kind.needs_options and len(options) < 2:
        raise ArgumentError(f"options must be two or more for the answer type {kind.name!r}; got {[*options]!r:.80}.")
    if options and not kind.needs_options:
        raise ArgumentError(f"options must be empty for the answer type {kind.name!r}; got {[*options]!r:.80}.")
    classes = [short_class(option) for option in options]
    for index, class_ in enumerate(classes):
        if class_ is None:
            raise ArgumentError(f"options[{index}] must be text that is not blank; got {options[index]!r:.80}.")
        if class_ in classes[:index]:
            same = options[classes.index(class_)]
            raise ArgumentError(f"options must differ as answers; got {same!r:.60} and {options[index]!r:.60}.")


def require_gold(gold: Sequence[str]) -> None:
    """Raise an ArgumentError unless there is a list of gold answers that is not empty."""
    if isinstance(gold, str) or not gold:
        raise ArgumentError(f"gold must be a list of one or more gold answers; got {gold!r}. Pass one such as ['18'].")
