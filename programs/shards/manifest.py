"""The manifest of a sharded pool: what its shards are, by content, and where they and their runs are."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt, ValidationError

from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.files import replacing, safe_name
from eldgr_dspy.programs.shards.buckets import Bucket, bucket_at
from eldgr_dspy.system import is_url, opened, refusal
from eldgr_dspy.words import Task

MANIFEST = "manifest.json"
ORDER = "order.jsonl"

COPIES = "working-copies"
"""The folder, in the current one, of what this machine has of the shards in buckets."""

_TOGETHER = 16  # downloads


class _Stated(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class WholePool(_Stated):
    """A pool that was cut into shards.

    Attributes:
        name: Its name. path: its file, where it was. rows: how many questions. task: their answer type.
        sha256: The content hash of the whole pool. asked: the hash of its questions in any order, for a lock's ledger.
    """

    name: str
    path: str
    rows: PositiveInt
    task: Task
    sha256: str
    asked: str


class ShardFile(_Stated):
    """A shard.

    Attributes:
        name: Its number, in five digits or more. pool: the name of its pool.
        rows: How many questions. sha256: the hash of the file. bytes: the size of the file.
    """

    name: str
    pool: str
    rows: PositiveInt
    sha256: str
    bytes: NonNegativeInt


class Manifest(_Stated):
    """The content of `manifest.json`.

    Attributes:
        layout: The version of this layout. version: the version of the package that wrote it.
        rows: How many questions a shard was to have at most.
        pools: The pools, in order. shards: the shards, in order; the first has the number 0.
        order: The hash of `order.jsonl`, which states the shard of each row in the order of the pools.
    """

    layout: Literal[1] = 1
    version: str
    rows: PositiveInt
    pools: list[WholePool]
    shards: list[ShardFile]
    order: str


@dataclass(frozen=True, slots=True)
class Sharded:
    """A directory of shards, or a working copy of one that is in a bucket.

    Attributes:
        path: The directory. manifest: its manifest. sha256: the hash of that file.
        bucket: Where the directory is; None if it is on a disk.
    """

    path: Path
    manifest: Manifest
    sha256: str
    bucket: Bucket | None = None

    @property
    def place(self) -> str:
        """The directory, as messages name it and commands take it."""
        return str(self.path) if self.bucket is None else self.bucket.url

    def named(self, path: Path) -> str:
        """Return a file of the directory as messages name it."""
        return str(path) if self.bucket is None else f"{self.place}/{self.key(path)}"

    def key(self, path: Path) -> str:
        """Return the name that a file of the directory has in a bucket."""
        return path.relative_to(self.path).as_posix()

    def pull(self, *paths: Path) -> None:
        """Make files of a working copy what they are in the bucket. Raises `OSError` if it cannot be reached."""
        if (bucket := self.bucket) is not None:
            with ThreadPoolExecutor(_TOGETHER) as threads:
                list(threads.map(lambda path: bucket.fetch(self.key(path), path), paths))

    def shard(self, number: int) -> ShardFile:
        """Return a shard by its number, counted from 0. Raises `ArgumentError` if there is none."""
        last = len(self.manifest.shards) - 1
        if not 0 <= number <= last:
            raise ArgumentError(f"shard must be a number from 0 to {last}; got {number}. {self.place} has no other.")
        return self.manifest.shards[number]

    def whole(self, shard: ShardFile) -> WholePool:
        """Return the pool that a shard is a part of."""
        return next(pool for pool in self.manifest.pools if pool.name == shard.pool)

    def file(self, shard: ShardFile) -> Path:
        """Return where a shard is."""
        return self.path / "shards" / f"{shard.name}.jsonl"

    def run(self, shard: ShardFile) -> Path:
        """Return where a shard's run directory is."""
        return self.path / "runs" / shard.name

    def marker(self, shard: ShardFile) -> Path:
        """Return where it is stated that a shard is committed."""
        return self.path / "done" / f"{shard.name}.json"

    @property
    def order(self) -> Path:
        """The file that states the shard of each row."""
        return self.path / ORDER

    def require_whole(self, shard: ShardFile) -> None:
        """Refuse a shard whose file is not the one that the manifest names; one in a bucket is downloaded before.

        Raises:
            RunChangedError: the file is missing, was edited, or is that of another pool.
        """
        path, manifest = self.file(shard), self.named(self.path / MANIFEST)
        found = hash_if_there(path)
        if self.bucket is not None and found != shard.sha256:
            self.pull(path)
            found = hash_if_there(path)
        if found is None:
            raise RunChangedError(f"{self.named(path)}: no such file, and {manifest} names it. Restore it from a copy.")
        if found != shard.sha256:
            raise RunChangedError(
                f"{self.named(path)}: must have the sha256 {shard.sha256:.16}... of {manifest}; got {found:.16}.... "
                "It was edited, or is a shard of another pool. Restore it from a copy, or shard the pool again."
            )


