"""A run on Ray is that of one process, whichever worker or driver is killed; only what was under way is asked again."""

import gc
import os
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.errors import ArgumentError, RunStoppedError
from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.judges.repeated_judges import SwapConsistent
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.ray_engine import evaluate_on_ray
from eldgr_dspy.programs.selector import Selector
from tests.asking.transport import FINAL, GOOD
from tests.capitals import row, write_pool
from tests.crash_runs import drop_times
from tests.house.doc_blocks import ROOT
from tests.lm_server import Answer, LMServer, serving
from tests.run.processes import Run, until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")]
N, WORKERS = 40, 6
EACH = 4  # requests a question: of the first judge, twice of the second, and of the repairer
VARIABLES = {"PYTHONPATH": str(ROOT), "RAY_worker_niceness": "0", "no_proxy": "127.0.0.1", "OPENAI_API_KEY": "key"}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Two CPUs on this machine, whose processes find the tests."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        for name, value in VARIABLES.items():
            patch.setenv(name, value)
        try:
            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80 * 2**20)
            yield
        finally:
            ray.shutdown()
            with warnings.catch_warnings():  # of processes that Ray has ended and not waited for
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()


class Deadly(dspy.Module):
    """A judge that ends its process on one question; `folder` is where each process leaves its number."""

    def __init__(self, judge: dspy.Module) -> None:
        super().__init__()
        self.judge = judge

    def forward(self, **inputs: Any) -> Any:
        if inputs["question"].endswith("number 7?"):
            os.kill(os.getpid(), signal.SIGKILL)
        return self.judge(**inputs)


@contextmanager
def prepare(folder: Path, address: str, how: str = "", **plan: Any) -> Iterator[tuple[Selector, Plan]]:
    """Two judges by name, one of which asks in two orders, at a server."""
    folder.joinpath(f"pid-{os.getpid()}").touch()
    lm = dspy.LM("openai/gpt-4o-mini", api_base=address, api_key="key", cache=False, num_retries=0)
    selector, judges = Selector(), dict[str, dspy.Module]({"a": Judge(), "b": SwapConsistent(Judge())})
    if how == "deadly":
        judges["a"] = Deadly(judges["a"])
    for module in (selector, *judges.values()):
        module.set_lm(lm)
    if how == "another" and not folder.joinpath(f"driver-{os.getpid()}").exists():
        judges["b"] = SwapConsistent(Judge(), orders=3)
    yield selector, Plan([folder / "capitals.jsonl"], folder / "ray", judges=judges, workers=WORKERS, **plan)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_pool(tmp_path / "capitals.jsonl", map(row, range(N)))
    tmp_path.joinpath(f"driver-{os.getpid()}").touch()
    return tmp_path


def results(out: Path) -> dict[str, bytes]:
    return {name: drop_times(out / name) for name in ("decisions.jsonl", "summary.json", "record.json")}


def here(folder: Path, server: LMServer, how: str = "", **plan: Any) -> dict[str, bytes]:
    """The results of the same run in this process."""
    with prepare(folder, server.address, how, **plan) as (selector, source):
        evaluate(selector, Plan(source.pools, folder / "here", judges=source.judges, workers=WORKERS, **plan))
    return results(folder / "here")


def test_a_run_on_ray_is_that_of_one_process(folder: Path) -> None:
    with serving(lambda request: GOOD) as server:
        summary = evaluate_on_ray(partial(prepare, folder, server.address, max_calls=10 * N, max_cost=100.0))
        assert summary["consultations"]["judge[b]"]["calls"] == 2 * N
        count = len(server.log)
        assert results(folder / "ray") == here(folder, server, max_calls=10 * N, max_cost=100.0)
        assert count == EACH * N == len(server.log) / 2
        evaluate_on_ray(partial(prepare, folder, server.address))
        assert len(server.log) == 2 * count  # resumed, it asks nobody


def test_workers_are_killed_and_nothing_is_lost(folder: Path) -> None:
    kills, end = list[int](), threading.Event()

    def kill() -> None:
        while not end.wait(1.5) and len(kills) < 4:
            others = [int(path.name[4:]) for path in folder.glob("pid-*") if path.name != f"pid-{os.getpid()}"]
            for pid in others[:1]:
                folder.joinpath(f"pid-{pid}").unlink()
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    kills.append(pid)

    with serving(lambda request: Answer(FINAL, delay=0.3)) as server:
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            evaluate_on_ray(partial(prepare, folder, server.address))
        finally:
            end.set()
            killer.join()
        again = len(server.log) - EACH * N
        counts = Counter(one.key for one in read_journal(folder / "ray" / "journal.jsonl"))
        assert kills and set(counts.values()) == {1}
        assert 0 <= again <= 2 * WORKERS * len(kills)  # of the requests under way; the judge in two orders has two
        assert results(folder / "ray") == here(folder, server)


def test_a_question_that_ends_every_process_counts_as_failed(folder: Path) -> None:
    with serving(lambda request: GOOD) as server:
        summary = evaluate_on_ray(partial(prepare, folder, server.address, "deadly", max_failures=1))
    assert summary["pools"]["capitals"]["n_failed"] == 1
    failures = [one for one in read_journal(folder / "ray" / "journal.jsonl") if not one.settled]
    assert [(one.id, one.label) for one in failures] == [("q7", "judge[a]")]
    assert "processes in which it was asked ended" in str(failures[0].reason)


def test_a_limit_holds_but_for_what_is_under_way_and_another_run_finishes(folder: Path) -> None:
    with serving(lambda request: GOOD) as server:
        with pytest.raises(RunStoppedError, match="--max-calls allows 30; give a higher limit to resume"):
            evaluate_on_ray(partial(prepare, folder, server.address, max_calls=30))
        assert 30 <= len(server.log) <= 30 + WORKERS
        with prepare(folder, server.address) as (selector, plan):
            evaluate(selector, plan)  # in this process
        assert len(server.log) == EACH * N


def test_a_worker_that_makes_another_role_is_refused_before_anything_is_asked(folder: Path) -> None:
    with serving(lambda request: GOOD) as server:
        with pytest.raises(ArgumentError, match=r"the judge\[b\] must be made as in this process; it has another"):
            evaluate_on_ray(partial(prepare, folder, server.address, "another"))
        assert not server.log


def test_a_driver_that_is_killed_is_resumed_by_the_same_command(tmp_path: Path) -> None:
    options = ("--engine", "ray", "--rules", "majority,judge")
    with serving(lambda request: Answer(FINAL, delay=0.2)) as server:
        run = Run(tmp_path, server)
        for least in (1, 8):
            with run.start(*options) as process:
                until(lambda: len(server.log) >= least or process.poll() is not None)  # noqa: B023 -- called here
                process.kill()
                time.sleep(0.5)  # for its processes to end
        count = len(server.log)
        assert run.finish(*options) == 0
        assert sum(run.requests.values()) <= sum(run.calls.values()) + 2 * 4
        assert len(server.log) > count
        counts = Counter(one.key for one in read_journal(run.out / "journal.jsonl") if one.settled)
        assert set(counts.values()) == {1}


def test_without_ray_the_engine_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    pool = write_pool(tmp_path / "capitals.jsonl", [row(0)])
    assert main(["evaluate", str(pool), "--engine", "ray", "--out", str(tmp_path / "run")]) == 1
    assert "pip install 'eldgr_dspy[ray]'" in capsys.readouterr().err
