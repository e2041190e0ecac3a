"""Shards that are decided in several processes make the run that they make in one."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eldgr_dspy.errors import ArgumentError, RunChangedError, RunStoppedError
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.shards.merging import merge
from eldgr_dspy.programs.shards.sharding import shard_pools
from tests.capitals import obliging, row, selector_with, write_pool
from tests.finished_runs import numbered
from tests.refusing import refused
from tests.run.processes import COMMAND
from tests.shards.elsewhere import HELD_BY
from tests.shards.sharded import results, run_all, sharded

WRITTEN = ("decisions.jsonl", "questions.html", "record.json", "report.html", "summary.json")


def written(run: Path) -> dict[str, bytes]:
    """The results of a run as they are on the disk."""
    return {name: (run / name).read_bytes() for name in WRITTEN}


@pytest.mark.slow
def test_two_processes_write_what_one_writes(tmp_path: Path) -> None:
    copies = [row(number, question=f"What is capital number {number % 4}?", gold=["Paris"]) for number in range(9)]
    pools = [write_pool(tmp_path / "capitals.jsonl", numbered(8)), write_pool(tmp_path / "copies.jsonl", copies)]
    evaluate(selector_with(obliging)[0], Plan(pools, tmp_path / "plain"))
    shard_pools(pools, tmp_path / "shards", 3)
    run_all(tmp_path / "shards", lambda: selector_with(obliging)[0])
    merge(tmp_path / "shards", tmp_path / "one")
    merge(tmp_path / "shards", tmp_path / "two", 2)
    assert written(tmp_path / "two") == written(tmp_path / "one")
    assert results(tmp_path / "two") == results(tmp_path / "plain")
    assert read_run(tmp_path / "two").finished()
    assert leftovers(tmp_path / "two") == leftovers(tmp_path / "one") == []


def leftovers(run: Path) -> list[Path]:
    return [*run.glob(".*.tmp")]


HELD = "tests.shards.elsewhere:held"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "kind", "said"),
    [
        ("curious", RunChangedError, "journal.jsonl: lacks the judge of question"),
        ("ended", RunStoppedError, "A process that decided shards has ended"),
    ],
)
def test_an_error_of_a_process_is_raised_as_it_is_and_its_end_is_told(
    tmp_path: Path, rule: str, kind: type[Exception], said: str
) -> None:
    directory = sharded(tmp_path)
    own = f"tests.shards.elsewhere:{rule}"
    run_all(directory, rules=["majority", own])
    assert f"run.json names '{own}'" in refused(lambda: merge(directory, tmp_path / "run", 2), ArgumentError)
    assert said in refused(lambda: merge(directory, tmp_path / "run", 2, rules=[own]), kind)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [".lock", "journal.jsonl"]
    assert multiprocessing.active_children() == []
    assert (
        merge(directory, tmp_path / "run", rules=[own])["pools"]["capitals"]["n"] == 8
    )  # in this process the rule behaves


@contextmanager
def held(folder: Path) -> Iterator[tuple["subprocess.Popen[str]", Callable[[], None]]]:
    """The command that merges, one of whose processes reads a pipe, and what ends the pipe for all of them."""
    directory, pipe = sharded(folder), folder / "pipe"
    run_all(directory, rules=["majority", HELD])
    os.mkfifo(pipe)
    arguments = ["merge", str(directory), "--out", str(folder / "run"), "--processes", "2", "--rules", HELD]
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        env={**os.environ, HELD_BY: str(pipe)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        writing = os.open(pipe, os.O_WRONLY)  # which waits for a reader

        def let_go() -> None:
            pipe.unlink()  # first, for a process that opened the pipe afterwards would wait for a writer
            os.close(writing)

        yield process, let_go


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals and named pipes")
def test_ctrl_c_ends_all_processes_in_order(tmp_path: Path) -> None:
    with held(tmp_path) as (process, let_go):
        os.killpg(process.pid, signal.SIGINT)
        let_go()
        _, said = process.communicate()
    assert (process.returncode, said.strip()) == (130, "Interrupted.")
    assert leftovers(tmp_path / "run") == []
    assert not (tmp_path / "run" / "summary.json").exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals and named pipes")
def test_processes_end_with_the_one_that_started_them_and_what_is_left_is_removed(tmp_path: Path) -> None:
    with held(tmp_path) as (process, let_go):
        process.kill()
        process.communicate()  # until no process has its output open
        let_go()
    assert leftovers(tmp_path / "run")
    merge(tmp_path / "shards", tmp_path / "run", rules=[HELD])
    assert leftovers(tmp_path / "run") == []


def test_processes_must_be_a_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "processes must be at least 1; got 0" in refused(lambda: merge(tmp_path, processes=0), ArgumentError)
    assert main(["merge", str(tmp_path), "--processes", "0"]) == 2
    assert "--processes" in capsys.readouterr().err


def test_a_pool_of_one_shard_needs_no_other_process(tmp_path: Path) -> None:
    directory = sharded(tmp_path, rows=9)
    rules = ["majority", "tests.shards.elsewhere:ended"]
    run_all(directory, heuristic_selector, rules=rules)
    assert merge(directory, tmp_path / "run", 8, rules=rules)["pools"]["capitals"]["n"] == 8
