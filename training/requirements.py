"""Check a run before it starts: the columns and passages that a reward reads, and the chat template."""

from collections.abc import Mapping, Sequence, Sized
from typing import Any

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.calls import Call, missing_column
from eldgr_dspy.training.completions import outputs_of
from eldgr_dspy.training.rewards import Reward


def require_inputs(dataset: Any, rewards: Sequence[Reward], tokenizer: Any, settings: Any = None) -> None:
    """Raise unless `require_columns` and `require_template` pass.

    Args:
        dataset: As in `require_columns`.
        rewards: The rewards of this package.
        tokenizer: Of transformers.
        settings: The `GRPOConfig`, if there is one.

    Raises:
        ArgumentError: In one sentence: what is missing, and how to fix it.
    """
    require_columns(dataset, rewards, settings)
    require_template(dataset, tokenizer)


def require_columns(dataset: Any, rewards: Sequence[Reward], settings: Any = None) -> None:
    """Raise unless the dataset has the columns and passages that the rewards read; this needs no model.

    A row may lack passages. If all lack them, a reward that reads passages would not be the one that was asked for.

    Args:
        dataset: Of Hugging Face's `datasets`, with the column `prompt`; one that is streamed is judged by its first
            row, and the passages and gold answers of the others are not checked.
        rewards: The rewards of this package.
        settings: The `GRPOConfig`, if there is one.

    Raises:
        ArgumentError: In one sentence: what is missing, and how to fix it.
    """
    if getattr(settings, "remove_unused_columns", False):
        raise ArgumentError(
            "remove_unused_columns=True drops the columns that rewards read; leave it at False in the GRPOConfig."
        )
    first: Mapping[str, Any] = next(iter(dataset), {})
    if not first:
        raise ArgumentError("The dataset must have at least one row; give one with a column 'prompt'.")
    if "prompt" not in first:
        raise ArgumentError(
            f"The dataset must have the column 'prompt'; got {', '.join(map(repr, first))}. Add one that holds text, "
            "or messages with role and content."
        )
    for reward in rewards:
        for name in reward.needs:
            if name not in first:
                raise ArgumentError(missing_column(reward.__name__, name))
        if "evidence" in reward.needs and isinstance(dataset, Sized):
            _require_passages(dataset, reward)
        if "gold" in reward.needs:
            _require_gold(dataset if isinstance(dataset, Sized) else [first], reward)


def require_template(dataset: Any, tokenizer: Any) -> None:
    """Raise unless the tokenizer can render the dataset's prompts.

    Args:
        dataset: With the column `prompt`; its first row is read.
        tokenizer: Of transformers.

    Raises:
        ArgumentError: The prompts are messages, and the tokenizer has no chat template.
    """
    if isinstance(next(iter(dataset))["prompt"], str) or getattr(tokenizer, "chat_template", None):
        return
    name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
    raise ArgumentError(
        f"The column 'prompt' holds messages, but the tokenizer {name!r} has no chat template to render them; set "
        "tokenizer.chat_template, train from an instruction-tuned model, or give prompts as text."
    )


def _require_passages(dataset: Any, reward: Reward) -> None:
    wanted = False
    for row in dataset:
        if reward.wants_passages(row.get("task")):
            if row["evidence"]:
                return
            wanted = True
    if wanted:
        raise ArgumentError(
            f"The reward {reward.__name__!r} reads passages, but no row of the dataset has any in the column "
            "'evidence'; add them as strings or as {title, text}, or give all rows one corpus, by the field corpus of "
            "a recipe or by StepReward(NLIScorer(nli, retriever=...), evidence=False)."
        )


def _require_gold(dataset: Any, reward: Reward) -> None:
    """Let a reward check the columns of all rows; of a dataset on disk, only those that it reads are loaded."""
    names = [name for name in reward.needs if name in ("gold", "task")]
    rows = list(dataset.select_columns(names) if hasattr(dataset, "select_columns") else dataset)
    columns = {name: [row.get(name) for row in rows] for name in names}
    reward.check(Call(reward.__name__, (), outputs_of([""] * len(rows)), columns))
