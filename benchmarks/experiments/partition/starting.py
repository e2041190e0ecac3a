"""The start of all policies of a seed: taught right replies alone, and stopped while most of its answers are wrong.

The paper starts from an instruction-tuned model; this replaces one. A task that has reached the range is shown rarely
from then on, so that both tasks end in it.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from benchmarks.experiments.partition.policy import Example, example, loss_of, new_policy
from benchmarks.experiments.partition.sizes import Size
from benchmarks.experiments.partition.solved import Solved
from benchmarks.experiments.partition.task import Questions
from benchmarks.experiments.partition.tokenizer import byte_tokenizer
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.words import TASKS, Task

RANGE: Final = (20.0, 40.0)
"""The exact match of a start, in percent, in each task on questions for validation."""

_WARMING: Final = 100  # batches
_SPELLED: Final = 3000  # questions of a task whose text makes the tokenizer


def teach_start(folder: Path, questions: Questions, size: Size, seed: int) -> dict[str, Any]:
    """Teach a policy and save it with its tokenizer.

    Args:
        folder: Where it is saved.
        questions: Of the seed.
        size: Of the experiment.
        seed: Of weights and batches.

    Returns:
        Its number of `parameters`, and its `exact_match` by task after each look at it.
    """
    texts = [
        text
        for task in TASKS
        for solved in islice(questions[task, "taught"], _SPELLED)
        for text in (solved.messages[0]["content"], solved.reply)
    ]
    tokenizer = byte_tokenizer(texts)
    model = new_policy(tokenizer, size.shape, seed).to(size.device)
    looks = list(_taught(model, tokenizer, questions, size, seed))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {"parameters": model.num_parameters(), "exact_match": looks}


def require_in_range(looks: Sequence[Mapping[str, float]], most: int) -> None:
    """Raise an `ArgumentError` unless the last look at a start has both tasks in the range."""
    low, high = RANGE
    for task in TASKS:
        if not low <= looks[-1][task] <= high:
            raise ArgumentError(
                f"The start must answer {low:.0f} to {high:.0f} % of the {task} questions for validation; it answers "
                f"{looks[-1][task]:.1f} % after {looks[-1]['batches']:.0f} of {most} batches. Change the size's `Warm`."
            )


def _taught(model: Any, tokenizer: Any, questions: Questions, size: Size, seed: int) -> Iterator[dict[str, float]]:
    """Teach a model until both tasks have reached the range, and yield its exact match every so many batches."""
    import torch

    warm = size.warm
    optimizer = torch.optim.AdamW(model.parameters(), lr=warm.rate, weight_decay=0.01)
    examples = {
        task: [example(tokenizer, solved.messages, solved.reply) for solved in questions[task, "taught"]]
        for task in TASKS
    }
    counts: dict[Task, int] = dict.fromkeys(TASKS, warm.batch)
    drawn = random.Random(f"batches {seed}")
    for batch in range(1, warm.most + 1):
        for group in optimizer.param_groups:
            group["lr"] = warm.rate * min(1.0, batch / _WARMING)
        shown: list[Example] = [pair for task in TASKS for pair in drawn.sample(examples[task], counts[task])]
        loss = loss_of(model, shown, tokenizer.pad_token_id)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if batch % warm.every == 0:
            right = {task: _exact_match(model, tokenizer, questions[task, "validation"], size.reply) for task in TASKS}
            yield {"batches": batch, "loss": loss.item(), **right}
            reached = {task: right[task] >= warm.reached for task in TASKS}
            if all(reached.values()):
                return
            counts = {task: warm.kept if reached[task] else warm.batch for task in TASKS}


def _exact_match(model: Any, tokenizer: Any, asked: Sequence[Solved], reply: int) -> float:
    """Return the share of greedy replies whose last line is right, in percent."""
    import torch

    prompts = [
        tokenizer.apply_chat_template(solved.messages, tokenize=False, add_generation_prompt=True) for solved in asked
    ]
    read = tokenizer(prompts, padding=True, padding_side="left", return_tensors="pt").to(model.device)
    model.eval()
    with torch.no_grad():
        written = model.generate(**read, max_new_tokens=reply, do_sample=False)[:, read.input_ids.shape[1] :]
    model.train()
    replies = tokenizer.batch_decode(written, skip_special_tokens=True)
    right: list[bool] = [
        said.split("\n")[-1] == solved.reply.split("\n")[-1] for said, solved in zip(replies, asked, strict=True)
    ]
    return 100.0 * sum(right) / len(right)
