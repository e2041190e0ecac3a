"""What ends a run from outside (ctrl-C, SIGTERM, kill -9, a full disk, another process) loses and repeats nothing.

The runs are real processes of the command, and their LM is a real server on loopback.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.run.evaluation import Plan, Watcher, evaluate
from eldgr_dspy.programs.run.scheduling import THREADS
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import ScriptedLM, scripted_lm
from tests.capitals import obliging as obliging_script
from tests.capitals import row, write_pool
from tests.crash_runs import PAGES, RESULTS, calls_of, lines_of
from tests.lm_server import Answer, Asked, obliging, serving
from tests.run.processes import COMMAND, ENVIRONMENT, FIRST, ROWS, WORKERS, Run, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="the signals and limits of POSIX"),
]


# A shell starts what runs in the background with ctrl-C ignored, and each child inherits that.
class Gate:
    """Answers the first requests at once and holds the others back until it is opened.

    Once each worker waits at it, the answers to the first are all in the journal.
    """

    def __init__(self, first: int = FIRST) -> None:
        self.opened = threading.Event()
        self._left = first
        self._lock = threading.Lock()

    def __call__(self, request: Asked) -> Answer:
        with self._lock:
            self._left -= 1
            held = self._left < 0
        if held:
            self.opened.wait(60)
        return obliging(request)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The results of a run that nothing ended early."""
    with serving() as server:
        run = Run(tmp_path_factory.mktemp("undisturbed"), server)
        assert run.finished() == 0
        assert run.received == run.journaled
        return run.results()


@pytest.mark.parametrize(
    ("number", "code", "more", "command"),
    [
        (signal.SIGINT, 130, (), "the same command"),
        (signal.SIGTERM, 143, (), "the same command"),
        (signal.SIGINT, 130, ("--fresh",), "the same command without --fresh"),
        (signal.SIGTERM, 143, ("--fresh",), "the same command without --fresh"),
    ],
)
def test_a_signal_waits_for_the_calls_under_way_and_the_command_that_it_names_finishes(
    tmp_path: Path,
    undisturbed: dict[str, bytes],
    number: signal.Signals,
    code: int,
    more: tuple[str, ...],
    command: str,
) -> None:
    gate = Gate()
    with serving(gate) as server:
        run = Run(tmp_path, server)
        with run.started(*more) as process:
            until(lambda: len(server.log) == FIRST + WORKERS)
            process.send_signal(number)
            until(lambda: "Press ctrl-C again to abandon them." in run.said)
            assert process.poll() is None
            gate.opened.set()
            assert process.wait(60) == code
        assert run.said.endswith(f"Interrupted. The replies so far are in the journal; run {command} to resume.\n")
        assert "Traceback" not in run.said
        assert run.received.total() == FIRST + WORKERS
        assert run.journaled == run.received
        assert (run.results(), run.leftovers()) == ({}, set())
        assert run.finished() == 0
        assert run.results() == undisturbed
        assert run.journaled == run.received


