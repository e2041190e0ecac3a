"""No signal is lost, wherever Python stands when it comes: what a handler raises there may be forgotten or changed.

Each process here sends the signal to itself, so that it comes at the same place each time.
"""

import os
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.run.evaluation import Plan, Watcher, evaluate
from tests.capitals import row, write_pool

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the signals of POSIX")

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
# A shell starts what runs in the background with ctrl-C ignored, and each child inherits that.
HEARING = "import os, signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
COMMAND = "from eldgr_dspy.programs.commands import main\nsys.exit(main())\n"
GOES_ON = "Interrupted. The replies so far are in the journal; run the same command to resume."

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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_pool(tmp_path / "capitals.jsonl", map(row, range(12)))
    (tmp_path / "rules_that_send.py").write_text(RULES)
    return tmp_path


def ended(folder: Path, number: signal.Signals, *arguments: str, first: str = "") -> tuple[int, str]:
    """The exit code of the command in a process of its own and what it said; `first` is run before it."""
    command = [sys.executable, "-c", HEARING + first + COMMAND, *arguments]
    heard = {**os.environ, "SIGNAL": str(int(number))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=heard, timeout=120)
    return done.returncode, done.stderr.strip()


def results_in(run: Path) -> set[str]:
    return {path.name for path in run.iterdir()} - {".lock", "journal.jsonl"}


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_in_the_callback_of_a_weak_reference_ends_the_run_in_order(
    folder: Path, number: signal.Signals, code: int
) -> None:
    arguments = ("evaluate", "capitals.jsonl", "--rules", "rules_that_send:sending", "--out", "run")
    told = "Stopping after the calls under way; their replies are kept. Press ctrl-C again to abandon them.\n"
    process, output = ended(folder, number, *arguments)
    assert (process, output.replace("\n\n", "\n")) == (code, told + GOES_ON)
    assert results_in(folder / "run") == set()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_second_signal_ends_a_run_that_does_not_look_for_any(folder: Path, number: signal.Signals, code: int) -> None:
    arguments = ("evaluate", "capitals.jsonl", "--rules", "rules_that_send:endless", "--out", "run")
    assert ended(folder, number, *arguments) == (code, GOES_ON)
    assert results_in(folder / "run") == set()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_ends_a_command_without_a_run_at_once(folder: Path, number: signal.Signals, code: int) -> None:
    arguments = ("bound", "capitals.jsonl", "--rules", "rules_that_send:sending")
    assert ended(folder, number, *arguments) == (code, "Interrupted. Nothing was asked.")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_while_a_file_is_written_leaves_no_part_of_it(folder: Path, number: signal.Signals, code: int) -> None:
    """A hook on the rename stands for the moment."""
    hook = f"sys.addaudithook(lambda event, _: event == 'os.rename' and os.kill(os.getpid(), {int(number)}))\n"
    arguments = ("pool", "split", "capitals.jsonl", "--out-dev", "a.jsonl", "--out-confirm", "b.jsonl")
    before = {path.name for path in folder.iterdir()}
    process, output = ended(folder, number, *arguments, first=hook)
    assert (process, output) == (code, "Interrupted.")
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("module", ["click", "dspy"])
def test_an_import_that_makes_another_error_of_what_is_raised_in_it_hides_no_signal(
    folder: Path, module: str, number: signal.Signals, code: int
) -> None:
    finder = (
        f"class Finder:\n def find_spec(self, name, *_):\n  if name == {module!r}:\n   try:\n"
        f"    os.kill(os.getpid(), {int(number)})\n    sum(range(100))\n"
        "   except BaseException:\n    raise ImportError('broken')\nsys.meta_path.insert(0, Finder())\n"
    )
    result = ended(folder, number, "evaluate", "capitals.jsonl", first=finder)
    assert result == (code, "Interrupted. Nothing was asked.")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_while_the_results_are_printed_leaves_them_in_place(
    folder: Path, number: signal.Signals, code: int
) -> None:
    out = f"import io\nclass Out(io.StringIO):\n def write(self, _): os.kill(os.getpid(), {int(number)})\n"
    result = ended(folder, number, "evaluate", "capitals.jsonl", "--out", "run", first=f"{out}sys.stdout = Out()\n")
    assert result == (code, GOES_ON)
    assert "summary.json" in results_in(folder / "run")


def test_also_a_program_that_evaluates_is_interrupted_where_the_handler_would_raise_in_vain(folder: Path) -> None:
    class Watched:
        pass

    def send() -> None:
        watched = Watched()
        reference = weakref.ref(watched, lambda _: signal.raise_signal(signal.SIGINT))
        del watched
        assert reference() is None

    told: list[str] = []
    plan = Plan([folder / "capitals.jsonl"], out=folder / "run")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            evaluate(heuristic_selector(), plan, Watcher(on_row=send, on_interrupt=lambda: told.append("interrupted")))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert told == ["interrupted"]
    assert results_in(folder / "run") == set()
