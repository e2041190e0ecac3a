"""The accuracy of rules with recorded judges, which is shown next to their authority bounds."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Reply
from eldgr_dspy.decision import drive
from eldgr_dspy.errors import NotAskedError
from eldgr_dspy.named_judges import labelled
from eldgr_dspy.questions import Question
from eldgr_dspy.words import Role

Replies = Callable[[int, Question, Role], Reply]
"""A recording: the reply of a role to a question, given the question's place in the pool, from 0.

It may raise `NotAskedError`. A recorded judge may come with replies of the other roles."""


class Measured:
    """The accuracy of rules under recorded judges, taken question by question."""

    def __init__(self, rules: Iterable[str], judges: Mapping[str, Replies]) -> None:
        self._judges, self._n = judges, 0
        self._right = {(rule, judge): 0 for rule in rules for judge in judges}
        self._asking = set[str]()
        self._missing = set[tuple[str, str]]()

    def add(self, place: int, case: Case, correct: Callable[[str | None], bool]) -> None:
        """Take one scored question, which has this place in the pool."""
        self._n += 1
        for rule, judge in self._right:
            ask = partial(self._reply, rule, self._judges[judge], place, case)
            try:
                self._right[rule, judge] += correct(drive(case.rule(rule)(case), ask).answer)
            except NotAskedError:
                self._missing.add((rule, judge))

    def _reply(self, rule: str, judge: Replies, place: int, case: Case, role: Role) -> Reply:
        self._asking.add(rule)
        return judge(place, case.question, role)

    def figures(self) -> dict[str, float | None]:
        """Return the accuracy in percent of each rule under each judge, as `eldgr[gpt4]`.

        A rule that asks nobody has one accuracy, under its own name. None where the recording lacks a reply that the
        rule needs, and without a scored question.
        """
        return {
            labelled(rule, judge or None if rule in self._asking else None): 100.0 * right / self._n
            if self._n and (rule, judge) not in self._missing
            else None
            for (rule, judge), right in self._right.items()
        }
