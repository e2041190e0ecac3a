"""Gold answers as a task reads them: a right answer that no answer could match is never scored as wrong in silence."""

from collections.abc import Sequence
from functools import lru_cache

from eldgr_dspy.answers import score
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.extraction import extract_answer
from eldgr_dspy.training.calls import is_marked
from eldgr_dspy.words import Task


def read_gold(where: str, accepted: Sequence[str], task: Task) -> tuple[str, ...]:
    """Return the accepted answers as answers of a task.

    A text that is not one, but states one, is read for it as a completion is: the 72 of a whole solution of GSM8K,
    which ends in "#### 72".

    Args:
        where: What the texts are, for the error.
        accepted: The accepted answers; empty for a row without gold.
        task: The answer type.

    Raises:
        ArgumentError: No text of a row with gold is an answer of the task, or states one.
    """
    found = [_read(text, task) for text in accepted]
    readable = tuple(answer for answer in found if answer is not None)
    if accepted and not readable:
        shown = accepted[0] if len(accepted) == 1 else [*accepted]
        raise ArgumentError(
            f"{where} must be an answer of the type {task!r}, or a text that states one, as '#### 72'; got "
            f"{shown!r:.80}. Fix the row of the dataset."
        )
    return readable


@lru_cache(maxsize=1 << 12)
def _read(text: str, task: Task) -> str | None:
    if _is_answer(text, task):
        return text
    stated = extract_answer(text, task)
    return stated.answer if stated is not None and is_marked(stated) and _is_answer(stated.answer, task) else None


def _is_answer(text: str, task: Task) -> bool:
    """Return whether a text is right where it is the gold answer itself; a word is not where a number is expected."""
    return bool(text.strip()) and score(text, (text,), task).em
