"""Questions for training and sampling: GSM8K, HotpotQA or your own rows, each with its prompt.

The trainer and `sample_pool` use the same rows, so that a policy is asked as it was trained.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.programs.pools.questions import Evidence, read_questions
from eldgr_dspy.training.gold import read_gold
from eldgr_dspy.words import Task

ASKED: Final[dict[Task, str]] = {
    "retrieval": "Reason in short sentences, one a line. Then write the answer, in a few words, on a line of its own: "
    "A: answer",
    "arithmetic": "Reason in short steps, one a line. Then write the answer, a number, on a line of its own: "
    "#### number",
}
"""The request below a question: the forms that `format` rewards. The paper prints no prompt; these are ours."""


def prompt_of(question: str, task: Task) -> list[dict[str, str]]:
    """Return the prompt of a question as messages: the question alone, without its evidence."""
    return [{"role": "user", "content": f"{question}\n\n{ASKED[answer_type(task).name]}"}]


def training_rows(path: str | Path, task: Task, evidence: Evidence = "paragraphs") -> Iterator[dict[str, Any]]:
    """Yield the questions of a file as rows with `id`, `prompt`, `question`, `task`, `gold` and `evidence`.

    Args:
        path: JSON lines or Parquet: rows of GSM8K or HotpotQA as `datasets` has them, or with `gold` and `evidence`.
        task: Of all of them.
        evidence: Which evidence of a HotpotQA row is used; see `read_questions`. GSM8K has none: `evidence` is null.

    Raises:
        ArgumentError: The task is not known, or a row has gold that is not an answer of the task.
        PoolError: The file cannot be read, naming line and field.
    """
    task = answer_type(task).name
    for number, entry in enumerate(read_questions(Path(path), evidence), start=1):
        question = entry.question or ""
        yield {
            "id": entry.id or f"q{number}",
            "prompt": prompt_of(question, task),
            "question": question,
            "task": task,
            "gold": list(read_gold(f"{entry.where}: gold", entry.gold, task)),
            "evidence": [{"title": passage.title, "text": passage.text} for passage in entry.evidence] or None,
        }
