"""A reward leaves every random stream unchanged, so that runs that differ only in rewards sample the same text.

A trainer samples from the streams that a scorer may draw from too. Without this, the first number that a reward draws
changes every later completion.
"""

import random
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np


@contextmanager
def kept_random_state() -> Iterator[None]:
    """Restore the global random state of Python, numpy, torch and every CUDA device after the block, error or not.

    A stream that does not exist yet is not saved: torch if nothing has imported it, CUDA if nothing has used it.
    """
    python, legacy = random.getstate(), np.random.get_state()
    try:
        with _kept_torch():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)


def _kept_torch() -> AbstractContextManager[Any]:
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return nullcontext()
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    kept: AbstractContextManager[Any] = torch.random.fork_rng(devices=list(devices), device_type="cuda")
    return kept
