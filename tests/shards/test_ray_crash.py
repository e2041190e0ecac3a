"""Workers, machines and drivers on Ray are killed: nothing is lost, and only what was under way is asked twice."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.shards.merging import merge
from eldgr_dspy.programs.shards.running import uncommitted
from tests.capitals import obliging, selector_with
from tests.house.doc_blocks import ROOT
from tests.shards.on_ray import limited, run, scripted, slow
from tests.shards.sharded import results, sharded

ray = pytest.importorskip("ray", reason="Ray is not installed; the extra `ray` has it")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL and SIGALRM")]

__all__ = ["limited"]

DRIVER = """
import sys
from pathlib import Path
from tests.shards.on_ray import run, scripted, slow

run(Path(sys.argv[1]), scripted, reply=slow)
"""
N = 40
PATIENCE = 120.0  # seconds, for a machine that is busy


def asked(directory: Path) -> list[tuple[int, str]]:
    """Each request so far: the process that sent it, and the question."""
    path = directory.parent / "asked.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(process), question) for process, question in map(str.split, lines)]


def wait_for(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def require_undisturbed(directory: Path, most_again: int) -> None:
    """Hold the merged run against that of one process, and the requests against the journal."""
    assert uncommitted(directory) == []
    merge(directory, directory.parent / "merged")
    plain = Plan([directory.parent / "capitals.jsonl"], directory.parent / "plain")
    evaluate(selector_with(obliging)[0], plain)
    assert results(directory.parent / "merged") == results(directory.parent / "plain")
    keys = [entry.key for entry in read_journal(directory.parent / "merged" / "journal.jsonl")]
    assert len(keys) == len(set(keys)) == N
    times = Counter(question for _, question in asked(directory))
    assert len(times) == N
    assert times.total() - N <= most_again


@contextmanager
def killing(directory: Path, kills: int, seed: int) -> Iterator[list[int]]:
    """Kill workers meanwhile, each at a random moment after it has asked something; gives which were."""
    draw, killed = random.Random(seed), list[int]()

    def kill() -> None:
        while len(killed) < kills and len(asked(directory)) < 10 * N:
            alive = [process for process, _ in asked(directory)[-3:] if process not in killed]
            if alive:
                time.sleep(draw.uniform(0, 0.2))
                with suppress(ProcessLookupError):
                    os.kill(alive[-1], signal.SIGKILL)
                killed.append(alive[-1])
            time.sleep(0.02)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    yield killed
    thread.join(PATIENCE)


@contextmanager
def driver(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A driver in a process group of its own, with a cluster of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(directory)], env=environment, start_new_session=True, stderr=subprocess.PIPE
    ) as process:
        yield process
        if process.poll() is None:
            process.kill()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80 * 2**20)
    yield
    ray.shutdown()


@pytest.mark.usefixtures("cluster")
def test_five_kills_of_workers_leave_a_run_as_undisturbed(tmp_path: Path) -> None:
    directory = sharded(tmp_path, rows=4, n=N)
    with killing(directory, 5, seed=1) as killed:
        run(directory, scripted, reply=slow)
    assert len(killed) == 5
    require_undisturbed(directory, most_again=5)


@pytest.mark.usefixtures("cluster")
def test_a_driver_that_is_killed_is_resumed_by_another(tmp_path: Path) -> None:
    directory = sharded(tmp_path, rows=4, n=N)
    with driver(directory) as process:
        wait_for(lambda: len(asked(directory)) > 6 or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
    assert uncommitted(directory)
    run(directory, scripted, reply=slow)
    require_undisturbed(directory, most_again=2)


def test_an_interrupt_waits_for_the_calls_under_way_and_the_run_resumes(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    directory = sharded(tmp_path, rows=4, n=N)
    with driver(directory) as process:
        wait_for(lambda: len(asked(directory)) > 6 or process.poll() is not None)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    assert b"KeyboardInterrupt" in said
    before = len(asked(directory))
    assert before < N
    request.getfixturevalue("cluster")
    run(directory, scripted, reply=slow)
    require_undisturbed(directory, most_again=0)


def test_a_machine_that_is_lost_leaves_a_run_as_undisturbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    directory = sharded(tmp_path, rows=4, n=N)
    machines = Cluster(
        initialize_head=True,
        connect=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20},
    )
    lost = machines.add_node(num_cpus=1, object_store_memory=80 * 2**20)

    def lose() -> None:
        wait_for(lambda: len({process for process, _ in asked(directory)}) == 2)
        machines.remove_node(lost, allow_graceful=False)

    thread = threading.Thread(target=lose, daemon=True)
    try:
        thread.start()
        run(directory, scripted, reply=slow)
        thread.join(PATIENCE)
    finally:
        ray.shutdown()
        machines.shutdown()
    require_undisturbed(directory, most_again=1)
