"""Majority voting over answer classes: which candidates vote together, which class wins, whether it was a tie."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType, Grouping, a_class
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.matching.text_keys import AnswerClass
from eldgr_dspy.words import Task


@dataclass(frozen=True, slots=True)
class Vote:
    """The outcome of a vote.

    Attributes:
        classes: The class of each candidate, in pool order, or None for one that does not vote.
        winner: The winning class, None if no candidate votes. In a tie, that of the earliest voter.
        tie: Whether several classes had as many votes as the winner.
        notes: Candidates without an answer or that refuse, and answers of a doubtful class, each a phrase.
    """

    classes: tuple[str | None, ...]
    winner: str | None
    tie: bool
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[str, int]:
        """How many candidates vote for each class, in the order of their earliest voters."""
        return _counts(self.classes)

    @property
    def n_classes(self) -> int:
        """How many distinct answers were given."""
        return len(set(self.classes) - {None})


def majority(answers: Sequence[str | None], answer: Task | AnswerType) -> Vote:
    """Return the vote of `answers`, one a candidate, None where a candidate has none.

    `answer` is their type, or its name. Answers of one class vote together.

    Source: the paper's consensus m; ties to the earliest candidate and the classes are ours (`method`, hazards 1-27).
    """
    return group(answers, answer)[0]


def group(
    answers: Sequence[str | None], answer: Task | AnswerType, refuses: Callable[[str | None], bool] | None = None
) -> tuple[Vote, Grouping]:
    """Return the vote as `majority` does, without answers that refuse, and the grouping: the class of any answer."""
    refusals = [*filter(refuses, answers)] if refuses else []
    silent = frozenset(refusals)
    kind = answer_type(answer)
    grouping = kind.grouping([None if answer in silent else answer for answer in answers])
    if kind.is_own:
        grouping = _check(grouping, f"{kind.name}.grouping(answers)", len(answers))
    classes = tuple(class_.key if class_ else None for class_ in grouping.classes)
    votes = _counts(classes).most_common()  # of classes with as many votes, that of the earliest voter is first
    tie = len(votes) > 1 and votes[0][1] == votes[1][1]
    notes = tuple(_notes(answers, grouping.classes, len(refusals)))
    return Vote(classes, votes[0][0] if votes else None, tie, notes), grouping


def _check(grouping: object, what: str, n: int) -> Grouping:
    classes, class_of = getattr(grouping, "classes", None), getattr(grouping, "class_of", None)
    if not (isinstance(classes, Sequence) and callable(class_of)):
        raise ArgumentError(f"{what} must return a Grouping of a tuple and a function; got {grouping!r:.80}.")
    if len(classes) != n:
        raise ArgumentError(f"{what} must return one class or None per answer; got {len(classes)} for {n} answers.")
    return Grouping(
        tuple(a_class(class_, lambda: f"Each of the classes of {what}") for class_ in classes),
        lambda answer: a_class(class_of(answer), lambda: f"class_of({answer!r:.60}) of {what}"),
    )


def _counts(classes: Sequence[str | None]) -> Counter[str]:
    return Counter(key for key in classes if key is not None)


def _notes(answers: Sequence[str | None], classes: Sequence[AnswerClass | None], refusing: int) -> Iterator[str]:
    missing = classes.count(None) - refusing
    if missing:
        yield f"{missing} of {len(classes)} candidates have no answer"
    if refusing:
        yield f"{refusing} of {len(classes)} candidates refuse and do not vote"
    notes = {answers[index]: class_.note for index, class_ in enumerate(classes) if class_ is not None and class_.note}
    yield from (f"{answer!r:.60}: {note}" for answer, note in notes.items())
