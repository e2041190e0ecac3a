"""Sort more texts than fit into memory, in temporary files that end with the process."""

import heapq
import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO

from eldgr_dspy.system import naming

_AT_ONCE = 200_000  # texts in memory


def in_order(texts: Iterable[str], at_once: int = _AT_ONCE) -> Iterator[str]:
    """Yield texts sorted; no more than `at_once` of them are in memory, and one of each further part."""
    source = iter(texts)
    part = sorted(islice(source, at_once))
    with ExitStack() as held:
        parts = list[Iterator[str]]()
        while len(part) == at_once:
            file = held.enter_context(tempfile.TemporaryFile())
            parts.append(_spooled(file, part))
            part = sorted(islice(source, at_once))
        yield from heapq.merge(*parts, part)


def _spooled(file: IO[bytes], texts: Iterable[str]) -> Iterator[str]:
    """Write texts to a file, and return a reader of them."""
    with naming(Path(tempfile.gettempdir())):
        file.writelines(json.dumps(text).encode("ascii") + b"\n" for text in texts)
        file.seek(0)
    return (json.loads(line) for line in file)
