"""A split is disjoint by the text of the question, and the same whatever else is in the pool and in which order."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy import splitting
from eldgr_dspy.base.files import replacing
from eldgr_dspy.errors import ArgumentError, PoolError
from eldgr_dspy.pools import Pool, Row, open_pool, write_pool
from eldgr_dspy.splitting import folded_question, is_confirmation, split_pool
from tests.case_tables import each_case
from tests.refusing import refuses

SHARES = st.floats(0.01, 0.99)
SEEDS = st.integers(-(2**40), 2**40)


def row(name: str, question: str) -> Row:
    return Row.model_validate({"id": name, "question": question, "task": "retrieval", "candidates": [{"answer": "D"}]})


def towns(n: int) -> list[Row]:
    return [row(f"q{number}", f"Which town is number {number}?") for number in range(n)]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def split(folder: Path, rows: list[Row], *, share: float = 0.4, seed: int = 7) -> tuple[Pool, Pool]:
    pool = write_pool(folder / "all.jsonl", rows)
    return split_pool(pool, folder / "dev.jsonl", folder / "confirm.jsonl", share=share, seed=seed)


def ids(pool: Pool) -> list[str]:
    return [one.id for one in pool.rows()]


def test_the_side_of_a_question_never_changes() -> None:
    """What was once put aside for confirmation has to stay there, in every later version."""
    questions = [f"Which town is number {number}?" for number in range(12)]
    sides = "".join("dc"[is_confirmation(question, share=0.4, seed=7)] for question in questions)
    assert sides == "cdddddcdccdd"
    assert is_confirmation("日本の首都は？", share=0.5, seed=0) is False


@given(st.text(), SHARES, SEEDS)
def test_texts_that_fold_alike_are_on_one_side(question: str, share: float, seed: int) -> None:
    side = is_confirmation(question, share=share, seed=seed)
    assert is_confirmation(f"  {question}\n", share=share, seed=seed) is side
    assert is_confirmation(folded_question(question), share=share, seed=seed) is side


@given(st.text(), SHARES, SHARES, SEEDS)
def test_a_larger_share_keeps_every_question_of_a_smaller_one(question: str, one: float, two: float, seed: int) -> None:
    smaller, larger = sorted((one, two))
    if is_confirmation(question, share=smaller, seed=seed):
        assert is_confirmation(question, share=larger, seed=seed)


def test_each_question_is_on_the_side_that_its_text_says_in_the_order_of_the_pool(tmp_path: Path) -> None:
    """So that neither its id, candidates and gold nor the other questions matter, and spellings stay together."""
    spellings = [(one.id, text) for one in towns(60) for text in (one.question, f" {one.question.upper()}\t")]
    rows = [row(f"{name}-{text}", text) for name, text in spellings]
    development, confirmation = split(tmp_path, [one.model_copy(update={"gold": ["Oslo"]}) for one in rows])
    aside = [one.id for one in rows if is_confirmation(one.question, share=0.4, seed=7)]
    assert (ids(development), ids(confirmation)) == ([one.id for one in rows if one.id not in aside], aside)


@pytest.mark.parametrize("seed", [0, 1, -5, 2**70])
def test_the_share_is_met_on_average(tmp_path: Path, seed: int) -> None:
    development, confirmation = split(tmp_path, towns(2_000), seed=seed)
    assert development.n + confirmation.n == 2_000
    assert 720 <= confirmation.n <= 880  # 800, and three and a half standard deviations


def test_the_same_split_is_the_same_bytes(tmp_path: Path) -> None:
    split(tmp_path, towns(50))
    before = files_of(tmp_path)
    split(tmp_path, towns(50))
    assert files_of(tmp_path) == before
    split(tmp_path, towns(50), seed=8)
    assert files_of(tmp_path)["dev.jsonl"] != before["dev.jsonl"]


def test_a_split_that_cannot_be_made_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    message = r"share must be between 0 and 1; got .*\. Give 0\.4 for two questions in five"
    for share in (0, 1, -0.1, 1.5, float("nan")):
        refuses(ArgumentError, message, split, tmp_path, towns(5), share=share)
    message = r"no question for (development|confirmation) with share 0.4 and seed 7"
    refuses(PoolError, message, split, tmp_path, towns(1))
    assert {path.name for path in tmp_path.iterdir()} == {"all.jsonl"}
    (tmp_path / "x").mkdir()
    pool = write_pool(tmp_path / "all.jsonl", towns(20))
    for names in (("a.jsonl", "a.jsonl"), ("all.jsonl", "b.jsonl"), ("b.jsonl", "./x/../all.jsonl")):
        parts = [tmp_path / name for name in names]
        refuses(ArgumentError, "must be three files; give other names", split_pool, pool, *parts, share=0.5, seed=1)
        assert open_pool(tmp_path / "all.jsonl").sha256 == pool.sha256


@each_case("pools", "parts that cannot be written")
def test_where_a_part_cannot_be_written_both_files_stay(tmp_path: Path, development: str, confirmation: str) -> None:
    # hazard 89
    split(tmp_path, towns(60), seed=1)
    pool = open_pool(tmp_path / "all.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "link.jsonl").symlink_to("elsewhere.jsonl")
    before = files_of(tmp_path)
    with pytest.raises((OSError, PoolError)):
        split_pool(pool, tmp_path / development, tmp_path / confirmation, share=0.4, seed=2)
    assert files_of(tmp_path) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_leaves_both_parts_as_they_were(tmp_path: Path, monkeypatch: Any) -> None:  # hazard 89
    """What is buffered fails only where it is flushed, and neither part is in its place by then."""
    split(tmp_path, towns(60), seed=1)
    before = files_of(tmp_path)

    @contextmanager
    def full(path: Path) -> Iterator[IO[bytes]]:
        with replacing(path) as out:
            if path.name != "confirm.jsonl":
                yield out
                return
            with Path("/dev/full").open("wb") as device:
                yield device

    monkeypatch.setattr(splitting, "replacing", full)
    refuses(OSError, "No space left", split, tmp_path, towns(60), seed=2)
    assert files_of(tmp_path) == before


def test_a_real_pool_splits_as_it_always_did(pools_dir: Path, tmp_path: Path) -> None:
    pool = open_pool(pools_dir / "gsm8k-openai4.jsonl.gz")
    parts = split_pool(pool, tmp_path / "dev.jsonl.gz", tmp_path / "confirm.jsonl.gz", share=0.4, seed=7)
    assert [part.n for part in parts] == [779, 540]
