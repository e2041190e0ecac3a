"""What a run lacks, said before it starts: columns that a reward reads, and the tokenizer's chat template."""

from collections.abc import Mapping, Sequence
from typing import Any

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.training.calls import missing_column
from eldgr_dspy.training.rewards import Reward


def require_inputs(dataset: Any, rewards: Sequence[Reward], tokenizer: Any, settings: Any = None) -> None:
    """Raise unless the dataset has the columns that the rewards read, and the tokenizer can render its prompts.

    Args:
        dataset: Of Hugging Face's `datasets`, with the column `prompt`; one that is streamed and does not know its
            columns is judged by its first row.
        rewards: The rewards of this package.
        tokenizer: Of transformers.
        settings: The `GRPOConfig`, where there is one.

    Raises:
        ArgumentError: In one sentence: what is missing, and how to mend it.
    """
    if getattr(settings, "remove_unused_columns", False):
        raise ArgumentError(
            "remove_unused_columns=True drops the columns that rewards read; leave it at False in the GRPOConfig."
        )
    first: Mapping[str, Any] = next(iter(dataset), {})
    if not first:
        raise ArgumentError("The dataset has no row; give one with a column 'prompt'.")
    if "prompt" not in first:
        raise ArgumentError(
            f"The dataset has no column 'prompt', but {', '.join(map(repr, first))}; add one that holds text, or "
            "messages with role and content."
        )
    for reward in rewards:
        for name in reward.needs:
            if name not in first:
                raise ArgumentError(missing_column(reward.__name__, name))
    _require_template(first["prompt"], tokenizer)


def _require_template(prompt: object, tokenizer: Any) -> None:
    if isinstance(prompt, str) or getattr(tokenizer, "chat_template", None):
        return
    name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
    raise ArgumentError(
        f"The column 'prompt' holds messages, and the tokenizer {name!r} has no chat template to render them; set "
        "tokenizer.chat_template, train from an instruction-tuned model, or give prompts as text."
    )
