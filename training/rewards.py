"""The two rewards of the paper that read nothing but a completion: outcome (3.0 R_ORM) and format (0.5 R_format).

Both are plain functions in the form that TRL's `GRPOTrainer(reward_funcs=[...])` calls: everything arrives by keyword,
one entry a completion, dataset columns included (so `remove_unused_columns` has to stay False). The weights are inside,
so `reward_weights` stays at 1. The third term of the paper's completion reward, the mean over steps, is not here, and
neither is anything that needs torch.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from eldgr_dspy.answers import score
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.extraction import extract_answer
from eldgr_dspy.words import TASKS, Task

OUTCOME_WEIGHT: Final = 3.0
FORMAT_WEIGHT: Final = 0.5

Message = Mapping[str, object]
Completion = str | Sequence[Message]
Gold = str | Sequence[str] | None

_FALLBACKS: Final = frozenset({"last_number", "whole"})


def outcome_reward(
    prompts: Sequence[object],
    completions: Sequence[Completion],
    *,
    gold: Sequence[Gold],
    task: Sequence[Task],
    **columns: object,
) -> list[float | None]:
    """Return 3.0 for each right final answer, 0.0 for each wrong or missing one, and None where the row has no gold.

    None is TRL's word for a reward that does not apply; a row that nobody can score is not a row that is wrong.

    Args:
        prompts: One a completion; not read.
        completions: Texts, or conversations of which the assistant's messages alone are read.
        gold: The column of right answers: one string, several accepted ones, or None.
        task: The column of tasks, `retrieval` (exact match) or `arithmetic` (numeric equality).
        columns: Whatever else the trainer passes; not read.

    Raises:
        ArgumentError: A task is not one of the two, or a message's content is not text.
        ValueError: The columns differ in length.

    Source: 3.0 R_ORM of the paper's completion reward.
    """
    rows = zip(completions, gold, task, strict=True)
    return [_outcome(_assistant_text(completion), answers, _task(named)) for completion, answers, named in rows]


def format_reward(
    prompts: Sequence[object], completions: Sequence[Completion], *, task: Sequence[Task], **columns: object
) -> list[float | None]:
    """Return 0.5 for each completion that marks its final answer (`#### x`, `A: x`, boxed, a phrase), otherwise 0.0.

    The paper does not define its format; ours is a marker that `eldgr_dspy.extraction` knows. Right or wrong is not
    asked, so no gold is needed and no row is undefined. Arguments and errors are those of `outcome_reward`.

    Source: 0.5 R_format of the paper's completion reward; what counts as the format is ours.
    """
    rows = zip(completions, task, strict=True)
    return [FORMAT_WEIGHT * _is_marked(_assistant_text(completion), _task(named)) for completion, named in rows]


def _outcome(text: str, gold: Gold, task: Task) -> float | None:
    accepted = (gold,) if isinstance(gold, str) else tuple(gold or ())
    if not accepted:
        return None
    found = extract_answer(text, task)
    return OUTCOME_WEIGHT * score(found.answer if found else None, accepted, task).em


def _is_marked(text: str, task: Task) -> bool:
    found = extract_answer(text, task)
    return found is not None and found.form not in _FALLBACKS


def _assistant_text(completion: Completion) -> str:
    """Return what the model itself wrote: with tools, a completion also holds messages that it did not."""
    if isinstance(completion, str):
        return completion
    return "\n".join(_content(message) for message in completion if message.get("role") == "assistant")


def _content(message: Message) -> str:
    content = message.get("content")
    if content is None:  # a message that only calls a tool
        return ""
    if isinstance(content, str):
        return content
    raise ArgumentError(
        f"completions: a message's content is {content!r}, but text was expected; "
        "join the text parts of the message before it is rewarded."
    )


def _task(named: str) -> Task:
    for task in TASKS:
        if named == task:
            return task
    raise ArgumentError(f"task={named!r} is not a task; give 'retrieval' or 'arithmetic' in the dataset's task column.")