def test_a_second_ctrl_c_abandons_the_calls_under_way(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    gate = Gate()
    with serving(gate) as server:
        run = Run(tmp_path, server)
        with run.started() as process:
            until(lambda: len(server.log) == FIRST + WORKERS)
            process.send_signal(signal.SIGINT)
            until(lambda: "ctrl-C again to abandon them." in run.said)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        assert "Interrupted. The calls under way were abandoned. The replies so far are in the journal" in run.said
        assert "Traceback" not in run.said
        assert (run.received - run.journaled).total() == WORKERS
        gate.opened.set()
        assert run.finished() == 0
        assert run.results() == undisturbed
        assert (run.received - run.journaled).total() == WORKERS


def test_a_second_process_is_refused_until_the_first_is_killed(  # hazard 90
    tmp_path: Path,
    undisturbed: dict[str, bytes],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    gate = Gate()
    with serving(gate) as server:
        run = Run(tmp_path, server)
        with run.started() as process:
            until(lambda: len(server.log) == FIRST + WORKERS)
            before = (run.out / "journal.jsonl").read_bytes()
            assert main(run.arguments) == 1
            assert f"Error: {run.out}: another process is writing to this run" in capsys.readouterr().err
            assert (run.out / "journal.jsonl").read_bytes() == before
            process.kill()
            process.wait(60)
        gate.opened.set()
        assert run.leftovers() != set()
        assert run.finished() == 0
        assert (run.results(), run.leftovers()) == (undisturbed, set())
        assert (run.received - run.journaled).total() == WORKERS


def test_a_full_disk_stops_the_run_at_once_and_leaves_the_old_results(  # hazard 89
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    """A limit on the size of files stands for a full disk: here what is written while roles are asked meets it."""
    with serving() as server:
        run = Run(tmp_path, server)
        assert run.finished("--limit", "3") == 0
        old = {path.name: path.read_bytes() for path in run.out.iterdir()}
        largest = len(old["journal.jsonl"]) + 1_000
        assert run.finished("--rules", "eldgr", largest=largest) == 3
        assert f"Stopped: {run.out}{os.sep}" in run.said and ": File too large. Raise" in run.said
        assert run.said.endswith("Then run the same command to resume; the replies so far are in the journal.\n")
        assert "Traceback" not in run.said
        assert {name: (run.out / name).read_bytes() for name in old if name != "journal.jsonl"} | {
            "journal.jsonl": (run.out / "journal.jsonl").read_bytes()[: len(old["journal.jsonl"])]
        } == old
        assert run.leftovers() == set()
        assert (run.received - run.journaled).total() <= WORKERS
        assert run.finished() == 0
        assert run.results() == undisturbed


def test_a_disk_that_is_full_at_the_end_leaves_the_old_results(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:  # hazard 89
    with serving() as server:
        run = Run(tmp_path, server)
        assert run.finished("--limit", "3") == 0
        old = {name: (run.out / name).read_bytes() for name in (*RESULTS, *PAGES)}
        assert run.finished() == 0
        largest = (run.out / "report.html").stat().st_size - 1
        for name, content in old.items():
            (run.out / name).write_bytes(content)
        assert run.finished(largest=largest) == 3
        assert {name: (run.out / name).read_bytes() for name in old} == old
        assert run.leftovers() == set()
        assert run.finished() == 0
        assert run.results() == undisturbed


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_the_command_loads_is_said_without_a_traceback(number: signal.Signals, code: int) -> None:
    """The finder stands for a signal that comes as DSPy is imported, which is what takes the time."""
    finder = (
        "import os, sys\nclass Finder:\n    def find_spec(self, name, *_):\n"
        f"        if name == 'dspy': os.kill(os.getpid(), {int(number)})\nsys.meta_path.insert(0, Finder())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", finder + COMMAND, "evaluate", "none.jsonl"], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr.strip()) == (code, "Interrupted. Nothing was asked.")


def test_an_interrupt_between_two_rows_waits_for_the_calls_of_others(tmp_path: Path) -> None:
    told: list[str] = []

    def interrupt() -> None:
        raise KeyboardInterrupt

    selector, lm, plan = judged(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        evaluate(selector, plan, Watcher(on_row=interrupt, on_interrupt=lambda: told.append("interrupted")))
    assert told == ["interrupted"]
    assert 0 < journaled_in(tmp_path) == len(lm.requests) < ROWS
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(THREADS)]
    evaluate(selector, plan)
    assert journaled_in(tmp_path) == len(lm.requests) == ROWS


def judged(folder: Path) -> tuple[Selector, ScriptedLM, Plan]:
    """A run in which each row takes one call, of a tenth of a second, into `folder / "run"`."""
    selector, lm = Selector(), scripted_lm(obliging_script, delay=0.1)
    selector.set_lm(lm)
    pool = write_pool(folder / "capitals.jsonl", map(row, range(ROWS)))
    return selector, lm, Plan([pool], folder / "run", workers=WORKERS)


def journaled_in(folder: Path) -> int:
    return calls_of(lines_of(folder / "run" / "journal.jsonl")[0]).total()
