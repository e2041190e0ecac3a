"""A question of the miniature with its worked answer: the steps to it, and what it is asked over."""

from dataclasses import dataclass
from typing import Any, Final

from eldgr_dspy.certificates import Passage
from eldgr_dspy.training.questions import prompt_of
from eldgr_dspy.words import Task

_STATED: Final[dict[Task, str]] = {"retrieval": "A: {}", "arithmetic": "#### {}"}


@dataclass(frozen=True, slots=True)
class Solved:
    """A question, worked out.

    Attributes:
        question: Its text.
        task: Which of the two.
        kind: What questions of its form are called.
        steps: The reasoning, a line each.
        answer: The right answer.
        evidence: The passages that it is asked over; none in arithmetic.
    """

    question: str
    task: Task
    kind: str
    steps: tuple[str, ...]
    answer: str
    evidence: tuple[Passage, ...] = ()

    @property
    def messages(self) -> list[dict[str, str]]:
        """What a policy is asked."""
        return prompt_of(self.question, self.task)

    @property
    def reply(self) -> str:
        """What a policy should reply: the steps, then the answer in the form that is asked for."""
        return "\n".join([*self.steps, stated(self.task, self.answer)])

    def row(self, id: str) -> dict[str, Any]:
        """Return the row to train on or to sample from, as `training_rows` yields them."""
        return {
            "id": id,
            "prompt": self.messages,
            "question": self.question,
            "task": self.task,
            "gold": [self.answer],
            "evidence": [{"title": one.title, "text": one.text} for one in self.evidence] or None,
        }


def stated(task: Task, answer: str) -> str:
    """Return the line that states an answer."""
    return _STATED[task].format(answer)
