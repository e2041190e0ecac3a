"""A question of the miniature with its worked answer: the steps to it, and its evidence."""

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
        kind: The name of questions of its form.
        steps: The reasoning, a line each.
        answer: The right answer.
        evidence: Its passages; none in arithmetic.
    """

    question: str
    task: Task
    kind: str
    steps: tuple[str, ...]
    answer: str
    evidence: tuple[Passage, ...] = ()

    @property
    def messages(self) -> list[dict[str, str]]:
        """The prompt for a policy."""
        return prompt_of(self.question, self.task)

    @property
    def reply(self) -> str:
        """The right reply: the steps, then the answer in the requested form."""
        return "\n".join([*self.steps, stated(self.task, self.answer)])

    def row(self, id: str) -> dict[str, Any]:
        """Return the row to train on or to sample from, as `training_rows` yields them."""
        return {
            "id": id,
            "prompt": self.messages,
            "question": self.question,
            "task": self.task,
            "gold": [self.answer],
            "evidence": [{"title": passage.title, "text": passage.text} for passage in self.evidence] or None,
        }


def stated(task: Task, answer: str) -> str:
    """Return the line that states an answer."""
    return _STATED[task].format(answer)
