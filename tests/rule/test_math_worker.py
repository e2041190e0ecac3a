"""The process that compares expressions: what ends it, what replaces it, and that it ends with its program."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep

import pytest

from eldgr_dspy.answer_types.comparing import Comparison, compare

pytest.importorskip("math_verify", reason="math_verify is not installed; the extra `test` has it")

if not Path("/proc/self/task").exists():
    pytest.skip("this system does not list a program's processes in /proc", allow_module_level=True)


def workers() -> list[int]:
    """Return the processes that compare for this one."""
    children = (file.read_text().split() for file in Path("/proc/self/task").glob("*/children"))
    return [
        int(pid)
        for pids in children
        for pid in pids
        if b"comparing import serve" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def runs(pid: int) -> bool:
    """Return whether a process runs; one that ended may be listed until somebody asks how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()[0] != "Z"
    except OSError:
        return False


FRESH = (f"{n}/7" for n in range(os.getpid() * 1_000, 10**9))
"""Texts that were not compared before."""


def compares() -> bool:
    """Return whether the process does what it is for, on a pair that is not remembered."""
    text = next(FRESH)
    return compare(text, f"{text}+0", both=True).equal is True and compare(text, "x", both=True).equal is False


def test_there_is_one_process_and_it_is_kept() -> None:
    assert compares()
    (first,) = workers()
    assert compares() and workers() == [first]


@pytest.mark.parametrize(
    "bomb",
    ["9^{9^{9}}", r"\sum_{i=1}^{1000000000} \frac{1}{i}", "|x|" * 60, "1000000000!", "{" * 450],
    ids=["a whole number", "a loop", "the parser", "a factorial", "braces"],
)
def test_a_pair_without_guards_ends_at_the_deadline_and_the_next_is_compared(bomb: str) -> None:
    assert compare(bomb, "5", both=True, seconds=0.5) == Comparison(None, 0.5)
    assert workers() == []
    assert compares()


def test_memory_is_limited_and_the_process_survives_it() -> None:
    script = "from eldgr_dspy.answer_types import comparing as m; m.MEMORY = 160 << 20; m.serve()"
    requests = [[], [60, "2^{30000000000}", "5", True], [60, "1/2", "0.5", True]]
    lines = "".join(f"{json.dumps(request)}\n" for request in requests)
    result = subprocess.run(
        [sys.executable, "-c", script], input=lines, capture_output=True, text=True, check=True, timeout=120
    )
    ready, *replies = map(json.loads, result.stdout.splitlines())
    assert (ready, [equal for equal, _ in replies]) == (None, [False, True])


@pytest.mark.skipif(not hasattr(signal, "SIGPROF"), reason="this system does not limit processor time by a signal")
def test_a_program_that_ignores_the_signal_of_the_limit_does_not_lift_it() -> None:
    ignoring = (
        "import signal; signal.signal(signal.SIGPROF, signal.SIG_IGN)\n"
        "from eldgr_dspy.answer_types import comparing; comparing.serve()"
    )
    lines = f"[]\n{json.dumps([0.2, '9^{9^{9}}', '5', True])}\n"
    result = subprocess.run([sys.executable, "-c", ignoring], input=lines, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (-signal.SIGPROF, "null\n")


def test_a_process_that_is_killed_between_two_questions_is_replaced() -> None:
    assert compares()
    (first,) = workers()
    os.kill(first, signal.SIGKILL)
    while runs(first):
        sleep(0.01)
    assert compares() and workers() != [first]


def test_a_pair_during_which_the_process_is_killed_is_undefined_and_the_next_is_compared() -> None:
    assert compares()
    (first,) = workers()
    os.kill(first, signal.SIGSTOP)
    text = next(FRESH)
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(compare, text, f"{text}+0", both=True)
        os.kill(first, signal.SIGKILL)
        assert reply.result(timeout=60).equal is not False  # it was killed before the pair, or during it
    assert compares() and workers() != [first]


def test_eight_threads_share_the_process() -> None:
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: compares(), range(64)))
    assert len(workers()) == 1


@pytest.mark.parametrize("text", ["5\x00", "\ud800", "\\", "}{", "", "$", "x" * 300, '"', "\n1\n2"])
def test_any_text_is_answered(text: str) -> None:
    assert compare(text, "5", both=True).equal is False
    assert compares()


PROGRAM = """
import os, sys
from pathlib import Path
from eldgr_dspy.answer_types.comparing import compare

def found(n):
    return compare(f"{n}/2", f"{n}*0.5", both=True).equal

assert found(3)
child = os.fork()
if child == 0:
    os._exit(0 if found(5) else 1)
assert os.waitpid(child, 0)[1] == 0 and found(7)
(worker,) = [pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]
print(worker)
"""


def test_a_program_without_a_main_guard_may_fork_and_leaves_no_process_behind(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('a module of the user was imported')\n")
    command = [sys.executable, "-W", "error::ResourceWarning", "-P", "-c", PROGRAM]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert not Path(f"/proc/{result.stdout.strip()}").exists()


WAITING = """
import time
from pathlib import Path
from eldgr_dspy.answer_types.comparing import compare

compare("1/2", "0.5", both=True)
(worker,) = [pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]
print(worker, flush=True)
time.sleep(600)
"""


def test_the_process_ends_when_its_program_is_killed() -> None:
    program = subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, text=True)
    with program:
        assert program.stdout is not None
        worker = int(program.stdout.readline())
        assert runs(worker)
        program.kill()
    deadline = monotonic() + 60
    while runs(worker) and monotonic() < deadline:
        sleep(0.01)
    assert not runs(worker)


def test_without_the_library_the_error_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "math_verify.py").write_text("raise ImportError('not installed')\n")
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from eldgr_dspy.answer_types import answer_type\n"
        "answer_type('math').grouping(['x', '2x/2'])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert result.returncode == 1
    assert "need math-verify; run: pip install 'eldgr_dspy[math]'" in result.stderr


def test_a_pair_whose_caller_does_not_wait_leaves_the_next_one_its_time() -> None:
    assert compares()
    assert compare("10^{10^{10}}+3", "2", both=True, seconds=6, ends=monotonic() + 0.3).equal is None
    text = next(FRESH)
    assert compare(text, f"{text}+0", both=True, ends=monotonic() + 60).equal is True


def test_ctrl_c_ends_the_pair_that_is_compared() -> None:
    code = (
        "import os, signal\nfrom threading import Timer\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from eldgr_dspy.answer_types.comparing import compare\n"
        "compare('1', '1', True)\nTimer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "compare('10^{10^{10}}+5', '2', True, seconds=60)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert "KeyboardInterrupt" in result.stderr
