"""One of two processes that share a training, in which groups straddle them; prints what it saw as JSON.

Started by test_groups.py with the variables that torchrun sets, and a folder to write to.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

from eldgr_dspy.errors import EldgrError
from eldgr_dspy.training import GroupReward
from tests.training.calling import rows
from tests.training.training_on import ROWS, trainer

WHO = "Who was the host?"
THIRD = {**ROWS[0], "prompt": [{"role": "user", "content": WHO}], "question": WHO, "gold": ["Qatar"]}

# Three groups of four, six completions a process: the second group stands in both. Its prompt is that of the third, a
# row with another corpus.
ANSWERS = ("Qatar", "Chile", "Chile", "Chile", "Qatar", "Peru", "Peru", "Qatar", "Peru", "Qatar", "Qatar", "Peru")
PROMPTS = (*["first"] * 4, *["same"] * 8)
EVIDENCE = (*[["The host was Qatar."]] * 8, *[["The host was Peru."]] * 4)


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    made = trainer([GroupReward()], folder, rows=[*ROWS, THIRD], per_device_train_batch_size=6, log_completions=True)
    made.train()
    rank = made.accelerator.process_index
    half = slice(6 * rank, 6 * rank + 6)
    seen = {
        "processes": made.accelerator.num_processes,
        "places": called(half, EVIDENCE[half]),
        "one fails": called(half, EVIDENCE[half] if rank == 0 else [7] * 6),
        "again": called(half, EVIDENCE[half]),
        "groups of five": called(half, EVIDENCE[half], group_size=5),
    }
    (folder / f"seen-{rank}.json").write_text(json.dumps(seen))
    torch.distributed.destroy_process_group()


def called(half: slice, evidence: Any, group_size: int = 4) -> Any:
    """What the reward of this process' completions comes to, or the error."""
    texts = [f"A: {answer}" for answer in ANSWERS[half]]
    try:
        return GroupReward(group_size=group_size)(PROMPTS[half], texts, **rows(6, evidence=list(evidence)))
    except EldgrError as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
