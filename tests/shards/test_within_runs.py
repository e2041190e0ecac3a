"""Pools are cut into shards inside a run directory once, and never beside another run."""

from pathlib import Path

import pytest

from eldgr_dspy.errors import RunChangedError, RunLockedError
from eldgr_dspy.programs.file_locks import locked
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.shards.manifest import read_sharded
from eldgr_dspy.programs.shards.merging import merge
from eldgr_dspy.programs.shards.within_runs import shards_within
from tests.capitals import write_pool
from tests.finished_runs import numbered
from tests.refusing import refused
from tests.shards.sharded import results, run_all


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return write_pool(tmp_path / "capitals.jsonl", numbered(8))


def test_merged_into_its_run_directory_the_run_is_that_of_the_pool(pool: Path, tmp_path: Path) -> None:
    directory = shards_within(tmp_path / "run", [pool])
    run_all(directory)
    merge(directory, tmp_path / "run")
    evaluate(heuristic_selector(), Plan([pool], tmp_path / "plain"))
    assert results(tmp_path / "run") == results(tmp_path / "plain")


@pytest.mark.parametrize(("n", "shards"), [(100, 1), (101, 2), (6_400, 64), (6_401, 64)])
def test_there_are_some_shards_for_each_process_and_none_is_tiny(n: int, shards: int, tmp_path: Path) -> None:
    cut = shards_within(tmp_path / "run", [write_pool(tmp_path / "many.jsonl", numbered(n))])
    assert len(read_sharded(cut).manifest.shards) == shards


def test_they_are_cut_once_also_after_a_kill(pool: Path, tmp_path: Path) -> None:
    unfinished = tmp_path / "run" / ".shards.tmp" / "shards"
    unfinished.mkdir(parents=True)
    (unfinished / "00000.jsonl").write_text("half a row")
    directory = shards_within(tmp_path / "run", [pool])
    manifest = (directory / "manifest.json").read_bytes()
    assert shards_within(tmp_path / "run", [pool]) == directory
    assert (directory / "manifest.json").read_bytes() == manifest
    assert not unfinished.exists()


def test_changed_or_other_pools_are_refused(pool: Path, tmp_path: Path) -> None:
    directory = shards_within(tmp_path / "run", [pool])
    write_pool(pool, numbered(9))
    said = refused(lambda: shards_within(tmp_path / "run", [pool]), RunChangedError)
    assert said == (
        f"{directory}: holds the shards of capitals, and their content is not that of the given pools. Give the same "
        "pools, or another --out."
    )


def test_a_run_without_shards_is_left_alone(pool: Path, tmp_path: Path) -> None:
    evaluate(heuristic_selector(), Plan([pool], tmp_path / "plain"))
    before = sorted((tmp_path / "plain").iterdir())
    assert "has a run that was made without --engine" in refused(lambda: shards_within(tmp_path / "plain", [pool]))
    assert sorted((tmp_path / "plain").iterdir()) == before


def test_two_processes_do_not_cut_at_once(pool: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with locked(tmp_path / "run" / ".shards.lock", "busy"):
        assert "another process is cutting" in refused(lambda: shards_within(tmp_path / "run", [pool]), RunLockedError)
