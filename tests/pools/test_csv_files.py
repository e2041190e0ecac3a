"""Tables in CSV and TSV hold a row a sample or a row a question, and what is wrong with one is named by its row."""

import csv
import gzip
import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.base.file_limits import RAISE
from eldgr_dspy.errors import PoolError
from eldgr_dspy.programs.pools.csv_files import _MISSING, _NO_SAMPLE, Columns
from eldgr_dspy.programs.pools.entries import Entry
from eldgr_dspy.programs.pools.predictions import read_predictions
from tests.case_tables import each_case
from tests.pools.layouts import refusal, table


def texts(entries: Sequence[Entry]) -> list[tuple[str | None, list[str]]]:
    return [(entry.id, [one.text for one in entry.samples]) for entry in entries]


def test_ids_that_may_number_rows_or_questions_are_asked_about(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ("id", "question", "prediction"), ("1", "Who?", "a"), ("2", " who?", "b"))
    assert refusal(lambda: list(read_predictions(path))) == (
        f"{path}, row 3: has the question of {path}, row 2 but another id, '2' for '1'. Give --by question if ids "
        "number the rows, --by id if they number the questions."
    )
    by_question, by_id = (list(read_predictions(path, columns=Columns(by=by))) for by in ("question", "id"))
    assert texts(by_question) == [("1", ["a", "b"])]
    assert texts(by_id) == [("1", ["a"]), ("2", ["b"])]


def test_columns_that_are_not_read_are_named(tmp_path: Path) -> None:
    rows = [("id", "prediction", "gold", "notes", "finish_reason", "", "split"), ("1", "a", "a", "x", "stop", "", "d")]
    path, columns = table(tmp_path / "a.csv", *rows), Columns({"tags": ["split"]})
    for names, spare in ((columns, ["notes"]), (Columns(), ["notes", "split"])):
        list(read_predictions(path, columns=names))
        assert names.spare == spare


@each_case("pools", "printed options")
def test_options_are_read_where_a_cell_prints_them(tmp_path: Path, name: str, cell: str, gold: str) -> None:
    rows = [("id", "question", name, "gold", "prediction"), ("1", "?", cell, gold, "A"), ("1", "?", "", "", "B")]
    (entry,) = read_predictions(table(tmp_path / "a.csv", *rows))
    assert (entry.options, len(entry.samples)) == (() if cell == "A; B" else ("Nice", "Oslo"), 2)
    path = table(tmp_path / "a.csv", *rows, ("1", "?", '["Nice"]', "", "B"))
    assert not entry.options or "row 4: its option differs" in refusal(lambda: list(read_predictions(path)))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])  # hazards 92, 94
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("compress", [False, True])
def test_marks_line_ends_and_blank_rows_change_nothing(tmp_path: Path, mark: bytes, end: str, compress: bool) -> None:
    lines = ["", " id , prediction", "1,Nice", ",", "", '2,"It is', 'Paris, or ""so"""', "", " , ", "3,Oslo"]
    content = mark + end.join(lines).encode()
    path = tmp_path / ("a.csv.gz" if compress else "a.csv")
    path.write_bytes(gzip.compress(content) if compress else content)
    result = list(read_predictions(path))
    assert texts(result) == [("1", ["Nice"]), ("2", [f'It is{end}Paris, or "so"']), ("3", ["Oslo"])]
    assert [entry.where for entry in result] == [f"{path}, row {number}" for number in (3, 6, 9)]


_CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8).filter(
    lambda text: text.strip() not in _MISSING | _NO_SAMPLE
)


@given(st.lists(st.tuples(st.sampled_from("abc"), _CELLS), min_size=1, max_size=9), st.sampled_from([",", "\t"]))
@example([("a", "a\u2028b\x85c\x1cd\x0be")], ",")  # hazard 93
def test_any_cell_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, samples: Any, mark: str) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=mark, quoting=csv.QUOTE_ALL).writerows([("id", "prediction"), *samples])
    path = tmp_path_factory.getbasetemp() / ("any.tsv" if mark == "\t" else "any.csv")
    path.write_bytes(out.getvalue().encode())
    names = dict.fromkeys(name for name, _ in samples)
    expected = [(one, [text for name, text in samples if name == one]) for one in names]
    assert texts(list(read_predictions(path))) == expected


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.csv"
    path.write_bytes(b"id,prediction\n1,x\n" + noise)
    limit = csv.field_size_limit()
    with suppress(PoolError):
        assert next(iter(read_predictions(path))).id == "1"
    assert csv.field_size_limit() == limit


def test_a_table_above_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # hazard 95
    path = table(tmp_path / "a.csv", ("id", "prediction"), ("1", "x"))
    monkeypatch.setattr("eldgr_dspy.programs.pools.csv_files.MAX_TABLE", path.stat().st_size - 1)
    assert refusal(lambda: list(read_predictions(path))).endswith(
        f"write its rows as JSON lines, which are read one at a time. {RAISE}"
    )
