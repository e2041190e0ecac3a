"""Data on standard output, the rest on standard error, an exit code; and what the system refuses names the file."""

import errno
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from eldgr_dspy.base.system import refusal
from eldgr_dspy.journal import read_journal
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.commands.console import progress_bar
from eldgr_dspy.rule.consultations import Consultation
from tests.capitals import row, write_pool
from tests.case_tables import each_case
from tests.commands.installed import COMMAND, Eldgr
from tests.pools.layouts import predictions
from tests.results.demo_pools import ARTIFACTS

NOBODY = ["--judge", "openai/none", "--api-base", "http://127.0.0.1:9/v1", "--limit", "1", "--rules", "eldgr"]
"""A judge at port 9 of this machine, which answers nobody."""


@pytest.fixture
def pool(eldgr: Eldgr, tmp_path: Path) -> Path:
    return write_pool(tmp_path / "capitals.jsonl", map(row, range(8)))


def test_tables_are_printed_and_variables_count(pool: Path, monkeypatch: pytest.MonkeyPatch, eldgr: Eldgr) -> None:
    hook, filters = warnings.showwarning, list(warnings.filters)
    out, err = eldgr("evaluate", pool)
    assert "capitals: retrieval, 8 questions" in out and "Written to runs/capitals" in err
    assert re.search(r"│ majority +│ +0\.00 │", out)
    files = {"journal.jsonl", "decisions.jsonl", "summary.json", "record.json", "report.html", "questions.html"}
    assert {path.name for path in Path("runs/capitals").iterdir()} - {".lock"} == files
    assert eldgr("evaluate", pool, "--quiet") == ("", "")
    out, err = eldgr("evaluate", pool, "--json")
    assert (json.loads(out), err) == (json.loads(Path("runs/capitals/summary.json").read_text()), "")
    for name, value in (("LIMIT", "3"), ("JSON", "1")):
        monkeypatch.setenv(f"ELDGR_EVALUATE_{name}", value)
    assert json.loads(eldgr("evaluate", pool, "--out", "few").out)["pools"]["capitals"]["n"] == 3
    assert warnings.showwarning is hook and warnings.filters == filters  # as before the commands


def test_rules_are_named_by_either_option_together_or_one_by_one(pool: Path, eldgr: Eldgr) -> None:
    for number, words in enumerate((["--rules", "first,majority"], ["--rules", "first", "--rules", "majority"])):
        for command in (["evaluate", str(pool), "--out", f"run{number}"], ["decide", "run0"]):
            figures = json.loads(eldgr(*command, *words, "--json").out)
            assert list(figures["pools"]["capitals"]["rules"]) == ["first", "majority"]
    eldgr("decide", "run0", "--rules", "majority,")  # as evaluate takes it


def test_a_model_that_cannot_be_reached_stops_a_run(pool: Path, monkeypatch: pytest.MonkeyPatch, eldgr: Eldgr) -> None:
    """A fresh run resumes without --fresh, which would set its journal aside, and pay for everything again."""
    err = eldgr("evaluate", pool, "--quiet", *NOBODY, code=3).err
    assert ("run the same command to resume" in err, "Traceback" in err) == (True, False)
    assert [one.outcome for one in read_journal(Path("runs/capitals/journal.jsonl"))] == ["failed"]
    err = eldgr("evaluate", pool, "--quiet", "--fresh", "--out", "new", *NOBODY, code=3).err
    assert err.endswith("in the journal; run the same command without --fresh to resume.\n")
    monkeypatch.setenv("ELDGR_EVALUATE_FRESH", "1")
    err = eldgr("evaluate", pool, "--quiet", *NOBODY, code=3).err
    assert err.endswith("without --fresh to resume (unset ELDGR_EVALUATE_FRESH).\n")


