"""`eldgr report` shows a finished run once more, in each format, and logs it; what it cannot show it says."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.programs.commands.report_command import FORMATS
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.run.mlflow_tracking import log_to_mlflow
from eldgr_dspy.programs.testing import text_of
from tests.capitals import obliging, row, selector_with, write_pool
from tests.commands.installed import Eldgr
from tests.finished_runs import finished_run
from tests.refusing import refuses


def test_the_tables_are_made_without_the_pool_and_begin_as_those_of_evaluate(tmp_path: Path, eldgr: Eldgr) -> None:
    write_pool(tmp_path / "capitals.jsonl", map(row, range(5)))
    tables, _ = eldgr("evaluate", "capitals.jsonl", "--out", "run", "--format", "markdown")
    (tmp_path / "capitals.jsonl").unlink()  # the run directory is enough
    lines = iter(eldgr("report", "run", "--format", "markdown")[0].splitlines())
    assert all(line in lines for line in tables.splitlines())  # in this order
    text = (Path(__file__).parents[2] / "docs" / "reference" / "command.md").read_text(encoding="utf-8")
    table = text.partition("| format | output |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == list(FORMATS)


def pages(folder: Path, report: str = "report.html", questions: str = "questions.html") -> list[bytes]:
    return [(folder / name).read_bytes() for name in (report, questions)]


def test_pages_of_a_run_of_several_sessions_are_made_again_byte_for_byte(tmp_path: Path, eldgr: Eldgr) -> None:
    """Calls that failed, abstentions, rules that are withheld, and consultations that no rule needs any more."""

    def reply(request: Any) -> Any:
        if "number 3?" in text_of(request):
            raise RuntimeError("lost")
        return "no JSON" if "number 4?" in text_of(request) else obliging(request)

    pool = write_pool(tmp_path / "capitals.jsonl", [row(n, answers=("a", "b")[: 1 + n % 2]) for n in range(8)])
    for limit, rules in ((3, ("judge", "eldgr")), (None, ("majority", "eldgr", "judge")), (None, ("eldgr", "first"))):
        selector, _ = selector_with(reply, consult="always")
        evaluate(selector, Plan([pool], tmp_path / "run", rules, limit=limit, max_failures=9))
    (tmp_path / "other").mkdir()
    said_once = {"kind": "consultation", "id": "q0", "role": "judge", "outcome": "ok", "content": {"preferred": 0}}
    replay = write_pool(tmp_path / "recording.jsonl", [said_once])
    other, _ = finished_run(tmp_path / "other", replay=replay, rules=("judge", "first"))
    assert json.loads((other / "summary.json").read_text(encoding="utf-8"))["pools"]["capitals"]["withheld"]
    for run in (tmp_path / "run", other):
        before = pages(run)
        eldgr("report", run, "--format", "html")
        assert pages(run) == before


def test_pages_of_another_name_lie_beside_each_other(run: Path, tmp_path: Path, eldgr: Eldgr) -> None:
    _, err = eldgr("report", run, "--format", "html", "--out", "other.html")
    assert err == "Written to other.html and other-questions.html.\n"
    report, questions = pages(Path(), "other.html", "other-questions.html")
    assert b'href="other-questions.html"' in report and b'href="other.html"' in questions
    Path("other-questions.html").write_text("of another run")
    (tmp_path / "capitals.jsonl").rename(tmp_path / "moved.jsonl")
    eldgr("report", run, "--format", "html", "--out", "other.html")  # which links to no page of another run
    assert b"other-questions.html" not in Path("other.html").read_bytes()


def test_without_its_pool_the_report_is_made_alone_and_says_so(run: Path, tmp_path: Path, eldgr: Eldgr) -> None:
    before = pages(run)
    away = (tmp_path / "capitals.jsonl").rename(tmp_path / "moved.jsonl")
    (run / "questions.html").unlink()
    _, err = eldgr("report", run, "--format", "html")
    note = f"Note: the page of questions was not written: {run} was made on a pool 'capitals', which was "
    assert err.startswith(f"Written to {run / 'report.html'}.\n{note}")
    assert "give its file: eldgr report RUN FILE --format html (sha256" in err
    assert b"There is no page of single questions" in (run / "report.html").read_bytes()
    (tmp_path / "there").mkdir()
    path = away.rename(tmp_path / "there" / "capitals.jsonl")
    eldgr("report", run, path, "--format", "html")
    assert pages(run) == before


def test_a_pool_without_gold_answers_has_dashes_in_every_format(tmp_path: Path, eldgr: Eldgr) -> None:
    run, _ = finished_run(tmp_path, rows=[row(number, gold=[]) for number in range(3)])
    for form in ("text", "markdown", "latex"):
        out, _ = eldgr("report", run, "--format", form)
        assert "—: no question has a gold answer, so nothing is scored." in out
    assert json.loads(eldgr("report", run, "--format", "json")[0])["pools"]["capitals"]["n_scored"] == 0
    eldgr("report", run, "--format", "html")


def test_without_mlflow_the_remedy_is_said(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    read = read_run(run)
    remedy = r"needs mlflow; run: pip install 'eldgr_dspy\[mlflow\]'"
    refuses(ArgumentError, remedy, log_to_mlflow, read, read.summary())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of MLflow's own
def test_a_run_is_logged(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eldgr: Eldgr) -> None:
    """With its figures, settings and files."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow, store = pytest.importorskip("mlflow"), f"sqlite:///{tmp_path / 'store.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    _, err = eldgr("report", run, "--mlflow")
    result = err.rpartition("Logged to MLflow as run ")[2].strip().rstrip(".")
    entry = mlflow.MlflowClient(store).get_run(result)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))["pools"]["capitals"]
    metrics, params = entry.data.metrics, entry.data.params
    assert metrics["capitals/rules/eldgr/em"] == pytest.approx(summary["rules"]["eldgr"]["em"])
    assert metrics["capitals/eldgr-majority/delta"] == summary["contrasts"][1]["delta"]
    assert metrics["capitals/bounds/eldgr/low"] == summary["bounds"]["eldgr"][0]
    assert "capitals/bounds_any_span/first/low" not in metrics
    values = [params[name] for name in ("settings/certificate", "role/judge/model", "eldgr_dspy")]
    assert [entry.info.run_name, *values] == ["run", "folded", "none", "0.1.0"]
    assert len(params["pool/capitals/sha256"]) == 64
    artifacts = Path(entry.info.artifact_uri.removeprefix("file://"))
    names = {"journal.jsonl", "decisions.jsonl", "summary.json", "record.json", "report.html", "questions.html"}
    assert {path.name for path in artifacts.iterdir()} == names


