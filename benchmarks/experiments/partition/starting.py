"""The start of all policies of a seed: taught right replies alone, and stopped while most of its answers are wrong.

The paper starts from an instruction-tuned model; this replaces one. In a first phase the replies show all their steps.
In a second one they show as much as people do: of five replies two give the answer alone, two show one step, and one
shows more. All are right. So the start can work a question out, and mostly does not: what it lacks is what a reward
can teach. It is stopped once its answers are right in the range, in the mean of both tasks.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from benchmarks.experiments.partition.exercises import Exercise
from benchmarks.experiments.partition.sizes import Size
from benchmarks.experiments.partition.small_policy import example, loss_of, new_policy
from benchmarks.experiments.partition.task import Questions
from benchmarks.experiments.partition.tokenizer import byte_tokenizer
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.words import TASKS

RANGE: Final = (20.0, 40.0)
"""The exact match of a start, in percent, the mean of both tasks on questions for validation."""

_WARMING: Final = 50  # batches
_SAMPLE: Final = 3000  # questions of a task whose text makes the tokenizer


def teach_start(folder: Path, questions: Questions, size: Size, seed: int) -> dict[str, Any]:
    """Teach a policy and save it with its tokenizer.

    Returns:
        Its number of `parameters`, and its `exact_match` by task: after the first phase, at batch 0, and at each look
        during the second.
    """
    texts = [
        text
        for task in TASKS
        for exercise in islice(questions[task, "taught"], _SAMPLE)
        for text in (exercise.messages[0]["content"], exercise.reply)
    ]
    tokenizer = byte_tokenizer(texts)
    model = new_policy(tokenizer, size.shape, seed).to(size.device)
    looks = list(_teach(model, tokenizer, questions, size, seed))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {"parameters": model.num_parameters(), "exact_match": looks}


def require_in_range(looks: Sequence[Mapping[str, float]]) -> None:
    """Raise an `ArgumentError` unless the last look at a start is in the range."""
    low, high = RANGE
    if not _is_in_range(looks[-1]):
        raise ArgumentError(
            f"The start must answer {low:.0f} to {high:.0f} % of the questions for validation; it answers "
            f"{_mean(looks[-1]):.1f} % after {looks[-1]['batches']:.0f} batches. Change the size's `Warm`."
        )


def _teach(model: Any, tokenizer: Any, questions: Questions, size: Size, seed: int) -> Iterator[dict[str, float]]:
    """Teach a model in both phases, and yield its exact match after the first and during the second."""
    import torch

    warm, rng = size.warm, random.Random(f"batches {seed}")
    optimizer = torch.optim.AdamW(model.parameters(), lr=warm.worked[1], weight_decay=0.01)

    def learn(rate: float, steps_of: Callable[[Exercise], int]) -> None:
        batch = [
            example(tokenizer, exercise.messages, exercise.showing(steps_of(exercise)))
            for task, count in zip(TASKS, warm.batch, strict=True)
            for exercise in rng.sample(questions[task, "taught"], count)
        ]
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss_of(model, batch, tokenizer.pad_token_id).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    def look(batch: int) -> dict[str, float]:
        right = {task: _exact_match(model, tokenizer, questions[task, "validation"], size.reply) for task in TASKS}
        return {"batches": batch, **right}

    batches, highest = warm.worked
    for batch in range(batches):
        learn(highest * min(1.0, (batch + 1) / _WARMING) * (1 - batch / batches), lambda exercise: len(exercise.steps))
    yield look(0)
    least, most, rate = warm.varied
    for batch in range(1, most + 1):
        learn(rate, lambda exercise: _steps_to_show(len(exercise.steps), rng))
        if batch % warm.every == 0:
            yield (result := look(batch))
            if batch >= least and _is_in_range(result):
                return


def _steps_to_show(steps: int, rng: random.Random) -> int:
    """Return how many of its steps a reply of the second phase shows."""
    kind = rng.randrange(5)
    return kind // 2 if kind < 4 else rng.randint(min(2, steps), steps)


def _is_in_range(look: Mapping[str, float]) -> bool:
    return RANGE[0] <= _mean(look) <= RANGE[1]


def _mean(look: Mapping[str, float]) -> float:
    return sum(look[task] for task in TASKS) / len(TASKS)


def _exact_match(model: Any, tokenizer: Any, questions: Sequence[Exercise], reply: int) -> float:
    """Return the share of greedy replies whose last line is right, in percent."""
    import torch

    prompts = [
        tokenizer.apply_chat_template(one.messages, tokenize=False, add_generation_prompt=True) for one in questions
    ]
    inputs = tokenizer(prompts, padding=True, padding_side="left", return_tensors="pt").to(model.device)
    model.eval()
    with torch.no_grad():
        tokens = model.generate(**inputs, max_new_tokens=reply, do_sample=False)[:, inputs.input_ids.shape[1] :]
    model.train()
    replies = tokenizer.batch_decode(tokens, skip_special_tokens=True)
    right: list[bool] = [
        text.split("\n")[-1] == one.reply.split("\n")[-1] for text, one in zip(replies, questions, strict=True)
    ]
    return 100.0 * sum(right) / len(right)
