"""`eldgr plan`: a table, or JSON; before anything is spent, or of a finished run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.figures.planning import plan_ahead, what_it_saw
from eldgr_dspy.programs.commands import main
from tests.capitals import row, write_pool
from tests.finished_runs import finished_run
from tests.results.planned import LEVEL, lead

PLAN = "from eldgr_dspy.programs.commands import main; code = main(['plan', '--gain', '2', '--discordant', '6'])"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["plan", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_it_says_how_many_questions_a_gain_needs(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "--gain", "2", "--discordant", "6")
    assert "questions to see +2.00 with power 0.8 at alpha 0.05" in out
    assert "│ 6.00         │     1,244 │      0.8000 │                 50–25 │" in out
    assert json.loads(printed(capsys, "--gain", "2", "--discordant", "6", "--json")) == plan_ahead(2.0, 6.0, **LEVEL)


def test_a_smaller_alpha_and_more_power_need_more(capsys: pytest.CaptureFixture[str]) -> None:
    found = [
        json.loads(printed(capsys, "--gain", "2", "--discordant", "6", "--json", *more))["questions"]
        for more in ((), ("--power", "0.9"), ("--power", "0.9", "--alpha", "0.0125"))
    ]
    assert found == sorted(set(found))


def test_it_says_what_a_finished_run_could_have_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = finished_run(tmp_path)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    leads = {"n_scored": 500, "contrasts": [lead(20, 8, 500, f1=None), lead(3, 0, 500, f1=None, against="judge")]}
    summary["pools"] = {"capitals": summary["pools"]["capitals"] | leads}
    (run / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    out = printed(capsys, str(run), "--gain", "1.5")
    assert "capitals: what 500 questions could show with power 0.8 at alpha 0.05" in out
    assert "│ eldgr │ majority │        20–8 │         5.60 │             20–8 │           +3.07 │    2,054 │" in out
    assert "│ eldgr │    judge │         3–0 │         0.60 │                — │               — │        — │" in out
    assert "—: too few questions are discordant for it." in out
    assert "would be needed" not in out
    out = printed(capsys, str(run), "--gain", "0.005")
    assert "│             20–8 │           +3.07 │        — │" in out
    assert "— under n needed: more than 10,000,000 questions would be needed." in out
    as_json = json.loads(printed(capsys, str(run), "--json"))
    assert as_json == what_it_saw(read_run(run).summary(), **LEVEL)


@pytest.mark.parametrize("torn", [True, False])
def test_of_a_run_that_is_not_finished_it_says_no_more_than_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], torn: bool
) -> None:
    run, _ = finished_run(tmp_path)
    journal = (run / "journal.jsonl").read_bytes()
    (run / "journal.jsonl").write_bytes(journal[:-20] if torn else journal[: journal[:-1].rindex(b"\n") + 1])
    for command in ("plan", "report"):
        assert main([command, str(run)]) == 1
        assert "the run is not finished: its journal is not what summary.json counts" in capsys.readouterr().err


def test_it_reads_what_evaluate_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    scored, unscored = write_pool(tmp_path / "a.jsonl", map(row, range(8))), tmp_path / "b.jsonl"
    write_pool(unscored, (row(number, gold=[]) for number in range(3)))
    assert main(["evaluate", str(scored), str(unscored), "--out", "run", "--quiet"]) == 0
    out = printed(capsys, "run")
    assert "a: what 8 questions could show" in out
    assert "b: what 0 questions could show" in out
    assert "There is no contrast: no question has a gold answer, or eldgr has no result." in out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "Give --gain and --discordant, or RUN, the directory of a finished run."),
        (["--gain", "2"], 2, "Give --gain and --discordant, or RUN, the directory of a finished run."),
        (
            ["run", "--discordant", "6"],
            2,
            "--discordant cannot be combined with RUN: the run has its own count.",
        ),
        (["--gain", "0", "--discordant", "6"], 2, "0.0 is not in the range 0<x<=100."),
        (["--gain", "nan", "--discordant", "6"], 1, "gain=nan"),
        (["--gain", "2", "--discordant", "6", "--power", "80"], 2, "80.0 is not in the range 0<x<1."),
        (["--gain", "8", "--discordant", "6"], 1, "gain=8 is more than discordant=6: wins minus losses can't be more"),
        (["--gain", "0.001", "--discordant", "6"], 1, "A gain of 0.001 % with 6 % discordant needs more"),
        (["nowhere"], 1, "nowhere: no such directory; give the directory of a run, such as runs/NAME."),
    ],
)
def test_what_cannot_be_planned_is_said_in_a_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plan", *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert message in " ".join(err.split())
    assert "Traceback" not in err


def process(code: str, **options: Any) -> Any:
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=False, **options)


def test_a_plan_needs_no_dspy() -> None:
    done = process(f"import sys; {PLAN}; assert 'dspy' not in sys.modules; sys.exit(code)", stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full stands for a full disk")
def test_a_plan_that_cannot_be_printed_is_an_error_and_a_closed_pipe_is_not() -> None:
    with Path("/dev/full").open("wb") as full:
        done = process(f"import sys; {PLAN}; sys.exit(code)", stdout=full)
    assert done.returncode == 1
    assert done.stderr.startswith(b"Error: The plan could not be written: Standard output: No space")
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = process(f"import sys; {PLAN}; sys.exit(code)", stdout=closed)
    assert (done.returncode, done.stderr) == (0, b"")
