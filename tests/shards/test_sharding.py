"""A pool is cut into shards without loss: each row once, equal questions together, nothing but a hash in memory."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError, PoolError, RunChangedError
from eldgr_dspy.pools import open_pool
from eldgr_dspy.pools import write_pool as write_rows
from eldgr_dspy.programs.run.ledger import questions_of
from eldgr_dspy.programs.run.sorted_texts import in_order
from eldgr_dspy.programs.shards.manifest import hash_of, read_sharded
from eldgr_dspy.programs.shards.sharding import shard_pools
from tests.capitals import row, write_pool
from tests.refusing import refused
from tests.shards.sharded import ids, sharded


@settings(max_examples=20)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(1, 8))
@example([0, 1, 0, 1], 1)
@example([0, 0, 0, 1], 2)
def test_each_row_is_in_one_shard_in_order_and_equal_questions_are_together(questions: list[int], rows: int) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        texts = [f"Which capital is number {question}?" for question in questions]
        texts[::2] = [text.upper() for text in texts[::2]]  # equal when folded
        pool = write_pool(folder / "p.jsonl", [row(n, question=text) for n, text in enumerate(texts)])
        made = shard_pools([pool], folder / "out", rows)
        shards = [
            [json.loads(line) for line in made.file(shard).read_text().splitlines()] for shard in made.manifest.shards
        ]
        found = {one["id"]: number for number, shard in enumerate(shards) for one in shard}
        assert len(found) == sum(map(len, shards)) == len(questions)
        assert all(shard == sorted(shard, key=lambda one: int(one["id"][1:])) for shard in shards)
        homes = {
            question: {found[f"q{n}"] for n, one in enumerate(questions) if one == question} for question in questions
        }
        assert all(len(home) == 1 for home in homes.values())
        times = Counter(questions)
        for shard, stated in zip(shards, made.manifest.shards, strict=True):
            held = {questions[int(one["id"][1:])] for one in shard}
            assert len(shard) == stated.rows and (len(shard) <= rows or len(held) == 1)
            assert sum(times[question] for question in held) == len(shard)
        runs = [json.loads(line) for line in made.order.read_text().splitlines()]
        assert [number for number, count in runs for _ in range(count)] == [found[f"q{n}"] for n in range(len(texts))]


def test_a_row_is_written_as_it_was_read_and_the_manifest_says_what_the_files_are(tmp_path: Path) -> None:
    made = shard_pools(
        [write_pool(tmp_path / "p.jsonl", [row(n, meta={"n": n}) for n in range(5)])], tmp_path / "out", 2
    )
    pool, (whole,) = open_pool(tmp_path / "p.jsonl"), made.manifest.pools
    assert (whole.name, whole.rows, whole.sha256, whole.task) == ("p", 5, pool.sha256, "retrieval")
    assert whole.asked == questions_of(pool)
    files = [made.file(shard) for shard in made.manifest.shards]
    assert [open_pool(file).n for file in files] == [shard.rows for shard in made.manifest.shards] == [2, 2, 1]
    rows = [one for file in files for one in open_pool(file).rows()]
    assert rows == list(pool.rows())
    assert [(shard.sha256, shard.bytes) for shard in made.manifest.shards] == [
        (hash_of(file), file.stat().st_size) for file in files
    ]


def test_the_same_rows_have_the_same_shards_in_every_format_and_in_a_folder(tmp_path: Path) -> None:
    rows = [*open_pool(write_pool(tmp_path / "p.jsonl", map(row, range(5)))).rows()]
    paths = [tmp_path / "p.jsonl", tmp_path / "p.jsonl.gz", tmp_path / "p.parquet", tmp_path / "folder"]
    write_rows(paths[1], rows)
    write_rows(paths[2], rows)
    paths[3].mkdir()
    write_rows(paths[3] / "b.parquet", rows[2:])
    write_rows(paths[3] / "a.jsonl", rows[:2])
    made = [shard_pools([path], tmp_path / f"out{number}", 2).manifest for number, path in enumerate(paths)]
    shards = [[(shard.name, shard.rows, shard.sha256) for shard in manifest.shards] for manifest in made]
    assert all(one == shards[0] for one in shards)
    assert {manifest.pools[0].sha256 for manifest in made} == {made[0].pools[0].sha256}


def test_several_pools_keep_their_names_and_share_no_shard(tmp_path: Path) -> None:
    two = [write_pool(tmp_path / f"{name}.jsonl", map(row, range(3))) for name in ("a", "b")]
    made = shard_pools(two, tmp_path / "out", 2)
    assert [(shard.name, shard.pool, shard.rows) for shard in made.manifest.shards] == [
        ("00000", "a", 2),
        ("00001", "a", 1),
        ("00002", "b", 2),
        ("00003", "b", 1),
    ]


@settings(max_examples=20)
@given(st.lists(st.text(), max_size=12), st.integers(1, 4))
def test_texts_are_sorted_in_parts_as_they_are_at_once(texts: list[str], at_once: int) -> None:
    assert list(in_order(texts, at_once)) == sorted(texts)


def test_a_pool_that_is_not_one_and_a_directory_that_is_used_are_refused(tmp_path: Path) -> None:
    empty = write_pool(tmp_path / "empty.jsonl", [])
    assert "no rows" in refused(lambda: shard_pools([empty], tmp_path / "a"), PoolError)
    twice = write_pool(tmp_path / "twice.jsonl", [row(1), row(2), row(1)])
    assert "id 'q1' is in line 1 and in line 3" in refused(lambda: shard_pools([twice], tmp_path / "b", 1), PoolError)
    pool = write_pool(tmp_path / "p.jsonl", map(row, range(3)))
    assert "rows must be at least 1" in refused(lambda: shard_pools([pool], tmp_path / "c", 0))
    assert not (tmp_path / "c").exists()
    assert "must be a new or an empty directory" in refused(lambda: shard_pools([pool], tmp_path))
    shard_pools([pool], tmp_path / "d")
    assert "holds shards already" in refused(lambda: shard_pools([pool], tmp_path / "d"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace('"00001"', '"00000"'), r"shards\[1\] must be '00001'; got '00000'"),
        (lambda text: text.replace('"rows": 8', '"rows": 9'), "must have 9 rows in all; got 8"),
        (lambda text: text[:-9], "the file: Invalid JSON"),
        (lambda text: text.replace('"order"', '"orders"'), "order: Field required"),
    ],
)
def test_a_manifest_that_was_edited_is_refused_by_name(tmp_path: Path, change: Callable[[str], str], said: str) -> None:
    directory = sharded(tmp_path)
    manifest = directory / "manifest.json"
    manifest.write_text(change(manifest.read_text()))
    with pytest.raises(ArgumentError, match=said) as caught:
        read_sharded(directory)
    assert str(caught.value).startswith(str(manifest))


def test_a_directory_without_a_manifest_and_a_shard_that_does_not_exist_are_refused(tmp_path: Path) -> None:
    assert "has no manifest.json" in refused(lambda: read_sharded(tmp_path))
    made = read_sharded(sharded(tmp_path))
    assert "shard must be a number from 0 to 2; got 3" in refused(lambda: made.shard(3))
    assert "got -1" in refused(lambda: made.shard(-1))
    assert ids([made.file(shard) for shard in made.manifest.shards]) == [f"q{n}" for n in range(8)]
    made.file(made.shard(1)).unlink()
    assert "00001.jsonl: no such file" in refused(lambda: made.require_whole(made.shard(1)), RunChangedError)
