"""The process that reads a Parquet file: it takes little memory whatever the file holds, and sends on what is small.

A text that is stored once may be named a million times, a page may unpack to two gigabytes, and what a file states of
its sizes may be false. pyarrow expands a row before it can be measured, and ends the process if memory runs out. So
this process has a limit on its memory, and measures each row before `eldgr_dspy.formats.parquet` gets it.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final

from eldgr_dspy.base.child_processes import limit_memory, take_output
from eldgr_dspy.base.file_limits import MAX_LINE, MAX_VALUES, RAISE, VARIABLE, expansion_limit, require_few, scale
from eldgr_dspy.errors import PoolError, brief

MEMORY: Final = 1 << 30  # bytes of address space that the process may take, where the system can limit it
REFUSAL, UNREADABLE = "refused", "unreadable"  # how reading ended, if not well: a sentence follows, or a reason
_ROW = 64  # bytes that a row takes at least


def memory_limit() -> int:
    return max(scale(MEMORY), MEMORY // 2)  # with less it could not start


def serve() -> None:
    """Answer requests until the input ends: `[path, its name in messages, rows at once, the factor of limits]`.

    A request is answered by `null`, a stream of Arrow and `null`, each `null` on a line. A line of two texts instead
    says how and why the reading failed. When memory runs out, pyarrow may end the process.
    """
    out = take_output()
    import pyarrow.parquet

    for line in sys.stdin:
        path, name, rows, factor = json.loads(line)
        os.environ[VARIABLE] = factor or ""
        limit_memory(memory_limit())
        failure = None
        try:
            _send(pyarrow, Path(path), name, rows, out)
        except PoolError as error:
            failure = REFUSAL, error.args[0]
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            failure = UNREADABLE, brief(" ".join(str(error).split()), 200)
        out.write(json.dumps(failure).encode() + b"\n")
        out.flush()


def _send(arrow: Any, path: Path, name: str, rows: int, out: IO[bytes]) -> None:
    with arrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
        _check_columns(name, file)
        limit = expansion_limit(path.stat().st_size)
        row = total = 0
        out.write(b"null\n")
        with arrow.ipc.new_stream(out, file.schema_arrow) as stream:
            try:
                for part in _parts(file.iter_batches(batch_size=rows, use_threads=False)):
                    _require_small(part, f"{name}, row {row + 1}")
                    row += len(part)
                    total += part.nbytes + _ROW * len(part)
                    if total > limit:
                        raise PoolError(f"{name}, row {row}: expands to more than {limit:,} bytes. {RAISE}")
                    stream.write_batch(part)
            except MemoryError:
                raise PoolError(
                    f"{name}, after row {row}: takes more than {memory_limit():,} bytes of memory to read, the limit; "
                    f"write shorter rows. {RAISE}"
                ) from None


def _parts(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield each batch, or each of its rows if together they would be refused."""
    for batch in batches:
        if batch.nbytes <= scale(MAX_LINE) and _n_values(batch) <= scale(MAX_VALUES):
            yield batch
        else:
            yield from (batch.slice(at, 1) for at in range(len(batch)))


def _require_small(rows: Any, where: str) -> None:
    if rows.nbytes > (longest := scale(MAX_LINE)):
        raise PoolError(f"{where}: takes more than {longest:,} bytes, the limit of a row; shorten it. {RAISE}")
    require_few(_n_values(rows), where)


def _n_values(batch: Any) -> int:
    """Return how many values rows hold, within one another. A value may take no byte at all."""
    return sum(map(_n_within, batch.columns))


def _n_within(array: Any) -> int:
    inner = array.flatten() if array.type.num_fields and hasattr(array, "flatten") else []
    parts = inner if isinstance(inner, list) else [inner]
    return len(array) + sum(map(_n_within, parts))


def _check_columns(name: str, file: Any) -> None:
    """Refuse columns that would be lost, or whose size a batch does not show."""
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        raise PoolError(f"{name}: two columns have the same name ({', '.join(names)}); drop one.")
    for column in file.schema_arrow:
        if "dictionary<" in str(column.type):  # stored once and copied for every row, so a batch does not show its size
            raise PoolError(f"{name}: column {column.name!r} holds categories; write it as plain text.")
