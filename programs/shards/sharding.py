"""Cut pools into shards: files of rows in the pool's order, in which equal questions are together.

Two readings of each pool suffice after it was opened. A few numbers a row are in memory, and one row at a time.
"""

import json
from array import array
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import numpy as np
import numpy.typing as npt

from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.finished_run import installed_version
from eldgr_dspy.files import flush_to_disk, replacing, sync_folder
from eldgr_dspy.pools import Pool, line_of, open_pools
from eldgr_dspy.programs.run.ledger import hash_of_questions
from eldgr_dspy.programs.run.plan import require_count
from eldgr_dspy.programs.shards.buckets import Bucket, bucket_at
from eldgr_dspy.programs.shards.manifest import (
    COPIES,
    MANIFEST,
    ORDER,
    Manifest,
    Sharded,
    ShardFile,
    WholePool,
    hash_of,
    is_sharded,
    name_of,
    read_sharded,
)
from eldgr_dspy.splitting import folded_question
from eldgr_dspy.system import appending

ROWS = 50_000
"""How many questions a shard has by default."""


def shard_pools(
    paths: Sequence[str | Path], out: str | Path, rows: int = ROWS, kind: AnswerType | None = None
) -> Sharded:
    """Cut pools into shards, in a new directory, and return it.

    Rows keep their order within a shard. Questions with the same folded text are in one shard. A shard has at most
    `rows` rows, unless one question occurs more often. The manifest is written last. In a bucket, no file that exists
    is written.

    Args:
        paths: The pools. out: a directory that does not exist or is empty, or the address of a bucket that has no
            shards there. rows: how many rows a shard has at most.
        kind: The answer type that the pools must have; None for any.

    Raises:
        ArgumentError: `out` is not empty, `rows` is not a count, or a pool has another answer type. The server of a
            bucket writes a file that exists, although told not to.
        PoolError: a pool cannot be read.
        OSError: a file cannot be written, or a bucket cannot be reached.
    """
    require_count("rows", rows)
    bucket = bucket_at(out)
    if bucket is None:
        _require_empty(Path(out))
        return cut(open_pools(paths, kind), Path(out), rows)
    if bucket.read(MANIFEST) is not None:
        raise ArgumentError(f"out={bucket.url!r} holds shards already. Give another --out.")
    pools = open_pools(paths, kind)
    Path(COPIES).mkdir(exist_ok=True)
    with TemporaryDirectory(dir=COPIES, prefix="cut-") as folder:
        _upload(cut(pools, Path(folder), rows), bucket)
    return read_sharded(bucket.url)


def _upload(sharded: Sharded, bucket: Bucket) -> None:
    """Write shards into a bucket, the manifest last; files that a killed process has written may be there."""
    shards = [sharded.file(shard) for shard in sharded.manifest.shards]
    for path in (sharded.order, *shards, sharded.path / MANIFEST):
        name = sharded.key(path)
        if not bucket.create(name, path):
            theirs = sharded.path / "theirs"
            if not bucket.fetch(name, theirs) or hash_of(theirs) != hash_of(path):
                raise ArgumentError(f"out={bucket.url!r} has {name} of other shards. Give another --out.")
        elif path == sharded.order and bucket.create(name, path):
            raise ArgumentError(
                f"{bucket.url}: its server must refuse a second file of one name (If-None-Match); it wrote one. Keep "
                "the shards on a disk, or on another server."
            )


def cut(pools: Sequence[Pool], out: Path, rows: int) -> Sharded:
    """Cut opened pools into shards as `shard_pools` does, in a directory that does not exist or is empty.

    Raises:
        PoolError: a pool has changed since it was opened. OSError: a file cannot be written.
    """
    (out / "shards").mkdir(parents=True, exist_ok=True)
    wholes, shards = list[WholePool](), list[ShardFile]()
    with replacing(out / ORDER) as order:
        for pool in pools:
            shard_of, asked = _assigned(pool, rows)
            _write(pool, shard_of + len(shards), out / "shards", order)
            for count in np.bincount(shard_of).tolist():
                shards.append(_stated(pool, out / "shards", name_of(len(shards)), count))
            whole = WholePool(
                name=pool.name, path=str(pool.path), rows=pool.n, task=pool.task, sha256=pool.sha256, asked=asked
            )
            wholes.append(whole)
    sync_folder(out / "shards")
    manifest = Manifest(version=installed_version(), rows=rows, pools=wholes, shards=shards, order=hash_of(out / ORDER))
    with replacing(out / MANIFEST) as file:
        file.write((manifest.model_dump_json(indent=2) + "\n").encode("utf-8"))
    return read_sharded(out)


def _require_empty(out: Path) -> None:
    if is_sharded(out):
        raise ArgumentError(f"out={str(out)!r} holds shards already. Give another --out.")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ArgumentError(f"out={str(out)!r} must be a new or an empty directory. Give another --out, or empty it.")


def _assigned(pool: Pool, rows: int) -> tuple[npt.NDArray[np.int64], str]:
    """Return the shard of each row, counted from 0, and the hash of the pool's questions."""
    keys = array("q")

    def texts() -> Iterator[str]:
        for row in pool.rows():
            text = folded_question(row.question)
            keys.append(hash(text))  # different texts of one hash only share a shard
            yield text

    asked = hash_of_questions(texts())
    _, first, group, sizes = np.unique(
        np.frombuffer(keys, np.int64), return_index=True, return_inverse=True, return_counts=True
    )
    by_place = np.argsort(first)  # groups in the order in which the pool has them
    shard_of_group = np.empty(len(first), np.int64)
    shard_of_group[by_place] = _filled(sizes[by_place].tolist(), rows)
    return shard_of_group[group], asked


def _filled(sizes: Sequence[int], rows: int) -> list[int]:
    """Return the shard of each group of equal questions: the last one, or a new one if it would have too many rows."""
    shard, held, shards = 0, 0, list[int]()
    for size in sizes:
        if held and held + size > rows:
            shard, held = shard + 1, 0
        held += size
        shards.append(shard)
    return shards


def _write(pool: Pool, shards: npt.NDArray[np.int64], folder: Path, order: IO[bytes]) -> None:
    """Append each row to its shard, and note how many rows in a row go to which; one file is open at a time."""
    rows = pool.rows()
    for shard, places in groupby(map(int, shards)):
        count = 0
        path = folder / f"{name_of(shard)}.jsonl"
        with appending(path) as file:
            for _ in places:
                file.write(line_of(path, next(rows)))
                count += 1
        order.write(json.dumps([shard, count]).encode("ascii") + b"\n")


def _stated(pool: Pool, folder: Path, name: str, rows: int) -> ShardFile:
    """Flush a shard to the disk, and return what the manifest states of it."""
    path = folder / f"{name}.jsonl"
    with appending(path) as file:
        flush_to_disk(path, file)
    return ShardFile(name=name, pool=pool.name, rows=rows, sha256=hash_of(path), bytes=path.stat().st_size)
