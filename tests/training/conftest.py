"""Trainings in these tests have one thread: several wait for each other where another process has their core."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    if find_spec("torch") is None:
        yield
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