def test_if_no_run_was_opened_the_message_does_not_say_resume(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("run/journal.jsonl").mkdir(parents=True)
    for out in ("run", str(pool / "run")):
        assert main(["evaluate", str(pool), "--quiet", "--out", out]) in (1, 3)
        err = capsys.readouterr().err
        assert re.match("(Stopped|Error): ", err) and out in err and "resume" not in err


def process(pool: Path, *more: str, encoding: str = "utf-8", **options: Any) -> Any:
    """The command as a process of its own, whose streams have an encoding."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    command = [*COMMAND, "evaluate", str(pool), "--out", "run", *more]
    return subprocess.run(command, env=environment, stderr=subprocess.PIPE, check=False, **options)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_results_are_printed_in_whatever_encoding_standard_output_has(pool: Path, encoding: str) -> None:
    pool = pool.rename("\u6771\u4eac.jsonl")
    tables = process(pool, encoding=encoding, stdout=subprocess.PIPE)
    title = b"??: retrieval, 8 questions" in tables.stdout
    assert (tables.returncode, b"Traceback" in tables.stderr, title) == (0, False, True)
    whole = process(pool, "--json", encoding=encoding, stdout=subprocess.PIPE)
    assert (whole.returncode, whole.stderr) == (0, b"")
    assert json.loads(whole.stdout) == json.loads(Path("run/summary.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full stands for a full disk")
def test_a_reader_that_closes_the_pipe_is_not_an_error_and_a_full_disk_is(pool: Path, more: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        run = process(pool, *more, stdout=pipe)
    assert run.returncode == 0 and re.fullmatch(rb"(Written to run: [^\n]*\n[^\n]*\n)?", run.stderr)
    Path("run/summary.json").unlink()
    with Path("/dev/full").open("wb") as full:
        run = process(pool, *more, stdout=full)
    expected = rb"The results are in run; they could not be printed: Standard output: No space [^\n]*\.\n"
    assert run.returncode == 1 and re.fullmatch(expected, run.stderr) and Path("run/summary.json").exists()


def test_a_torn_line_is_noted_unless_quiet(pool: Path) -> None:
    notes = {}
    for more in ("--json", "--quiet"):
        assert main(["evaluate", str(pool), "--out", "run", "--quiet"]) == 0
        with Path("run/journal.jsonl").open("ab") as journal:
            journal.write(b'{"kind": "consult')
        notes[more] = process(pool, more, stdout=subprocess.DEVNULL).stderr.decode()
    assert re.fullmatch(r"Note: run/journal\.jsonl, line \d+: torn after 17 bytes and dropped; .*\n", notes["--json"])
    assert notes["--quiet"] == ""


def test_the_bar_of_a_resumed_run_counts_all_of_it_and_nothing_as_spent_that_was_recorded(
    pool: Path, monkeypatch: pytest.MonkeyPatch, eldgr: Eldgr, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "200")
    for _ in range(2):
        assert "run so far: judge 8" in eldgr("evaluate", pool).err
    for calls, text in ((1, "judge 1, 12 tokens, $0.5000"), (0, "judge 1")):
        costs: Any = {"calls": calls, "prompt_tokens": 9, "completion_tokens": 3, "cost": 0.5, "recorded": not calls}
        with progress_bar(lambda: None, quiet=False) as watcher:
            watcher.on_start(1)
            watcher.on_consultation(Consultation("p", "q", "judge", "ok", **costs))
            watcher.on_row()
        err = capsys.readouterr().err
        assert f"run so far: {text}" in err and ("tokens" in err) is bool(calls)


@each_case("commands", "commands that ask nobody")
def test_what_asks_nobody_needs_no_dspy(pool: Path, line: str) -> None:
    predictions(pool.with_name("a.jsonl"))
    code = f"{COMMAND[2].partition('sys.exit')[0]} code = main(sys.argv[1:]); assert 'dspy' not in sys.modules"
    result = subprocess.run([sys.executable, "-c", code, *line.split()], capture_output=True, text=True, check=False)
    assert (result.returncode, "Error" in result.stderr, bool(result.stdout)) == (0, False, True)
    assert line != "--help" or result.stdout.startswith("Usage: eldgr [--version] [--help] COMMAND")


RAISE = r"Raise the limit on the size of a file \(ulimit -f\), or give a place on another file system\."

posix = pytest.mark.skipif(os.name == "nt", reason="the limits of POSIX")
pytestmark = pytest.mark.usefixtures("eldgr")


def run_within(size: int, *arguments: str) -> tuple[int, str]:
    """Exit code and standard error of a command that can write no file longer than so many bytes."""
    environment = {**os.environ, "PYTHONPATH": str(ARTIFACTS.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    code = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); {COMMAND[2]}"
    command = [sys.executable, "-c", code, *arguments]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return result.returncode, result.stderr


@posix
@pytest.mark.slow
def test_a_run_whose_file_may_not_grow_names_it_whichever_it_is() -> None:  # hazard 89
    pool = write_pool(Path("p.jsonl"), map(row, range(40)))
    assert main(["evaluate", str(pool), "--out", "whole", "--quiet"]) == 0
    sizes = {path.name: path.stat().st_size for path in Path("whole").iterdir() if path.stat().st_size}
    names = set[str]()
    for size in sorted({1, 400, *(size - 1 for size in sizes.values())}):
        code, error = run_within(size, "evaluate", str(pool), "--out", f"run{size}", "--quiet")
        resumes = r"( Then run the same command to resume; the replies so far are in the journal\.)?\n"
        match = re.fullmatch(rf"Stopped: run{size}/([\w.]+): File too large\. {RAISE}{resumes}", error)
        assert match and code == 3, error
        names.add(match[1])
    assert names >= {"journal.jsonl", "questions.html"}


@posix
@pytest.mark.slow
@each_case("commands", "commands whose file may not grow")
def test_a_command_whose_file_may_not_grow_names_it(line: str, file: str) -> None:
    rows = [{**row(number), "prediction": "Nice"} for number in range(200)]
    pool = write_pool(Path("p.jsonl"), [{name: one[name] for name in row(0)} for one in rows])
    main(["evaluate", str(pool), "--out", "run", "--quiet"])
    if line.startswith("pool build"):
        write_pool(pool, [{name: one[name] for name in ("id", "question", "prediction")} for one in rows])
    code, error = run_within(1_000, *line.split())
    assert code in (1, 3) and re.search(rf"(?m)(: |^){file}: File too large\. {RAISE}\n?\Z", error), error


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_flush_that_fails_names_the_file(number: int, monkeypatch: pytest.MonkeyPatch, eldgr: Eldgr) -> None:
    pool = write_pool(Path("p.jsonl"), [row(0)])
    eldgr("evaluate", pool, "--out", "run", "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Mock(side_effect=OSError(number, os.strerror(number))))
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


@each_case("commands", "refusals of the system", bytes=lambda text: text.encode("latin-1"))
def test_a_refusal_is_a_file_a_reason_and_a_remedy(error: list[Any], sentence: str) -> None:
    kind: type[OSError] = PermissionError if error[0] == "EACCES" else OSError
    number = [getattr(errno, error[0])] if hasattr(errno, error[0]) else error[:1]
    assert refusal(kind(*number, *error[1:])) == sentence
