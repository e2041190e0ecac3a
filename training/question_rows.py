"""Questions for training and sampling: GSM8K, HotpotQA or your own rows, each with its prompt.

The trainer and `sample_pool` use the same rows, so that a policy is asked as it was trained.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.programs.pools.prompts import prompt_of
from eldgr_dspy.programs.pools.question_files import Evidence, read_questions
from eldgr_dspy.training.outcome import read_gold
from eldgr_dspy.training.reward_calls import WITHOUT_OPTIONS
from eldgr_dspy.words import Task


def training_rows(
    path: str | Path, answer: Task | AnswerType, evidence: Evidence = "paragraphs"
) -> Iterator[dict[str, Any]]:
    """Yield the questions of a file as rows with `id`, `prompt`, `question`, `task`, `gold` and `evidence`.

    Args:
        path: JSON lines or Parquet: rows of GSM8K or HotpotQA as `datasets` has them, or with `gold` and `evidence`.
        answer: The answer type of all of them: one without options, because no column holds options.
        evidence: Which evidence of a HotpotQA row is used; see `read_questions`. GSM8K has none: `evidence` is null.

    Raises:
        ArgumentError: The type is not known, or a row has gold that is not an answer of it.
        PoolError: The file cannot be read, naming line and field.
    """
    task = answer_type(answer, "answer", WITHOUT_OPTIONS).name_in_files
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
