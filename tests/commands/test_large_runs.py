"""Large runs: no page of questions unless it is asked for."""

from pathlib import Path

import pytest

from tests.capitals import row, write_pool
from tests.commands.installed import Eldgr

HOSTILE = '=HYPERLINK("http://x","a"),\n"@b'


@pytest.fixture
def pool(tmp_path: Path, eldgr: Eldgr) -> Path:
    rows = [row(0), row(1, question=HOSTILE), row(2, gold=[]), row(3, answers=("Ünï", "-5", "\ttab"))]
    return write_pool(tmp_path / "pool.jsonl", rows)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of questions up to three questions."""
    for module in ("programs.run.pages", "report.page"):
        monkeypatch.setattr(f"eldgr_dspy.{module}.MOST_QUESTIONS", 3)


def test_beyond_the_limit_there_is_a_page_of_questions_only_if_the_report_is_asked_for_it(
    pool: Path, few: None, eldgr: Eldgr
) -> None:
    reply = eldgr("evaluate", pool, "--out", "run").err
    assert not Path("run/questions.html").exists()
    how = "eldgr report run --format html --pages"
    assert (
        f"Note: the page of questions was not written: there are more than 3 questions. To write it: {how}\n" in reply
    )
    page = Path("run/report.html").read_text("utf-8")
    assert "there are more than 3. To make it, run eldgr report RUN --format html --pages." in page
    assert "questions.html" not in page
    assert "not written: there are more than 3 questions" in eldgr("report", "run", "--format", "html").err
    assert not Path("run/questions.html").exists()
    eldgr("report", "run", "--format", "html", "--pages")
    assert Path("run/questions.html").exists()
    assert "questions.html" in Path("run/report.html").read_text("utf-8")


def test_a_page_of_an_earlier_session_does_not_stay_next_to_new_results(pool: Path, few: None, eldgr: Eldgr) -> None:
    eldgr("evaluate", pool, "--out", "run", "--limit", "3")
    assert Path("run/questions.html").exists()
    eldgr("evaluate", pool, "--out", "run", "--fresh")
    assert not Path("run/questions.html").exists()
