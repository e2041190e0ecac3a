"""Large runs: no page of questions unless it is asked for."""

from pathlib import Path

import pytest

from eldgr_dspy.programs.commands import main
from tests.capitals import row, write_pool

HOSTILE = '=HYPERLINK("http://x","a"),\n"@b'


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [row(0), row(1, question=HOSTILE), row(2, gold=[]), row(3, answers=("Ünï", "-5", "\ttab"))]
    return write_pool(tmp_path / "pool.jsonl", rows)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of questions up to three questions."""
    for module in ("programs.run.pages", "report.page"):
        monkeypatch.setattr(f"eldgr_dspy.{module}.MOST_QUESTIONS", 3)


def test_beyond_the_limit_there_is_no_page_of_questions_and_it_is_said_how_to_get_it(
    pool: Path, few: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(pool), "--out", "run"]) == 0
    assert not Path("run/questions.html").exists()
    how = "eldgr report run --format html --pages"
    assert f"Note: the page of questions was not written: there are more than 3 questions. To write it: {how}\n" in (
        capsys.readouterr().err
    )
    page = Path("run/report.html").read_text("utf-8")
    assert "there are more than 3. To make it, run eldgr report RUN --format html --pages." in page
    assert "questions.html" not in page


def test_a_page_of_an_earlier_session_does_not_stay_next_to_new_results(pool: Path, few: None) -> None:
    assert main(["evaluate", str(pool), "--out", "run", "--limit", "3"]) == 0
    assert Path("run/questions.html").exists()
    assert main(["evaluate", str(pool), "--out", "run", "--fresh"]) == 0
    assert not Path("run/questions.html").exists()


def test_the_report_writes_the_page_only_if_it_is_asked_to(
    pool: Path, few: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(pool), "--out", "run", "--quiet"]) == 0
    assert main(["report", "run", "--format", "html"]) == 0
    assert "not written: there are more than 3 questions" in capsys.readouterr().err
    assert not Path("run/questions.html").exists()
    assert main(["report", "run", "--format", "html", "--pages"]) == 0
    assert Path("run/questions.html").exists()
    assert "questions.html" in Path("run/report.html").read_text("utf-8")
    assert main(["report", "run", "--pages"]) == 2
