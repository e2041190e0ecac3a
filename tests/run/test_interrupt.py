"""What ends a run from outside (ctrl-C, SIGTERM, kill -9, a full disk, another process) loses and repeats nothing."""

import os
import random
import re
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
from eldgr_dspy.programs.testing import scripted_lm
from tests.asking.transport import GOOD
from tests.capitals import obliging as obliging_script
from tests.capitals import row, write_pool
from tests.crash_runs import PAGES, RESULTS, calls_of, lines_of
from tests.house.package_files import ROOT
from tests.lm_server import Answer, Request, obliging, serving
from tests.refusing import refuses
from tests.run.processes import COMMAND, ENVIRONMENT, FIRST, HEARING, ROWS, WORKERS, Run, until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="the signals and limits of POSIX")]


class Gate:
    """Holds requests but the first back until it is opened; once each worker waits, their answers are journaled."""

    def __init__(self, first: int = FIRST) -> None:
        self.door, self._free = threading.Event(), threading.Semaphore(first)

    def __call__(self, request: Request) -> Answer:
        if not self._free.acquire(blocking=False):
            self.door.wait(60)
        return obliging(request)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The results of a run that nothing ended early."""
    with serving() as server:
        run = Run(tmp_path_factory.mktemp("undisturbed"), server)
        assert (run.finish(), run.requests) == (0, run.calls)
        return run.results()


@pytest.mark.parametrize("more", [(), ("--fresh",)])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_waits_for_the_calls_under_way_and_the_command_that_it_names_finishes(
    tmp_path: Path, whole: dict[str, bytes], number: signal.Signals, code: int, more: tuple[str, ...]
) -> None:
    command = "the same command without --fresh" if more else "the same command"
    gate = Gate()
    with serving(gate) as server:
        run = Run(tmp_path, server)
        with run.start(*more) as process:
            until(lambda: len(server.log) == FIRST + WORKERS)
            process.send_signal(number)
            until(lambda: "Press ctrl-C again to abandon them." in run.stderr)
            assert process.poll() is None
            gate.door.set()
            assert process.wait(60) == code
        assert run.stderr.endswith(f"Interrupted. The replies so far are in the journal; run {command} to resume.\n")
        assert "Traceback" not in run.stderr
        assert (run.requests.total(), run.calls) == (FIRST + WORKERS, run.requests)
        assert (run.results(), run.leftovers()) == ({}, set())
        assert (run.finish(), run.results(), run.calls) == (0, whole, run.requests)


def test_a_second_ctrl_c_abandons_the_calls_under_way(tmp_path: Path, whole: dict[str, bytes]) -> None:
    gate = Gate()
    with serving(gate) as server:
        run = Run(tmp_path, server)
        with run.start() as process:
            until(lambda: len(server.log) == FIRST + WORKERS)
            process.send_signal(signal.SIGINT)
            until(lambda: "ctrl-C again to abandon them." in run.stderr)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        assert "Interrupted. The calls under way were abandoned. The replies so far are in the journal" in run.stderr
        assert "Traceback" not in run.stderr
        assert (run.requests - run.calls).total() == WORKERS
        gate.door.set()
        assert (run.finish(), run.results()) == (0, whole)
        assert (run.requests - run.calls).total() == WORKERS


def test_a_second_process_is_refused_until_the_first_is_killed(  # hazard 90
    tmp_path: Path, whole: dict[str, bytes], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    gate = Gate()
    with serving(gate) as server:
        run = Run(tmp_path, server)
        with run.start() as process:
            until(lambda: len(server.log) == FIRST + WORKERS)
            before = (run.out / "journal.jsonl").read_bytes()
            assert main(run.arguments) == 1
            assert f"Error: {run.out}: another process is writing to this run" in capsys.readouterr().err
            assert (run.out / "journal.jsonl").read_bytes() == before
            process.kill()
            process.wait(60)
        gate.door.set()
        assert run.leftovers() != set()
        assert (run.finish(), run.results(), run.leftovers()) == (0, whole, set())
        assert (run.requests - run.calls).total() == WORKERS


def test_a_full_disk_stops_a_run_and_keeps_results(tmp_path: Path, whole: dict[str, bytes]) -> None:  # hazard 89
    """A limit on the size of files stands for a full disk: here what is written while roles are asked meets it."""
    with serving() as server:
        run = Run(tmp_path, server)
        assert run.finish("--limit", "3") == 0
        old = {path.name: path.read_bytes() for path in run.out.iterdir()}
        largest = len(old["journal.jsonl"]) + 1_000
        assert run.finish("--rules", "eldgr", largest=largest) == 3
        assert f"Stopped: {run.out}{os.sep}" in run.stderr and ": File too large. Raise" in run.stderr
        assert run.stderr.endswith("Then run the same command to resume; the replies so far are in the journal.\n")
        assert "Traceback" not in run.stderr
        files = {name: (run.out / name).read_bytes() for name in old}
        assert files | {"journal.jsonl": files["journal.jsonl"][: len(old["journal.jsonl"])]} == old
        assert (run.leftovers(), (run.requests - run.calls).total() <= WORKERS) == (set(), True)
        assert (run.finish(), run.results()) == (0, whole)


def test_a_disk_full_at_the_end_keeps_the_results(tmp_path: Path, whole: dict[str, bytes]) -> None:  # hazard 89
    with serving() as server:
        run = Run(tmp_path, server)
        assert run.finish("--limit", "3") == 0
        old = {name: (run.out / name).read_bytes() for name in (*RESULTS, *PAGES)}
        assert run.finish() == 0
        largest = (run.out / "report.html").stat().st_size - 1
        for name, content in old.items():
            (run.out / name).write_bytes(content)
        assert run.finish(largest=largest) == 3
        assert {name: (run.out / name).read_bytes() for name in old} == old
        assert (run.leftovers(), run.finish(), run.results()) == (set(), 0, whole)


@pytest.mark.skipif(sys.platform != "linux", reason="the harness waits for its children by pidfd")
def test_killed_runs_finish_as_undisturbed_ones_do_and_lose_only_calls_in_flight() -> None:  # hazard 88
    """`make crash` does this a thousand times."""
    command = [sys.executable, "-m", "tests.crash", "--kills", "24", "--seed", "7", "--jobs", "1"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert (result.returncode, result.stderr) == (0, "")
    kills, runs = map(int, re.findall(r"\d+", result.stdout)[:2])
    assert (kills, runs > 0) == (24, True)
    counts = re.findall(r"received (\d+) requests: (\d+) are journaled .*, (\d+) were in flight", result.stdout)[0]
    requests, entries, in_flight = map(int, counts)
    assert requests == entries + in_flight


def test_an_interrupt_between_two_rows_waits_for_the_calls_of_others(tmp_path: Path) -> None:
    calls: list[str] = []

    def interrupt() -> None:
        raise KeyboardInterrupt

    def entries() -> int:
        return calls_of(lines_of(tmp_path / "run" / "journal.jsonl")[0]).total()

    selector, lm = Selector(), scripted_lm(obliging_script, delay=0.1)
    selector.set_lm(lm)
    pool = write_pool(tmp_path / "capitals.jsonl", map(row, range(ROWS)))
    plan = Plan([pool], tmp_path / "run", workers=WORKERS)
    watcher = Watcher(on_row=interrupt, on_interrupt=lambda: calls.append("interrupted"))
    refuses(KeyboardInterrupt, "^$", evaluate, selector, plan, watcher)
    assert calls == ["interrupted"]
    assert 0 < entries() == len(lm.requests) < ROWS
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(THREADS)]
    evaluate(selector, plan)
    assert entries() == len(lm.requests) == ROWS


def kill(process: "subprocess.Popen[bytes]", run: Run) -> None:
    process.kill()


def interrupted_twice(process: "subprocess.Popen[bytes]", run: Run) -> None:
    """A run that has reached its limit waits for its calls, and the first ctrl-C abandons them, or comes too late."""
    process.send_signal(signal.SIGINT)
    until(lambda: "Press ctrl-C again to abandon them." in run.stderr or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    code, reply = process.wait(60), run.stderr
    if "Press ctrl-C again" in reply:
        assert code == 130
    elif code == 3:
        assert " allows " in reply
    else:
        assert code in (130, -signal.SIGINT)  # the latter before the command listens


ENDS = (interrupted_twice, kill, kill, interrupted_twice, kill)


def test_a_run_that_is_killed_five_times_sends_no_more_than_was_under_way(tmp_path: Path) -> None:
    """The server answers one request in five, and lets the others wait."""
    draw, door = random.Random(14), threading.Event()

    def answer(request: Request) -> Answer:
        if draw.random() < 0.8:
            door.wait(30)
        return GOOD

    with serving(answer) as server:
        run = Run(tmp_path, server)
        for end in ENDS:  # once the server has seen something of it
            count = len(server.log)
            with run.start("--workers", "8", "--max-calls", "10") as process:
                until(lambda: len(server.log) > count or process.poll() is not None)  # noqa: B023 -- called here
                if process.poll() is None:
                    end(process, run)
        server.behaviour = lambda request: GOOD
        assert run.finish("--workers", "8", "--max-calls", "10") == 3
        assert len(server.log) <= 10 + 8 * len(ENDS)
        assert "10 requests were sent, and --max-calls allows 10; give a higher limit to resume." in run.stderr
        assert run.finish() == 0
        door.set()


# Python prints and forgets what is raised in the callback of a weak reference.
RULES = """
import os, weakref
from eldgr_dspy.decision import Choice

