"""No signal is lost, wherever Python stands when it comes: what a handler raises there may be forgotten or changed."""

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

# Each process sends the signal to itself, so that it comes at the same place each time.
# A shell starts what runs in the background with ctrl-C ignored, and each child inherits that.
HEARING = "import os, signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
COMMAND = "from eldgr_dspy.programs.commands import main\nsys.exit(main())\n"

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


def results_in(run: Path) -> set[str]:
    return {path.name for path in run.glob("*")} - {".lock", "journal.jsonl"}


def finder(module: str, body: str) -> str:
    """The finder stands for a signal that comes as a module is imported, which is what takes the time."""
    head = f"class Finder:\n def find_spec(self, name, *_):\n  if name == {module!r}:\n"
    return f"{head}{body}sys.meta_path.insert(0, Finder())\n"


KILL = "os.kill(os.getpid(), int(os.environ['SIGNAL']))"
CHANGED = f"   try:\n    {KILL}\n    sum(range(100))\n   except BaseException:\n    raise ImportError('broken')\n"
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
    "in an import of DSPy that makes another error of it": (EVALUATE, finder("dspy", CHANGED), NOTHING),
    "in an import of click that makes another error of it": (EVALUATE, finder("click", CHANGED), NOTHING),
    "while a file is written": (SPLIT, HOOK, "Interrupted."),
    "while the results are printed": (EVALUATE, PRINTING, RESUME),
}


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(("arguments", "first", "said"), MOMENTS.values(), ids=MOMENTS)
def test_a_signal_ends_the_command_in_order_whenever_it_comes(
    folder: Path, arguments: tuple[str, ...], first: str, said: str, number: signal.Signals, code: int
) -> None:
    """It leaves no part of a file, and the results where they were in place."""
    before = {path.name for path in folder.iterdir()}
    command = [sys.executable, "-c", HEARING + first + COMMAND, *arguments]
    heard = {**os.environ, "SIGNAL": str(int(number))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=heard, timeout=120)
    assert (done.returncode, done.stderr.strip().replace("\n\n", "\n")) == (code, said)
    assert {path.name for path in folder.iterdir()} - {"run", "__pycache__"} == before
    assert "summary.json" in results_in(folder / "run") if first is PRINTING else results_in(folder / "run") == set()


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
