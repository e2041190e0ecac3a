"""DSPy's cache, in the settings that a test wants."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dspy


@contextmanager
def cached_by_dspy(**options: Any) -> Iterator[None]:
    """Have DSPy keep replies in memory, or as the options say; then close what is on disk, and have it as before."""
    everything: Any = dspy
    before = vars(dspy).get("cache")  # DSPy makes one, with sixteen databases, where it is asked for its cache
    dspy.configure_cache(**{"enable_disk_cache": False, "enable_memory_cache": True, **options})
    try:
        yield
    finally:
        if everything.cache.enable_disk_cache:
            everything.cache.disk_cache.close()
        if before is None:
            del everything.cache
        else:
            everything.cache = before