class Watched:
    pass

def send():
    watched = Watched()
    reference = weakref.ref(watched, lambda _: os.kill(os.getpid(), int(os.environ["SIGNAL"])))
    del watched

def sending(case):
    send()
    return Choice("consensus", case.consensus)
    yield

def endless(case):
    while True:
        send()
    yield
"""


def finder(module: str, body: str) -> str:
    """The finder stands for a signal that comes as a module is imported, which is what takes the time."""
    head = f"class Finder:\n def find_spec(self, name, *_):\n  if name == {module!r}:\n"
    return f"{head}{body}sys.meta_path.insert(0, Finder())\n"


KILL = "os.kill(os.getpid(), int(os.environ['SIGNAL']))"
ANOTHER = f"   try:\n    {KILL}\n    sum(range(100))\n   except BaseException:\n    raise ImportError('broken')\n"
HOOK = f"sys.addaudithook(lambda event, _: event == 'os.rename' and {KILL})\n"  # stands for the moment
PRINTING = f"import io\nclass Out(io.StringIO):\n def write(self, _): {KILL}\nsys.stdout = Out()\n"
EVALUATE = ("evaluate", "capitals.jsonl", "--out", "run")
SPLIT = ("pool", "split", "capitals.jsonl", "--out-dev", "a.jsonl", "--out-confirm", "b.jsonl")
STOPPING = "Stopping after the calls under way; their replies are kept. Press ctrl-C again to abandon them.\n"
RESUME = "Interrupted. The replies so far are in the journal; run the same command to resume."
NOTHING = "Interrupted. Nothing was asked."
MOMENTS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "in the callback of a weak reference": ((*EVALUATE, "--rules", "rules_that_send:sending"), "", STOPPING + RESUME),
    "twice, in a rule that looks for none": ((*EVALUATE, "--rules", "rules_that_send:endless"), "", RESUME),
    "in a command without a run": (("bound", "capitals.jsonl", "--rules", "rules_that_send:sending"), "", NOTHING),
    "as DSPy is imported": (EVALUATE, finder("dspy", f"   {KILL}\n"), NOTHING),
    "in an import of DSPy that makes another error of it": (EVALUATE, finder("dspy", ANOTHER), NOTHING),
    "in an import of click that makes another error of it": (EVALUATE, finder("click", ANOTHER), NOTHING),
    "while a file is written": (SPLIT, HOOK, "Interrupted."),
    "while the results are printed": (EVALUATE, PRINTING, RESUME),
}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(("arguments", "first", "output"), MOMENTS.values(), ids=MOMENTS)
def test_a_signal_ends_the_command_in_order_whenever_it_comes(
    tmp_path: Path, arguments: tuple[str, ...], first: str, output: str, number: signal.Signals, code: int
) -> None:
    """It leaves no part of a file, and the results where they were in place."""
    write_pool(tmp_path / "capitals.jsonl", map(row, range(12)))
    (tmp_path / "rules_that_send.py").write_text(RULES)
    command = [sys.executable, "-c", f"{HEARING}import os, sys\n{first}{COMMAND}", *arguments]
    env = {**os.environ, "SIGNAL": str(int(number))}
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=env, timeout=120)
    assert (result.returncode, result.stderr.strip().replace("\n\n", "\n")) == (code, output)
    files = {path.name for path in tmp_path.iterdir()} - {"run", "__pycache__"}
    assert files == {"capitals.jsonl", "rules_that_send.py"}
    results = {path.name for path in (tmp_path / "run").glob("*")} - {".lock", "journal.jsonl"}
    assert "summary.json" in results if first is PRINTING else results == set()
