"""`eldgr export`: every decision as a flat row, the same in CSV and in Parquet, and no cell that a spreadsheet runs."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.errors import PoolError
from eldgr_dspy.figures.export import COLUMNS, disarm, export, flat
from eldgr_dspy.figures.finished_run import read_run
from eldgr_dspy.figures.results.decision_fields import Decided
from eldgr_dspy.programs.commands import main
from tests.capitals import row
from tests.case_tables import each_case, each_example
from tests.finished_runs import finished_run
from tests.house.doc_blocks import column

HOSTILE = '=HYPERLINK("http://x","a"),\n@b'


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [row(0), row(1, id="=1+1", question=HOSTILE), row(2, gold=[]), row(3, answers=("Ünï", "-5", "\ttab"))]
    return finished_run(tmp_path, rows=rows)[0]


def decisions(run: Path) -> list[Any]:
    read = read_run(run)
    return list(read.decisions(read.summary()))


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def as_text(value: Any) -> str:
    """A value as a cell of CSV has it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else disarm(value) if isinstance(value, str) else str(value)


def test_a_row_of_csv_is_a_decision_and_no_cell_begins_as_a_formula(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(run), "--out", "decisions.csv"]) == 0
    assert capsys.readouterr().err == "Written to decisions.csv: 20 decisions.\n"
    result = rows_of(Path("decisions.csv"))
    assert tuple(result[0]) == COLUMNS
    assert result == [{name: as_text(value) for name, value in flat(one).items()} for one in decisions(run)]
    assert main(["export", str(run), "--out", "decisions.csv"]) == 0  # hazard 99
    cells = [cell for row in rows_of(Path("decisions.csv")) for cell in row.values()]
    assert "'=1+1" in cells and f"'{HOSTILE}" in cells
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and cell != "-5"]


def test_parquet_has_the_same_rows_with_their_types(run: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert main(["export", str(run), "--out", "decisions.parquet"]) == 0
    table = parquet.read_table("decisions.parquet")
    assert tuple(table.column_names) == COLUMNS
    assert table.to_pylist() == [flat(one) for one in decisions(run)]
    types = {field.name: str(field.type) for field in table.schema}
    assert [types[name] for name in ("em", "f1", "preference", "gold")] == ["bool", "double", "int64", "string"]


def test_every_field_of_a_decision_has_its_column_and_its_line_in_the_reference(run: Path) -> None:
    fields = set(Decided.__annotations__) - {"witness"}
    assert fields == {name for name in COLUMNS if not name.startswith("witness_")}
    one = next(one for one in decisions(run) if one["witness"])
    row = flat(one)
    assert json.loads(row["gold"]) == one["gold"]
    assert json.loads(row["abstentions"]) == one["abstentions"]
    assert {name: row[f"witness_{name}"] for name in one["witness"] if name != "flags"} == {
        name: value for name, value in one["witness"].items() if name != "flags"
    }
    assert sorted(column("command.md", "`eldgr export`")) == sorted(COLUMNS)


@given(st.text(max_size=8))
@each_example("results", "cells with signs")
def test_taking_one_mark_away_gives_the_text_back(text: str) -> None:
    cell = disarm(text)
    assert (cell.removeprefix("'") if cell.startswith("'") else cell) == text
    assert disarm(text)[:1] not in ("=", "@", "\t", "\r", "\n", "＝")
    assert cell == text or not text[0].isalnum()


# Space, controls, zero-width and direction marks, a variation selector, a filler and a blank.
INVISIBLE = (
    "\x00\x1b\x85\xa0\xad\u034f\u061c\u115f\u180b\u200b\u200f\u202e\u2060\u2066"
    "\u2800\u3000\u3164\ufe0f\ufeff\uffa0\U000e0020"
)


@pytest.mark.parametrize("mark", ["", *INVISIBLE, INVISIBLE], ids=ascii)
def test_a_sign_in_any_form_is_disarmed_also_behind_what_is_not_seen(mark: str) -> None:
    for sign in "=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u207c\u208c\u207a\u208a\u2a75\ufb29":
        assert disarm(f"{mark}{sign}cmd|' /C calc'!A0") == f"'{mark}{sign}cmd|' /C calc'!A0"


NUMBERS = ("+28.00 [10.00, 46.00]", "-2.00 [-16.00, 10.00]", "-5", "+3.25", "-1,000", "-5%", "-0.5")
PLAIN = ("Nice", "7 = 7", "\u200bNice", "\xa0x=1", "\u2212 5", "(=1)", "", "\u200b", "\u0301a", *NUMBERS)
FORMULAS = ("-5-5", "+1 (212)", "-a", "--", "-1e5|x", "=2")


@pytest.mark.parametrize("text", [*PLAIN, *FORMULAS])
def test_a_text_with_a_sign_in_front_is_disarmed_and_a_number_or_another_text_stays(text: str) -> None:
    assert disarm(text) == (f"'{text}" if text in FORMULAS else text)


@each_case("results", "what cannot be written")
def test_what_cannot_be_written_is_said(run: Path, capsys: pytest.CaptureFixture[str], to: str, message: str) -> None:
    assert main(["export", str(run), "--out", to]) == 1
    assert message in capsys.readouterr().err


def test_a_file_that_was_there_stays_where_decisions_are_torn(run: Path) -> None:
    Path("d.csv").write_text("mine")
    path = run / "decisions.jsonl"
    path.write_bytes(path.read_bytes()[:-10])
    assert main(["export", str(run), "--out", "d.csv"]) == 1
    assert Path("d.csv").read_text() == "mine"
    assert sorted(path.name for path in Path().iterdir()) == ["capitals.jsonl", "d.csv", "run"]


def test_without_pyarrow_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(PoolError, match=r"d.parquet: Parquet needs pyarrow; run: pip install 'eldgr_dspy\[parquet\]'"):
        export([], tmp_path / "d.parquet")