def is_sharded(path: str | Path) -> bool:
    """Return whether a path is a directory of shards; an address of a bucket is taken for one."""
    return is_url(path) or os.path.isfile(Path(path) / MANIFEST)  # noqa: PTH113 -- it is False for a name that the system refuses


def read_sharded(place: str | Path) -> Sharded:
    """Read the manifest of a directory of shards, which may be in a bucket.

    Raises:
        ArgumentError: the directory has none, or it cannot be read.
    """
    bucket, path = bucket_at(place), Path(place)
    file = path / MANIFEST
    try:
        content = bucket.read(MANIFEST) if bucket is not None else file.read_bytes() if is_sharded(path) else None
    except OSError as error:
        raise ArgumentError(refusal(error, file)) from error
    if content is None:
        raise ArgumentError(f"{place}: has no {MANIFEST}. Give a directory that eldgr pool shard has written.")
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])) or "the file"
        raise ArgumentError(f"{_in(place)}: {where}: {fault['msg']}. Restore it from a copy.") from error
    _require_numbered(_in(place), manifest)
    stated = sha256(content).hexdigest()
    return Sharded(path if bucket is None else _working_copy(bucket, content), manifest, stated, bucket)


def _in(place: str | Path) -> str:
    return f"{place}/{MANIFEST}" if is_url(place) else str(Path(place) / MANIFEST)


def _working_copy(bucket: Bucket, manifest: bytes) -> Path:
    """Make the folder of a working copy, unless it is there; another manifest has another one."""
    place = sha256(bucket.url.encode() + manifest).hexdigest()
    folder = Path(COPIES) / f"{safe_name(bucket.url.partition('://')[2])}-{place:.12}"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / MANIFEST) as file:
        file.write(manifest)
    return folder


def _require_numbered(file: str, manifest: Manifest) -> None:
    """Refuse a manifest that names a shard twice or not in order, or that lacks a pool's shards."""
    for number, shard in enumerate(manifest.shards):
        if shard.name != name_of(number):
            raise ArgumentError(
                f"{file}: shards[{number}] must be {name_of(number)!r}; got {shard.name!r:.80}. Restore it from a copy."
            )
    for pool in manifest.pools:
        rows = sum(shard.rows for shard in manifest.shards if shard.pool == pool.name)
        if rows != pool.rows:
            raise ArgumentError(
                f"{file}: the shards of {pool.name!r} must have {pool.rows:,} rows in all; got {rows:,}. Restore it "
                "from a copy."
            )


def name_of(number: int) -> str:
    """Return the name of a shard by its number."""
    return f"{number:05d}"


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with opened(path) as file:
        return file_digest(file, sha256).hexdigest()


def hash_if_there(path: Path) -> str | None:
    """Return the SHA-256 of a file, in hexadecimal; None if there is no such file."""
    return hash_of(path) if path.is_file() else None
