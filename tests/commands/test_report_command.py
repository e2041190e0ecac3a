"""`eldgr report` shows a finished run once more, in each format, and logs it; what it cannot show it says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.finished import read_run
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.commands.report import Format
from eldgr_dspy.programs.run.tracking import log_to_mlflow
from tests.commands.test_command import COMMAND
from tests.finished_runs import finished_run
from tests.run.test_evaluation import row, write_pool


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return finished_run(tmp_path)[0]


def said(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert main([*map(str, arguments)]) == code
    return capsys.readouterr()


def test_the_tables_are_those_that_evaluate_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_pool(tmp_path / "capitals.jsonl", map(row, range(5)))
    printed, _ = said(capsys, "evaluate", "capitals.jsonl", "--out", "run")
    (tmp_path / "capitals.jsonl").unlink()  # the run directory is enough
    assert said(capsys, "report", "run") == (printed, "")


def test_json_is_the_summary_as_evaluate_prints_it(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = said(capsys, "report", run, "--format", "json")
    assert json.loads(out) == json.loads((run / "summary.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "json"])
def test_a_file_holds_what_would_be_printed_without_colour(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    printed, _ = said(capsys, "report", run, "--format", form)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert said(capsys, "report", run, "--format", form, "--out", "here.txt") == ("", "Written to here.txt.\n")
    assert Path("here.txt").read_text(encoding="utf-8") == printed


def test_the_reference_lists_the_formats() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "command.md").read_text(encoding="utf-8")
    table = text.partition("| format | what it is |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == list(get_args(Format))


def test_the_page_is_made_again_byte_for_byte(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = run / "report.html"
    before = page.read_bytes()
    page.unlink()
    assert said(capsys, "report", run, "--format", "html") == ("", f"Written to {page}.\n")
    assert page.read_bytes() == before
    said(capsys, "report", run, "--format", "html", "--out", "other.html")
    assert Path("other.html").read_bytes() == before


def test_a_pool_without_gold_answers_has_dashes_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = finished_run(tmp_path, rows=[row(number, gold=[]) for number in range(3)])
    for form in ("text", "markdown", "latex"):
        out, _ = said(capsys, "report", run, "--format", form)
        assert "—: no question has a gold answer, so nothing is scored." in out
    assert json.loads(said(capsys, "report", run, "--format", "json")[0])["pools"]["capitals"]["n_scored"] == 0
    said(capsys, "report", run, "--format", "html")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere"], 1, "nowhere: no such directory"),
        (["run", "--format", "word"], 2, "'word' is not one of 'text', 'markdown', 'latex', 'json', 'html'"),
        (["run", "--out", "nowhere/there"], 1, "The report could not be written:"),
        ([], 2, "Missing argument 'RUN'"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_sentence(
    run: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    out, err = said(capsys, "report", *arguments, code=code)
    assert out == ""
    assert message in " ".join(err.split())
    assert "Traceback" not in err


@pytest.mark.parametrize("form", ["text", "html"])
def test_an_unfinished_run_is_no_report(run: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    (run / "summary.json").unlink()
    out, err = said(capsys, "report", run, "--format", form, code=1)
    assert out == ""
    assert err.startswith(
        f"Error: {run} has no summary.json: the run is not finished; to finish it give the same eldgr"
    )


def test_a_reader_that_closes_the_pipe_is_no_error(run: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [*COMMAND, "report", str(run), "--format", "markdown"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


# -- MLflow -----------------------------------------------------------------------------------------------------------


def test_without_mlflow_the_remedy_is_said(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    read = read_run(run)
    with pytest.raises(ArgumentError, match=r"needs mlflow; run: pip install 'eldgr_dspy\[mlflow\]'"):
        log_to_mlflow(read, read.summary())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of MLflow's own
def test_a_run_is_logged_with_its_figures_settings_and_files(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'store.db'}")
    _, err = said(capsys, "report", run, "--mlflow")
    found = err.rpartition("Logged to MLflow as run ")[2].strip().rstrip(".")
    logged = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'store.db'}").get_run(found)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))["pools"]["capitals"]
    assert logged.info.run_name == "run"
    assert logged.data.metrics["capitals/rules/eldgr/em"] == pytest.approx(summary["rules"]["eldgr"]["em"])
    assert logged.data.metrics["capitals/eldgr-majority/delta"] == summary["contrasts"][1]["delta"]
    assert logged.data.metrics["capitals/bounds/eldgr/low"] == summary["bounds"]["eldgr"][0]
    assert "capitals/bounds_any_span/first/low" not in logged.data.metrics
    assert logged.data.params["settings/certificate"] == "folded"
    assert logged.data.params["role/judge/model"] == "none"
    assert logged.data.params["eldgr_dspy"] == "0.1.0"
    assert len(logged.data.params["pool/capitals/sha256"]) == 64
    artifacts = Path(logged.info.artifact_uri.removeprefix("file://"))
    names = {"journal.jsonl", "decisions.jsonl", "summary.json", "record.json", "report.html"}
    assert {path.name for path in artifacts.iterdir()} == names
