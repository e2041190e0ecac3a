"""Large runs: no page of questions unless it is asked for, and decisions in Parquet, which every command reads."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.figures.decision_table import flat, nested
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.run.plan import Plan
from tests.capitals import row, write_pool
from tests.refusing import refused

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


def decided(run: str) -> list[Any]:
    read = read_run(Path(run))
    return list(read.decisions(read.summary()))


# -- the page of questions --------------------------------------------------------------------------------------------


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
    assert "because there are more than 3. To make it, run eldgr report RUN\n--format html --pages." in page
    assert "questions.html" not in page


def test_with_pages_it_is_written(pool: Path, few: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(pool), "--out", "run", "--pages"]) == 0
    assert Path("run/questions.html").exists()
    assert "questions.html" in Path("run/report.html").read_text("utf-8")
    assert "not written" not in capsys.readouterr().err


def test_up_to_the_limit_it_is_written(pool: Path, few: None) -> None:
    assert main(["evaluate", str(pool), "--out", "run", "--limit", "3"]) == 0
    assert Path("run/questions.html").exists()


def test_a_page_of_an_earlier_session_does_not_stay_next_to_new_results(pool: Path, few: None) -> None:
    assert main(["evaluate", str(pool), "--out", "run", "--pages"]) == 0
    assert main(["evaluate", str(pool), "--out", "run"]) == 0
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
    assert main(["report", "run", "--pages"]) == 2


# -- decisions in Parquet ---------------------------------------------------------------------------------------------


def test_decisions_in_parquet_are_those_in_json_lines(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    for form in ("jsonl", "parquet"):
        assert main(["evaluate", str(pool), "--out", form, "--decisions", form]) == 0
        assert [path.name for path in Path(form).glob("decisions.*")] == [f"decisions.{form}"]
    assert decided("parquet") == decided("jsonl") != []
    for name in ("summary.json", "record.json"):
        found = [json.loads((Path(form) / name).read_text("utf-8")) for form in ("jsonl", "parquet")]
        assert untimed(found[0]) == untimed(found[1])
    capsys.readouterr()
    for command in (["show", "RUN", "q1"], ["decide", "RUN", "--rules", "near(1)"], ["report", "RUN"]):
        said = set[str]()
        for form in ("jsonl", "parquet"):
            assert main([form if word == "RUN" else word for word in command] + ["--json"]) == 0
            said.add(json.dumps(untimed(json.loads(capsys.readouterr().out))).replace("parquet", "jsonl"))
        assert len(said) == 1, command
    for form in ("jsonl", "parquet"):
        assert main(["export", form, "--out", f"{form}.csv"]) == 0
        assert main(["report", form, "--format", "html"]) == 0
    assert Path("parquet.csv").read_bytes() == Path("jsonl.csv").read_bytes()
    assert main(["compare", "jsonl", "parquet"]) == 0


def untimed(value: Any) -> Any:
    """A value without the seconds in it."""
    if isinstance(value, dict):
        return {name: untimed(inner) for name, inner in value.items() if "seconds" not in name}
    return [untimed(inner) for inner in value] if isinstance(value, list) else value


def test_the_other_format_of_an_earlier_session_is_removed(pool: Path) -> None:
    pytest.importorskip("pyarrow")
    for form in ("jsonl", "parquet", "jsonl"):
        assert main(["evaluate", str(pool), "--out", "run", "--decisions", form, "--quiet"]) == 0
        assert [path.name for path in Path("run").glob("decisions.*")] == [f"decisions.{form}"]


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"PAR1" + bytes(60) + b"PAR1"])
def test_a_damaged_table_is_refused_with_its_name(pool: Path, damage: Any) -> None:
    pytest.importorskip("pyarrow")
    assert main(["evaluate", str(pool), "--out", "run", "--decisions", "parquet", "--quiet"]) == 0
    table = Path("run/decisions.parquet")
    table.write_bytes(damage(table.read_bytes()))
    said = refused(lambda: decided("run"))
    assert said.startswith("run/decisions.parquet, row 1: torn, or no decision that eldgr_dspy")
    assert "restore it from a copy" in said


def test_a_table_of_something_else_and_one_that_lacks_a_row_are_refused(pool: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    assert main(["evaluate", str(pool), "--out", "run", "--decisions", "parquet", "--quiet"]) == 0
    whole = parquet.read_table("run/decisions.parquet")
    parquet.write_table(whole.slice(1), "run/decisions.parquet")
    assert "a part is missing" in refused(lambda: decided("run"))
    parquet.write_table(arrow.table({"pool": ["p"], "gold": ["no JSON"]}), "run/decisions.parquet")
    assert refused(lambda: decided("run")).startswith("run/decisions.parquet, row 1: torn, or no decision")


def test_without_pyarrow_it_is_refused_before_anything_is_asked(
    pool: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["evaluate", str(pool), "--out", "run", "--decisions", "parquet"]) == 1
    assert "Parquet needs pyarrow; run: pip install 'eldgr_dspy[parquet]'" in capsys.readouterr().err
    assert not Path("run").exists()


def test_another_format_is_refused() -> None:
    other: Any = "csv"
    said = refused(lambda: Plan(["pool.jsonl"], decisions=other))
    assert said == "decisions must be 'jsonl' or 'parquet'; got 'csv'. Give one of them."


WITNESS: dict[str, Any] = {
    "passage": 0,
    "field": "text",
    "start": 1,
    "end": 2,
    "text": "a",
    "level": "exact",
    "flags": ["short"],
    "sha256": "0",
    "title": "",
    "before": "",
    "after": "",
}
DECISION: dict[str, Any] = {
    "pool": "p",
    "id": "q",
    "question": "?",
    "gold": [],
    "rule": "eldgr",
    "answer": None,
    "branch": "consensus",
    "reason": "",
    "certified": None,
    "witness": None,
    "consensus": None,
    "tie": False,
    "preference": None,
    "repair": None,
    "consulted": ["judge"],
    "abstentions": {},
    "ranking": [1, 0],
    "notes": [],
    "em": True,
    "f1": None,
    "majority_em": None,
}
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.fixed_dictionaries({
    "answer": st.none() | texts, "gold": st.lists(texts, max_size=3), "abstentions": st.dictionaries(texts, texts),
    "f1": st.none() | st.floats(0, 1), "certified": st.none() | st.booleans(),
    "witness": st.none() | st.builds(lambda text: {**WITNESS, "text": text}, texts),
}))  # fmt: skip
def test_a_row_is_the_decision_again(changed: dict[str, Any]) -> None:
    decision: Any = {**DECISION, **changed}
    assert nested(flat(decision)) == decision


def test_a_half_of_a_surrogate_pair_is_written_as_in_json_lines() -> None:
    decision: Any = {**DECISION, "answer": "\ud800", "gold": ["\ud83d\ude00"]}
    assert (flat(decision)["answer"], nested(flat(decision))["gold"]) == ("\ufffd", ["\U0001f600"])
