"""The supervised start of a miniature: a model is shown replies to questions until it writes like them.

A plain loop of torch: the paper starts from an instruction-tuned model, and this replaces one.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from eldgr_dspy.training.miniature.habits import HABITS, shown_reply
from eldgr_dspy.training.miniature.policy import Example, example, learn, tiny_qwen2
from eldgr_dspy.training.miniature.solved import Solved
from eldgr_dspy.training.miniature.tokenizer import byte_tokenizer
from eldgr_dspy.words import Task

HIDDEN: Final = 64
RATE: Final = 5e-3
_WARMING: Final = 50
_END: Final = 0.1  # of the rate, to which it falls linearly


def warm_start(folder: Path, taught: Sequence[Solved], steps: int, batch: Mapping[Task, int], seed: int) -> float:
    """Teach a model this many batches, save it with its tokenizer, and return the last loss.

    Args:
        folder: Where it is saved.
        taught: The questions.
        steps: Batches.
        batch: Examples of each task in one of them.
        seed: Of weights and batches.
    """
    import torch

    tokenizer = byte_tokenizer(
        [text for solved in taught for text in (solved.messages[0]["content"], solved.reply, _unmarked(solved))]
    )
    model = tiny_qwen2(tokenizer, seed=seed, hidden=HIDDEN, inner=4 * HIDDEN, spread=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: _rate(at, steps))
    loss = 0.0
    for shown in islice(batches(tokenizer, taught, batch, seed), steps):
        loss = learn(model, shown, tokenizer.pad_token_id)
        optimizer.step()
        optimizer.zero_grad()
        rates.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return loss


def batches(tokenizer: Any, taught: Sequence[Solved], batch: Mapping[Task, int], seed: int) -> Iterator[list[Example]]:
    """Yield batches without end: questions drawn anew, each with a reply that is shown for it."""
    drawn = random.Random(f"batches {seed}")
    alike: dict[str, list[Solved]] = {}
    for solved in taught:
        alike.setdefault(solved.kind, []).append(solved)
    own = {task: [solved for solved in taught if solved.task == task] for task in batch}
    while True:
        asked = [solved for task, count in batch.items() for solved in drawn.choices(own[task], k=count)]
        yield [example(tokenizer, solved.messages, shown_reply(solved, alike[solved.kind], drawn)) for solved in asked]


def _rate(at: int, steps: int) -> float:
    return min(1.0, (at + 1) / _WARMING) * (1 - (1 - _END) * at / steps)


def _unmarked(solved: Solved) -> str:
    return HABITS[solved.task]["unmarked"](solved, [], random.Random())
