"""Numbers under keys: those that were added, in order, in memory and on the disk. A key is in one part."""

import gc
import pickle
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

from eldgr_dspy.keyed_numbers import KeyedNumbers, Pairs

CHUNK = 65_536


def with_numbers(n: int) -> KeyedNumbers:
    """Keys of both signs, each three times."""
    kept = KeyedNumbers()
    for number in range(n):
        kept.add(hash((number // 3, "key")), number)
    return kept


def joined(parts: list[Pairs]) -> list[tuple[int, int]]:
    return [pair for keys, numbers in parts for pair in zip(keys.tolist(), numbers.tolist(), strict=True)]


@pytest.mark.parametrize("n", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 200_000])
def test_what_was_added_is_there_in_order(n: int) -> None:
    kept, expected = with_numbers(n), [(hash((number // 3, "key")), number) for number in range(n)]
    assert len(kept) == n
    assert joined([*kept.chunks()]) == expected
    assert joined([*pickle.loads(pickle.dumps(kept)).chunks()]) == expected  # noqa: S301 -- ours
    kept.add(7, 8)  # after it was read
    assert joined([*kept.chunks()])[-1] == (7, 8)
    assert len(kept) == n + 1


@pytest.mark.parametrize("n", [0, 2, 70_000, 200_000])
def test_a_key_is_in_one_part_and_keeps_its_order(n: int) -> None:
    kept = with_numbers(n)
    parts = [*kept.parts()]
    assert len(parts) == 1 + n // CHUNK
    keys = [set(part[0].tolist()) for part in parts]
    assert sum(map(len, keys)) == len(set().union(*keys))
    assert sorted(number for _, number in joined(parts)) == list(range(n))
    assert all((np.diff(numbers[keys == keys[0]]) == 1).all() for keys, numbers in parts if keys.size)


def test_the_parts_of_many_are_not_more_than_64(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = with_numbers(CHUNK)
    monkeypatch.setattr(KeyedNumbers, "__len__", lambda _: 10**9)
    assert len([*kept.parts()]) == 64


def test_its_file_ends_with_it() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kept = with_numbers(CHUNK)
        del kept
        gc.collect()
    assert not caught  # Python warns of a file that was left open


def test_a_folder_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError) as refused:
        with_numbers(CHUNK)
    assert refused.value.filename == str(tmp_path / "missing")
