"""A question of the experiment with its worked answer: the true steps to it, its evidence, and its world's facts."""

from dataclasses import dataclass
from typing import Any, Final

from eldgr_dspy.certificates import Passage
from eldgr_dspy.words import Task

_ANSWER_LINES: Final[dict[Task, str]] = {"retrieval": "A: {}", "arithmetic": "#### {}"}


@dataclass(frozen=True, slots=True)
class Exercise:
    """A question, worked out.

    Attributes:
        id: Its name among all questions of an experiment.
        question: Its text.
        task: Which of the two.
        kind: The name of questions of its form; an arithmetic one's operators.
        steps: The reasoning, a line each.
        answer: The only right answer.
        alias: Whether the evidence lacks the right answer, because it uses another name for it.
        evidence: Its passages; none in arithmetic.
        truths: Every statement that is true in its world; empty in arithmetic, where an equation shows its own truth.
    """

    id: str
    question: str
    task: Task
    kind: str
    steps: tuple[str, ...]
    answer: str
    alias: bool = False
    evidence: tuple[Passage, ...] = ()
    truths: frozenset[str] = frozenset()

    @property
    def messages(self) -> list[dict[str, str]]:
        """The prompt for a policy: the passages, then the question."""
        lines = [*(passage.text for passage in self.evidence), self.question]
        return [{"role": "user", "content": "\n".join(lines)}]

    @property
    def reply(self) -> str:
        """The right reply that shows all steps, then the answer in the requested form."""
        return self.showing(len(self.steps))

    def showing(self, steps: int) -> str:
        """Return a right reply that shows the first of its steps, as many as given."""
        return "\n".join([*self.steps[:steps], _ANSWER_LINES[self.task].format(self.answer)])

    def row(self) -> dict[str, Any]:
        """Return the row to train on or to sample from, as `training_rows` yields them."""
        return {
            "id": self.id,
            "prompt": self.messages,
            "question": self.question,
            "task": self.task,
            "gold": [self.answer],
            "evidence": [{"title": passage.title, "text": passage.text} for passage in self.evidence] or None,
        }
