"""One small world to train in: two questions, what may be said of them, and the trainer's settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.case_tables import tables_of

# TRL and PEFT use names of transformers that it is about to drop.
trains = pytest.mark.filterwarnings("ignore:.* is deprecated and will be removed in v6:FutureWarning")

SETTINGS: dict[str, Any] = {
    "lr_scheduler_type": "constant", "logging_steps": 1, "save_strategy": "no", "report_to": [], "use_cpu": True,
    "bf16": False, "disable_tqdm": True, "seed": 1,
}  # fmt: skip
"""Of any trainer of TRL: a few steps on a processor, and nothing written but what is asked for."""

SMALL = str(Path(__file__).parent / "recipes" / "small.yaml")
"""A recipe of four steps of RA-MSD on a processor."""

ROWS: list[dict[str, Any]] = tables_of("training")["rows"]
REPLIES: dict[str, list[str]] = tables_of("training")["replies"]
"""What may be said of each question: a certified answer, an uncertified one, and one without the form."""
GOLD = {row["question"]: row["gold"][0] for row in ROWS}
EVIDENCE = {row["question"]: row["evidence"] for row in ROWS}


def policy(seed: int = 0) -> tuple[Any, Any]:
    """A model that has seen the replies for a moment, with its tokenizer."""
    from tests.tiny_policy import tiny_policy, tiny_tokenizer, warm

    exchanges = [(question, reply) for question, replies in REPLIES.items() for reply in replies]
    tokenizer = tiny_tokenizer([text for exchange in exchanges for text in exchange])
    return warm(tiny_policy(tokenizer, seed=seed), tokenizer, exchanges), tokenizer


def trainer(rewards: Sequence[Any], folder: Path, *, peft_config: Any = None, **settings: Any) -> Any:
    """A trainer on a warm policy: each optimizer step samples both questions, four completions each."""
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    model, tokenizer = policy()
    arguments = {
        "per_device_train_batch_size": 8, "num_generations": 4, "max_completion_length": 18, "max_steps": 3,
        "learning_rate": 3e-3, **SETTINGS,
    }  # fmt: skip
    result: Any = GRPOTrainer(
        model=model, reward_funcs=list(rewards), args=GRPOConfig(str(folder), **{**arguments, **settings}),
        train_dataset=Dataset.from_list(ROWS), processing_class=tokenizer, peft_config=peft_config,
    )  # fmt: skip
    result.remove_callback(PrinterCallback)
    return result


def completions(folder: Path) -> list[dict[str, Any]]:
    """The tables of completions that a trainer wrote, a row a completion, in order."""
    import pyarrow.parquet as pq

    tables = map(pq.read_table, sorted((folder / "completions").glob("*.parquet")))
    return [row for table in tables for row in table.to_pylist()]
