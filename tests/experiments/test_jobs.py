"""A job is done once: finished ones are kept when another fails, is interrupted or is killed."""

import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.experiments.partition.jobs import Job, do_all, found_by, seconds_of
from tests.experiments.working import die, fail, interrupt, note

ROOT = Path(__file__).resolve().parents[2]


def three(folder: Path, second: Job) -> list[Job]:
    log = folder / "log"
    return [Job("1/first", note, (log, "first")), second, Job("1/third", note, (log, "third"))]


def do(folder: Path, jobs: list[Job], processes: int = 1) -> list[str]:
    replies = list[str]()
    do_all(folder / "jobs", jobs, processes, replies.append)
    return sorted(line.partition(":")[0] for line in replies)


def test_a_finished_job_is_not_done_again_and_what_it_prints_is_beside_its_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [Job("1/a", note, (tmp_path / "log", "a")), Job("1/a.b", note, (tmp_path / "log", "a.b"))]
    assert do(tmp_path, jobs) == ["1/a", "1/a.b"]
    assert do(tmp_path, jobs) == []
    assert (tmp_path / "log").read_text("utf-8") == "a\na.b\n"
    assert found_by(tmp_path / "jobs", "1/a.b") == {"text": "a.b"}
    assert list(seconds_of(tmp_path / "jobs")) == ["1/a.b", "1/a"]
    do(tmp_path, [Job("1/c", print, ("hello",))])
    assert (tmp_path / "jobs" / "1" / "c.log").read_text("utf-8") == "hello\n"
    assert capsys.readouterr().out == ""
    assert found_by(tmp_path / "jobs", "1/c") == {}


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_failed_job_is_raised_and_leaves_finished_ones(processes: int, tmp_path: Path) -> None:
    jobs = three(tmp_path, Job("1/second", fail, (tmp_path / "there",)))
    with pytest.raises(ValueError, match="it is not there"):
        do(tmp_path, jobs, processes)
    assert (tmp_path / "jobs" / "1" / "first.json").exists()
    assert not (tmp_path / "jobs" / "1" / "second.json").exists()
    (tmp_path / "there").touch()
    assert "1/first" not in do(tmp_path, jobs, processes)
    assert sorted((tmp_path / "log").read_text("utf-8").split()) == ["first", "third"]


def test_an_interrupted_job_is_done_again(tmp_path: Path) -> None:
    jobs = three(tmp_path, Job("1/second", interrupt, (tmp_path / "half",)))
    with pytest.raises(KeyboardInterrupt):
        do(tmp_path, jobs)
    assert do(tmp_path, jobs) == ["1/second", "1/third"]
    assert found_by(tmp_path / "jobs", "1/second") == {"again": True}


@pytest.mark.slow
def test_a_job_whose_process_was_killed_is_done_again(tmp_path: Path) -> None:
    jobs = three(tmp_path, Job("1/second", die, (tmp_path / "half",)))
    file = tmp_path / "jobs.pickle"
    file.write_bytes(pickle.dumps((tmp_path / "jobs", jobs, 1, print)))
    script = "import pickle, sys; from benchmarks.experiments.partition.jobs import do_all;"
    command = [sys.executable, "-c", f"{script} do_all(*pickle.load(open(sys.argv[1], 'rb')))", str(file)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert do(tmp_path, jobs) == ["1/second", "1/third"]
