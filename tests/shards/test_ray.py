"""Shards on a small cluster of Ray: the run is that of one process, whichever worker dies."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.errors import RunChangedError, RunLockedError, RunStoppedError
from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.file_locks import locked
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.shards import ray_actors, ray_engine
from eldgr_dspy.programs.shards.merging import merge
from eldgr_dspy.programs.shards.ray_engine import SuspectWarning
from eldgr_dspy.programs.shards.running import uncommitted
from tests.capitals import Flaky, obliging, selector_with, write_pool
from tests.finished_runs import numbered
from tests.refusing import refused
from tests.shards.on_ray import faulty, flaky, limited, poisoned, run, scripted, slow, two_workers
from tests.shards.sharded import results, sharded

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL and SIGALRM")]

__all__ = ["limited"]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with two_workers():
        yield


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return sharded(tmp_path)


def merged(directory: Path) -> dict[str, Any]:
    merge(directory, directory.parent / "merged")
    return results(directory.parent / "merged")


def plain(directory: Path, reply: Callable[[Any], Any] = obliging, **plan: Any) -> dict[str, Any]:
    """The results of a run of the whole pool in this process."""
    out = directory.parent / "plain"
    evaluate(selector_with(reply)[0], Plan([directory.parent / "capitals.jsonl"], out, **plan))
    return results(out)


def test_a_run_on_ray_is_that_of_one_process(directory: Path) -> None:
    run(directory, scripted, workers=4)
    assert merged(directory) == plain(directory)
    run(directory, scripted)  # there is nothing left, so that no worker is started


def test_a_question_that_ends_its_process_is_named_and_counts_as_failed(directory: Path) -> None:
    with pytest.warns(SuspectWarning, match="'q4' ended every process in which it was asked"):
        run(directory, scripted, reply=poisoned, max_failures=1, workers=4)
    journal = [*read_journal(directory / "runs" / "00001" / "journal.jsonl")]
    assert {entry.id for entry in journal if entry.outcome == "failed"} == {"q4"}
    error = dspy.LMError("every process in which this question was asked has ended")
    expected = plain(directory, Flaky(lambda number: number == 4, error), max_failures=1)
    assert merged(directory)["decisions"] == expected["decisions"]


def test_a_question_that_ends_its_process_counts_towards_the_limit(directory: Path) -> None:
    with pytest.raises(RunStoppedError, match="1 question failed, more than the 0 that --max-failures allows"):
        run(directory, scripted, reply=poisoned)
    assert 1 in uncommitted(directory)


def test_a_shard_at_which_every_worker_dies_stops_the_run_by_name(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_engine, "_STUCK", 2)
    with pytest.raises(RunStoppedError, match="2 workers died one after the other at shard 00001"):
        run(directory, scripted, reply=poisoned)


# -- limits over all workers -------------------------------------------------------------------------------------------


def test_the_limit_on_requests_holds_over_all_workers(directory: Path) -> None:
    with pytest.raises(RunStoppedError, match="--max-calls allows 5"):
        run(directory, scripted, reply=slow, max_calls=5)
    assert len((directory.parent / "asked.txt").read_text().splitlines()) <= 5
    run(directory, scripted, reply=slow, max_calls=8)
    asked = [line.split()[1] for line in (directory.parent / "asked.txt").read_text().splitlines()]
    assert sorted(asked) == [str(number) for number in range(8)]
    assert merged(directory) == plain(directory)


def test_the_limit_on_failures_holds_over_all_workers(directory: Path) -> None:
    with pytest.raises(RunStoppedError, match="2 questions failed, more than the 1 that --max-failures allows"):
        run(directory, scripted, reply=flaky, max_failures=1)
    run(directory, scripted, reply=flaky, max_failures="25%")
    expected = plain(directory, Flaky(lambda number: number in (1, 7)), max_failures=2)
    assert merged(directory)["decisions"] == expected["decisions"]


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_two_drivers_on_one_directory_are_refused(directory: Path) -> None:
    with locked(directory / ".engine.lock", "busy"):
        assert "another process runs it on Ray" in refused(lambda: run(directory), RunLockedError)
    assert uncommitted(directory) == [0, 1, 2]


def test_a_shard_that_another_process_runs_is_left_to_it(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "_PATIENCE", 0.0)
    (directory / "runs").mkdir()
    with locked(directory / "runs" / ".00001.lock", "busy"):
        assert "another process is running shard 00001" in refused(lambda: run(directory), RunLockedError)
    assert uncommitted(directory) == [1]


def test_workers_with_another_version_are_refused_by_name(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_actors, "installed_version", lambda: "9.9")
    said = refused(lambda: run(directory))
    assert "Workers must have eldgr_dspy 9.9, as this process has; got 0.1.0 on " in said
    assert uncommitted(directory) == [0, 1, 2]


def test_an_edited_shard_stops_the_run_and_is_named(directory: Path) -> None:
    file = directory / "shards" / "00001.jsonl"
    text = file.read_text()
    file.write_text(text.replace("Nice", "Lyon", 1))
    assert f"{file}: must have the sha256" in refused(lambda: run(directory, scripted), RunChangedError)
    file.write_text(text)
    run(directory, scripted)
    assert merged(directory) == plain(directory)


def test_a_directory_that_cannot_be_written_stops_the_run_and_it_resumes(directory: Path) -> None:
    (directory / "runs").mkdir()
    (directory / "runs" / "00001").write_text("in the way")  # as for root, who may write to read-only folders
    assert "runs/00001' cannot be a directory" in refused(lambda: run(directory, scripted))
    (directory / "runs" / "00001").unlink()
    run(directory, scripted)
    assert merged(directory) == plain(directory)


def test_a_fault_in_a_user_s_code_is_raised_as_it_is(directory: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        run(directory, faulty)


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_runs_all_shards_and_says_how_to_merge(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(directory), "--engine", "ray", "--processes", "2"]) == 0
    assert f"All shards are done. Make one run of them: eldgr merge {directory}" in capsys.readouterr().err
    assert uncommitted(directory) == []


def test_the_command_makes_one_run_of_whole_pools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool, out = write_pool(tmp_path / "capitals.jsonl", numbered(8)), tmp_path / "run"
    for _ in range(2):  # the second time nothing is left to run
        assert main(["evaluate", str(pool), "--engine", "ray", "--processes", "2", "--out", str(out)]) == 0
        assert f"Written to {out}" in capsys.readouterr().err
    evaluate(heuristic_selector(), Plan([pool], tmp_path / "plain"))
    assert results(out) == results(tmp_path / "plain")
