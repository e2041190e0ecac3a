"""The command: data on standard output, everything else on standard error, and an exit code that says how it went."""

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.commands.console import progress_bar
from eldgr_dspy.rule.consultations import Consultation
from tests.capitals import row, write_pool
from tests.commands.installed import COMMAND
from tests.pools.joined import predictions

NOBODY = ["--judge", "openai/none", "--api-base", "http://127.0.0.1:9/v1", "--limit", "1", "--rules", "eldgr"]
"""A judge at port 9 of this machine, which answers nobody."""


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_pool(tmp_path / "capitals.jsonl", map(row, range(8)))


def test_tables_go_to_standard_output_and_files_to_the_run_directory(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(pool)]) == 0
    out, err = capsys.readouterr()
    assert "capitals: retrieval, 8 questions" in out
    assert re.search(r"│ majority +│ +0\.00 │", out)
    assert "Written to runs/capitals" in err
    names = {path.name for path in (tmp_path / "runs" / "capitals").iterdir()}
    files = {"journal.jsonl", "decisions.jsonl", "summary.json", "record.json", "report.html", "questions.html"}
    assert names - {".lock"} == files


def test_json_is_the_summary_and_nothing_else(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(pool), "--json", "--out", "run"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == json.loads(Path("run/summary.json").read_text())
    assert err == ""


def test_quiet_prints_nothing(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(pool), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_rules_are_named_by_either_option_together_or_one_by_one(
    pool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, words in enumerate((["--rules", "first,majority"], ["--rules", "first", "--rules", "majority"])):
        assert main(["evaluate", str(pool), *words, "--out", f"run{number}", "--json"]) == 0
        assert list(json.loads(capsys.readouterr().out)["pools"]["capitals"]["rules"]) == ["first", "majority"]
        assert main(["decide", "run0", *words, "--json"]) == 0
        assert list(json.loads(capsys.readouterr().out)["pools"]["capitals"]["rules"]) == ["first", "majority"]
    assert main(["decide", "run0", "--rules", "majority,"]) == 0  # as evaluate takes it
    assert main(["decide", "run0", "--rules", ""]) == 1
    assert "rule='' is not known" in capsys.readouterr().err


def test_a_changed_run_is_refused_with_exit_code_1(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(pool), "--quiet"]) == 0
    assert main(["evaluate", str(pool), "--quiet", "--certificate", "token"]) == 1
    assert 'certificate: "folded" -> "token"' in capsys.readouterr().err
    assert main(["evaluate", str(pool), "--quiet", "--certificate", "token", "--fresh"]) == 0


def test_a_model_that_cannot_be_reached_stops_the_run_with_exit_code_3(
    pool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The LM is an unmodified `dspy.LM`."""
    code = main(["evaluate", str(pool), "--quiet", *NOBODY])
    err = capsys.readouterr().err
    assert (code, "run the same command to resume" in err, "Traceback" in err) == (3, True, False)
    journal = [json.loads(line) for line in Path("runs/capitals/journal.jsonl").read_text().splitlines()]
    assert [one["outcome"] for one in journal if one["kind"] == "consultation"] == ["failed"]


def test_an_option_can_be_set_by_the_environment(
    pool: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELDGR_EVALUATE_LIMIT", "3")
    assert main(["evaluate", str(pool), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pools"]["capitals"]["n"] == 3


def test_json_can_be_asked_for_by_the_environment(
    pool: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELDGR_EVALUATE_JSON", "1")
    assert main(["evaluate", str(pool)]) == 0
    assert json.loads(capsys.readouterr().out)["pools"]["capitals"]["n"] == 8


def test_a_stopped_run_that_began_anew_resumes_without_fresh(
    pool: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same command would set its journal aside, and pay for everything again."""
    assert main(["evaluate", str(pool), "--quiet", "--fresh", *NOBODY]) == 3
    assert capsys.readouterr().err.endswith("in the journal; run the same command without --fresh to resume.\n")
    monkeypatch.setenv("ELDGR_EVALUATE_FRESH", "1")
    assert main(["evaluate", str(pool), "--quiet", *NOBODY]) == 3
    assert capsys.readouterr().err.endswith("without --fresh to resume (unset ELDGR_EVALUATE_FRESH).\n")


def test_if_no_run_was_opened_the_message_does_not_speak_of_resuming(
    pool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("run/journal.jsonl").mkdir(parents=True)
    for out in ("run", str(pool / "run")):
        assert main(["evaluate", str(pool), "--quiet", "--out", out]) in (1, 3)
        err = capsys.readouterr().err
        assert re.match("(Stopped|Error): ", err)
        assert out in err
        assert "resume" not in err


def piped(pool: Path, *more: str, encoding: str = "utf-8", **options: Any) -> Any:
    """The command as a process of its own, whose streams have an encoding."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    command = [*COMMAND, "evaluate", str(pool), "--out", "run", *more]
    return subprocess.run(command, env=environment, stderr=subprocess.PIPE, check=False, **options)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_results_are_printed_in_whatever_encoding_standard_output_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.chdir(tmp_path)
    pool = write_pool(tmp_path / "\u6771\u4eac.jsonl", map(row, range(8)))
    tables = piped(pool, encoding=encoding, stdout=subprocess.PIPE)
    assert (tables.returncode, b"Traceback" in tables.stderr) == (0, False)
    assert b"??: retrieval, 8 questions" in tables.stdout
    whole = piped(pool, "--json", encoding=encoding, stdout=subprocess.PIPE)
    assert (whole.returncode, whole.stderr) == (0, b"")
    assert json.loads(whole.stdout) == json.loads(Path("run/summary.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.skipif(os.name == "nt", reason="the pipes of POSIX")
def test_a_reader_that_closes_the_pipe_is_not_an_error(pool: Path, more: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        run = piped(pool, *more, stdout=closed)
    assert run.returncode == 0
    assert re.fullmatch(rb"(Written to run: [^\n]*\n[^\n]*\n)?", run.stderr)
    assert Path("run/summary.json").exists()


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full stands for a full disk")
def test_results_that_cannot_be_printed_are_said_to_be_written(pool: Path, more: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        run = piped(pool, *more, stdout=full)
    assert run.returncode == 1
    expected = rb"The results are in run; they could not be printed: Standard output: No space [^\n]*\.\n"
    assert re.fullmatch(expected, run.stderr)
    assert Path("run/summary.json").exists()


def test_a_torn_line_is_noted_unless_quiet(pool: Path) -> None:
    notes = {}
    for more in ("--json", "--quiet"):
        assert main(["evaluate", str(pool), "--out", "run", "--quiet"]) == 0
        with Path("run/journal.jsonl").open("ab") as journal:
            journal.write(b'{"kind": "consult')
        notes[more] = piped(pool, more, stdout=subprocess.DEVNULL).stderr.decode()
    assert re.fullmatch(r"Note: run/journal\.jsonl, line \d+: torn after 17 bytes and dropped; .*\n", notes["--json"])
    assert notes["--quiet"] == ""


def test_warnings_are_shown_as_before_once_the_command_has_returned(pool: Path) -> None:
    shown, filters = warnings.showwarning, list(warnings.filters)
    assert main(["evaluate", str(pool), "--quiet"]) == 0
    assert warnings.showwarning is shown
    assert warnings.filters == filters


def test_the_bar_of_a_resumed_run_calls_its_sums_those_of_the_run(
    pool: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "200")
    for _ in range(2):
        assert main(["evaluate", str(pool)]) == 0
        assert "run so far: judge 8" in capsys.readouterr().err


@pytest.mark.parametrize(("recorded", "shown"), [(False, "judge 1, 12 tokens, $0.5000"), (True, "judge 1")])
def test_the_bar_counts_nothing_as_spent_that_was_recorded(
    recorded: bool, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "200")
    calls = 0 if recorded else 1
    one = Consultation(
        "p", "q", "judge", "ok", calls=calls, prompt_tokens=9, completion_tokens=3, cost=0.5, recorded=recorded
    )
    with progress_bar(lambda: None, quiet=False) as watcher:
        watcher.on_start(1)
        watcher.on_consultation(one)
        watcher.on_row()
    err = capsys.readouterr().err
    assert f"run so far: {shown}" in err
    assert ("tokens" in err) is not recorded


def test_the_command_is_named_eldgr_however_it_was_started(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: eldgr [--version] [--help] COMMAND")


@pytest.mark.parametrize(
    "line",
    [
        "--help",
        "--version",
        "evaluate --help",
        "bound capitals.jsonl",
        "plan --gain 2 --discordant 6",
        "pool build a.jsonl --answer short --out p.jsonl",
    ],
)
def test_what_asks_nobody_needs_no_dspy(pool: Path, line: str) -> None:
    predictions(pool.with_name("a.jsonl"))
    code = f"{COMMAND[2].partition('sys.exit')[0]} code = main(sys.argv[1:]); assert 'dspy' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code, *line.split()], capture_output=True, text=True, check=False)
    assert (done.returncode, "Error" in done.stderr, bool(done.stdout)) == (0, False, True)