def test_beyond_the_limit_an_option_makes_a_page_of_questions(monkeypatch: pytest.MonkeyPatch, eldgr: Eldgr) -> None:
    rows = [row(0), row(1, question='=HYPERLINK("http://x","a"),\n"@b'), row(2, gold=[])]
    pool = write_pool(Path("pool.jsonl"), [*rows, row(3, answers=("Ünï", "-5", "\ttab"))])
    for module in ("programs.run.results", "report.page"):
        monkeypatch.setattr(f"eldgr_dspy.{module}.MOST_QUESTIONS", 3)
    reply = eldgr("evaluate", pool, "--out", "run").err
    assert not Path("run/questions.html").exists()
    note = "Note: the page of questions was not written: there are more than 3 questions. To write it: "
    assert f"{note}eldgr report run --format html --pages\n" in reply
    page = Path("run/report.html").read_text("utf-8")
    advice = "there are more than 3. To make it, run eldgr report RUN --format html --pages."
    assert advice in page and "questions.html" not in page
    assert "not written: there are more than 3 questions" in eldgr("report", "run", "--format", "html").err
    assert not Path("run/questions.html").exists()
    eldgr("report", "run", "--format", "html", "--pages")
    assert Path("run/questions.html").exists() and "questions.html" in Path("run/report.html").read_text("utf-8")
    eldgr("evaluate", pool, "--out", "early", "--limit", "3")
    assert Path("early/questions.html").exists()
    eldgr("evaluate", pool, "--out", "early", "--fresh")
    assert not Path("early/questions.html").exists()  # it is not of the new results
