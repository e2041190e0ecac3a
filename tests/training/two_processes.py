"""One of two processes that share a training, in which groups straddle them; prints what it saw as JSON.

Started by test_groups.py under torchrun, with a folder to write to.
"""

import faulthandler
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from eldgr_dspy.errors import EldgrError
from eldgr_dspy.training import Conditioned, GroupReward, Reward
from tests.training.calling import rows, said
from tests.training.training_on import ROWS, trainer

WHO = "Who was the host?"
THIRD = {**ROWS[0], "prompt": [{"role": "user", "content": WHO}], "question": WHO, "gold": ["Qatar"]}

# Three groups of four, six completions a process: the second group stands in both. Its prompt is that of the third, a
# row with another corpus.
ANSWERS = ("Qatar", "Chile", "Chile", "Chile", "Qatar", "Peru", "Peru", "Qatar", "Peru", "Qatar", "Qatar", "Peru")
PROMPTS = (*["first"] * 4, *["same"] * 8)
EVIDENCE = (*[["The host was Qatar."]] * 8, *[["The host was Peru."]] * 4)


def main(folder: Path) -> None:
    faulthandler.dump_traceback_later(300, exit=True)  # should one wait for the other in vain, it says where
    torch.set_num_threads(1)
    made = trainer([GroupReward()], folder, rows=[*ROWS, THIRD], per_device_train_batch_size=6, log_completions=True)
    made.train()
    rank = made.accelerator.process_index
    seen = {"processes": made.accelerator.num_processes, **{name: what(rank) for name, what in CALLS.items()}}
    (folder / f"seen-{rank}.json").write_text(json.dumps(seen))
    sys.stdout.flush()
    os._exit(0)  # PyTorch can stand still, or abort, as a group is freed while a thread of it waits for the interpreter


def called(rank: int, reward: Reward | None = None, texts: Any = None, **columns: Any) -> Any:
    """The reward of this process' completions, or the error."""
    half = slice(6 * rank, 6 * rank + 6)
    written = [f"A: {answer}" for answer in ANSWERS[half]]
    passed = rows(6, **{"evidence": list(EVIDENCE[half]), **columns})
    try:
        return (reward or GroupReward(group_size=4))(PROMPTS[half], texts or written, **passed)
    except EldgrError as error:
        return f"{type(error).__name__}: {error}"


def total() -> Conditioned:
    """A reward of two parts, which both bring the processes together."""
    groups = [GroupReward(name=name, group_size=4) for name in ("group", "other")]
    return Conditioned(groups[0], on=groups[1], at_least=0.0)


def nested() -> GroupReward:
    return GroupReward(auxiliary=GroupReward(name="inner", group_size=4), group_size=4)


def unread(rank: int) -> Any:
    """Completions of which the second process cannot read one: its content is in parts."""
    return None if rank == 0 else [said([{"type": "text", "text": "A: Doha"}]), *["A: Doha"] * 5]


def second(rank: int, column: str, value: object) -> dict[str, Any]:
    """A column of this value, for the second process alone."""
    return {column: [value] * 6} if rank == 1 else {}


# What each process does in turn; where one of them would wait for the other in vain, nothing behind it is right.
CALLS: dict[str, Callable[[int], Any]] = {
    "places": called,
    "one fails": lambda rank: called(rank, **second(rank, "evidence", 7)),
    "again": called,
    "one cannot be read": lambda rank: called(rank, texts=unread(rank)),
    "again, that read": called,
    "one cannot be read, total": lambda rank: called(rank, total(), unread(rank)),
    "one cannot be read, nested": lambda rank: called(rank, nested(), unread(rank)),
    "a term fails": lambda rank: called(rank, total(), **second(rank, "task", "poetry")),
    "nested, one fails": lambda rank: called(rank, nested(), **second(rank, "question", 7)),
    "again, in the end": called,
    "groups of five": lambda rank: called(rank, GroupReward(group_size=5)),
}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
