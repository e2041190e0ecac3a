"""The prompts of questions, as a policy is trained, sampled and shown preferences."""

from collections.abc import Sequence
from typing import Final

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.certificates import Passage
from eldgr_dspy.rule.consultations import show_passage
from eldgr_dspy.words import Task

REQUESTS: Final[dict[Task, str]] = {
    "short": "Reason in short sentences, one a line. Then write the answer, in a few words, on a line of its own: "
    "A: answer",
    "number": "Reason in short steps, one a line. Then write the answer, a number, on a line of its own: #### number",
}
"""The request below a question: the forms that `format` rewards. The paper prints no prompt. These are ours."""


def prompt_of(
    question: str, answer: Task | AnswerType, evidence: Sequence[Passage] = (), ask: str | None = None
) -> list[dict[str, str]]:
    """Return the prompt of a question as messages. By default the question and the request, without evidence.

    Args:
        question: Its text. answer: Its answer type, or its name. evidence: Passages to show above the question.
        ask: The request below the question: empty for none; None for that of the type in `REQUESTS`; others have none.
    """
    request = REQUESTS.get(answer_type(answer).name, "") if ask is None else ask
    parts = [*(show_passage(passage.title, passage.text) for passage in evidence), question, request]
    return [{"role": "user", "content": "\n\n".join(part for part in parts if part)}]
