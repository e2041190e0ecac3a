"""Whatever the operating system refuses, the message names the file and says what to do."""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from eldgr_dspy.base.system import refusal
from eldgr_dspy.programs.commands import main
from tests.capitals import row, write_pool
from tests.commands.installed import Eldgr

ROOT = Path(__file__).resolve().parents[2]
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
from eldgr_dspy.programs.commands import main
sys.exit(main(sys.argv[2:]))
"""
RAISE = r"Raise the limit on the size of a file \(ulimit -f\), or give a place on another file system\."

posix = pytest.mark.skipif(os.name == "nt", reason="the limits of POSIX")
pytestmark = pytest.mark.usefixtures("eldgr")


def limited(size: int, *arguments: str) -> tuple[int, str]:
    """Exit code and standard error of a command that can write no file longer than so many bytes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", LIMITED, str(size), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@posix
@pytest.mark.slow
def test_a_run_whose_file_may_not_grow_names_it_whichever_it_is() -> None:  # hazard 89
    pool = write_pool(Path("p.jsonl"), map(row, range(40)))
    assert main(["evaluate", str(pool), "--out", "whole", "--quiet"]) == 0
    sizes = {path.name: path.stat().st_size for path in Path("whole").iterdir() if path.stat().st_size}
    named = set[str]()
    for size in sorted({1, 400, *(size - 1 for size in sizes.values())}):
        code, said = limited(size, "evaluate", str(pool), "--out", f"run{size}", "--quiet")
        told = re.fullmatch(
            rf"Stopped: run{size}/([\w.]+): File too large\. {RAISE}( Then run the same command to resume; "
            r"the replies so far are in the journal\.)?\n",
            said,
        )
        assert told and code == 3, said
        named.add(told[1])
    assert named >= {"journal.jsonl", "questions.html"}


@posix
@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "file"),
    [
        (["export", "run", "--out", "d.csv"], "d.csv"),
        (["report", "run", "--format", "html", "--out", "r.html"], "r-questions.html"),
        (["report", "run", "--format", "json", "--out", "r.json"], "r.json"),
        (["freeze", "--heuristic", "--out", "rule.freeze.json"], "rule.freeze.json"),
        (["pool", "build", "p.jsonl", "--answer", "short", "--out", "q.jsonl"], "q.jsonl"),
        (["pool", "split", "p.jsonl", "--out-dev", "dev.jsonl", "--out-confirm", "con.jsonl"], "(dev|con).jsonl"),
    ],
    ids=["export", "html", "json", "freeze", "build", "split"],
)
def test_a_command_whose_file_may_not_grow_names_it(command: list[str], file: str) -> None:
    rows = [{**row(number), "prediction": "Nice"} for number in range(200)]
    pool = write_pool(Path("p.jsonl"), [{name: one[name] for name in row(0)} for one in rows])
    main(["evaluate", str(pool), "--out", "run", "--quiet"])
    if command[1] == "build":
        write_pool(pool, [{name: one[name] for name in ("id", "question", "prediction")} for one in rows])
    code, said = limited(1_000, *command)
    assert code in (1, 3)
    assert re.search(rf"(?m)(: |^){file}: File too large\. {RAISE}$", said), said


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_flush_that_fails_names_the_file(number: int, monkeypatch: pytest.MonkeyPatch, eldgr: Eldgr) -> None:
    def failing(file: int) -> NoReturn:
        raise OSError(number, os.strerror(number))

    pool = write_pool(Path("p.jsonl"), [row(0)])
    eldgr("evaluate", pool, "--out", "run", "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        for out in ("new", "run"):
            reply = eldgr("evaluate", "p.jsonl", "--out", out, code=3).err
            assert re.match(rf"Stopped: (new|run)(/[\w.]+)?: {os.strerror(number)}\. [A-Z][^.]+\.", reply), reply


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that exists and cannot be read")
@pytest.mark.parametrize("option", ["--replay", "--freeze"])
def test_a_file_that_breaks_while_it_is_read_is_named(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    pool = write_pool(Path("p.jsonl"), [row(0)])
    assert main(["evaluate", str(pool), option, "/proc/self/mem"]) in (1, 3)
    message = capsys.readouterr().err
    assert re.match(r"(Stopped|Error): /proc/self/mem: Input/output error\. Check the disk\.", message)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.EFBIG, "File too large", "a/b"), "a/b: File too large. Raise the limit on the size of a file"),
        (OSError(errno.ENOSPC, "No space left on device", b"a\xff"), "a\udcff: No space left on device. Free space"),
        (PermissionError(errno.EACCES, "Permission denied", "a"), "a: Permission denied. Check its permissions and"),
        (OSError(errno.EXDEV, "Invalid cross-device link", "a", None, "b"), "a: Invalid cross-device link. Check the"),
        (OSError("no number"), "no number."),
        (OSError(errno.EIO, "Input/output error"), "The system: Input/output error. Check the disk."),
    ],
    ids=["size", "space", "permission", "two files", "words", "no file"],
)
def test_a_refusal_is_a_file_a_reason_and_a_remedy(error: OSError, message: str) -> None:
    assert refusal(error).startswith(message)
