"""Majority voting over answer classes: which candidates vote together, which class wins, whether that was a tie."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eldgr_dspy.answers import AnswerClass, answer_class
from eldgr_dspy.words import Task


@dataclass(frozen=True, slots=True)
class Vote:
    """The outcome of a vote.

    Attributes:
        classes: The class of each candidate, in pool order; None for one that has no answer and does not vote.
        winner: The winning class, None where nobody votes; of several with as many votes, that of the earliest voter.
        tie: Whether several classes had as many votes as the winner.
        notes: Candidates without an answer, and answers whose class could not be told for certain, each a phrase.
    """

    classes: tuple[str | None, ...]
    winner: str | None
    tie: bool
    notes: tuple[str, ...] = ()

    @property
    def n_classes(self) -> int:
        """How many distinct answers were given."""
        return len(set(self.classes) - {None})


def majority(answers: Sequence[str | None], task: Task) -> Vote:
    """Return the vote of `answers`, one a candidate, None where a candidate has none.

    Source: the paper's consensus m; ties to the earliest candidate and the classes are ours (`method`, hazards 1-27).
    """
    found = [answer_class(answer, task) for answer in answers]
    classes = tuple(one.key if one else None for one in found)
    notes = tuple(_notes(answers, found))
    votes = Counter(key for key in classes if key is not None)
    if not votes:
        return Vote(classes, None, tie=False, notes=notes)
    most = max(votes.values())
    leaders = [key for key, n in votes.items() if n == most]  # in order of their earliest voter
    return Vote(classes, leaders[0], tie=len(leaders) > 1, notes=notes)


def _notes(answers: Sequence[str | None], found: Sequence[AnswerClass | None]) -> Iterator[str]:
    missing = sum(1 for one in found if one is None)
    if missing:
        yield f"{missing} of {len(found)} candidates have no answer"
    noted = {answers[index]: one.note for index, one in enumerate(found) if one is not None and one.note}
    yield from (f"{answer!r:.60}: {note}" for answer, note in noted.items())
