"""What tests with servers of their own share."""

import gc
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture
def collect() -> Iterator[None]:
    """LiteLLM leaves connections to servers that have gone for the garbage collector to close: here, and not later."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
