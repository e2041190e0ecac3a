"""Workers, machines and drivers on Ray are killed: nothing is lost, and only what was under way is asked twice."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eldgr_dspy.programs.shards.running import uncommitted
from tests.run.processes import HEARING
from tests.shards.on_ray import (
    ENVIRONMENT,
    PATIENCE,
    STORE,
    N,
    asked,
    environment,
    killing,
    limited,
    require_undisturbed,
    run,
    scripted,
    slow,
    two_workers,
    wait_for,
)
from tests.shards.sharded import sharded

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL and SIGALRM")]

__all__ = ["limited"]

DRIVER = """
import sys
from pathlib import Path
from eldgr_dspy.programs.run.evaluation import Watcher
from tests.shards.on_ray import held, run, scripted

directory = Path(sys.argv[1])
hold = directory.parent / "hold"
hold.touch()
run(directory, scripted, Watcher(on_interrupt=hold.unlink), reply=held)
"""


@contextmanager
def driver(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A driver in a process group of its own, with a cluster of its own; it cannot end before it is interrupted."""
    command = [sys.executable, "-c", f"{HEARING}{DRIVER}", str(directory)]
    variables = {**os.environ, **ENVIRONMENT}
    with subprocess.Popen(command, env=variables, start_new_session=True, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def cluster() -> Iterator[None]:
    with two_workers():
        yield


@pytest.fixture
def variables() -> Iterator[None]:
    with environment():
        yield


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


@pytest.mark.usefixtures("variables")
def test_a_machine_that_is_lost_leaves_a_run_as_undisturbed(tmp_path: Path) -> None:
    import ray  # not for all tests: it replaces the factory of log records
    from ray.cluster_utils import Cluster

    directory = sharded(tmp_path, rows=4, n=N)
    machines = Cluster(
        initialize_head=True,
        connect=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": STORE},
    )
    lost = machines.add_node(num_cpus=1, object_store_memory=STORE)

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
