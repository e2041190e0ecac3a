"""Tables in CSV and TSV hold a row a sample or a row a question, and what is wrong with one is named by its row."""

import csv
import gzip
import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.base.file_limits import RAISE
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import PoolError
from eldgr_dspy.formats.rows import MAX_CANDIDATES, MAX_CHARACTERS
from eldgr_dspy.programs.pools.building import Recipe, build_pool
from eldgr_dspy.programs.pools.csv_files import _MISSING, _NO_SAMPLE, Columns, Field
from eldgr_dspy.programs.pools.entries import Entry, Sample
from eldgr_dspy.programs.pools.predictions import read_predictions
from eldgr_dspy.programs.pools.question_files import read_questions
from tests.pools.layouts import refused, table


def read(path: Path, **names: Sequence[str]) -> list[Entry]:
    return list(read_predictions(path, columns=Columns(cast("dict[Field, Sequence[str]]", names))))


def texts(entries: Sequence[Entry]) -> list[tuple[str | None, list[str]]]:
    return [(entry.id, [one.text for one in entry.samples]) for entry in entries]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "A.CSV"])
def test_rows_on_one_question_are_its_samples_in_order(tmp_path: Path, name: str) -> None:
    header, gold = ("id", "question", "prediction", "gold", "evidence"), ("Nice", "It, is\tNice.")
    path = table(
        tmp_path / name,
        header,
        ("1", "Which?", "Nice", *gold),
        ("2", "And?", "Paris", "", ""),
        ("1", "which? ", "Lyon", "", ""),
        ("1", "", "", *gold),
    )
    assert read(path) == [
        Entry(
            f"{path}, row 2",
            "1",
            "Which?",
            (Sample("Nice"), Sample("Lyon"), Sample("", None, final=True)),
            ("Nice",),
            (Passage("", "It, is\tNice."),),
        ),
        Entry(f"{path}, row 3", "2", "And?", (Sample("Paris"),)),
    ]


def test_without_an_id_rows_are_joined_by_the_text_of_the_question(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ("prediction", "question"), ("a", "Who?"), ("b", "How?"), ("c", " WHO? "))
    assert texts(read(path)) == [(None, ["a", "c"]), (None, ["b"])]


def test_ids_that_may_number_rows_or_questions_are_asked_about(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ("id", "question", "prediction"), ("1", "Who?", "a"), ("2", " who?", "b"))
    assert refused(lambda: read(path)) == (
        f"{path}, row 3: has the question of {path}, row 2 but another id, '2' for '1'. Give --by question if ids "
        "number the rows, --by id if they number the questions."
    )
    by_question, by_id = (list(read_predictions(path, columns=Columns(by=by))) for by in ("question", "id"))
    assert texts(by_question) == [("1", ["a", "b"])]
    assert texts(by_id) == [("1", ["a"]), ("2", ["b"])]


def test_a_row_a_question_has_a_column_a_sample(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ("id", "gpt", "llama", "x"), ("1", "Nice", "", "?"))
    (entry,) = read(path, prediction=["gpt", "llama"])
    assert entry.samples == (Sample("Nice", source="gpt"), Sample("", None, final=True, source="llama"))


def test_answers_and_sources_are_read_where_a_flag_names_them(tmp_path: Path) -> None:
    rows = [("id", "prediction", "answer", "model"), ("1", "2 + 3 = 5", "5", "gpt"), ("1", "I refuse.", "", "llama")]
    path = table(tmp_path / "a.csv", *rows)
    assert read(path)[0].samples == (Sample("2 + 3 = 5"), Sample("I refuse."))
    assert read(path, answer=["answer"], source=["model"])[0].samples == (
        Sample("2 + 3 = 5", "5", final=True, source="gpt"),
        Sample("I refuse.", None, final=True, source="llama"),
    )


def test_several_columns_of_gold_and_evidence_are_several_of_them(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ("id", "prediction", "g", "h", "p", "q"), ("1", "x", "#### 5", "V", "one", "two"))
    (entry,) = read(path, gold=["g", "h"], evidence=["p", "q"])
    assert (entry.gold, entry.evidence) == (("5", "V"), (Passage("", "one"), Passage("", "two")))


def test_a_table_of_questions_has_a_row_each(tmp_path: Path) -> None:
    path = table(tmp_path / "q.csv", ("question", "answer", "prediction"), ("Who?", "#### 5", "x"), ("Who?", "6", "y"))
    expected = [("Who?", (), ("5",)), ("Who?", (), ("6",))]
    assert [(entry.question, entry.samples, entry.gold) for entry in read_questions(path)] == expected
    (_, second) = read_questions(path, columns=Columns({"question": ["answer"], "gold": ["prediction"]}))
    assert (second.question, second.gold) == ("6", ("y",))
    assert "q.csv, row 1: no column is named 'Ask'; the columns are 'question'," in refused(
        lambda: list(read_questions(path, columns=Columns({"question": ["Ask"]})))
    )


@pytest.mark.parametrize(
    "header",
    ["id;question;prediction", 'id;"question";prediction', "id;question;prediction;x,y", ";\n\nid;question;prediction"],
)
def test_semicolons_separate_cells_where_the_header_has_them(tmp_path: Path, header: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f'{header}\n1;Which, then?;"Nice; or, Paris"{";" * header.count("x,y")}\n')
    (entry,) = read(path)
    assert (entry.question, entry.samples) == ("Which, then?", (Sample("Nice; or, Paris"),))


def test_a_semicolon_in_a_table_with_commas_is_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,a;b;c,prediction\n1,x;y;z,Nice;Paris\n")
    assert texts(read(path)) == [("1", ["Nice;Paris"])]


def test_columns_that_are_not_read_are_named(tmp_path: Path) -> None:
    rows = [("id", "prediction", "gold", "notes", "finish_reason", "", "split"), ("1", "a", "a", "x", "stop", "", "d")]
    path, columns = table(tmp_path / "a.csv", *rows), Columns({"tags": ["split"]})
    for names, unread in ((columns, ["notes"]), (Columns(), ["notes", "split"])):
        list(read_predictions(path, columns=names))
        assert names.unread == unread
    built = build_pool(
        Recipe([table(tmp_path / "b.csv", *[(*row, "Who?") for row in rows])], "short", columns={"question": ["Who?"]}),
        tmp_path / "pool.jsonl",
    )
    named = "columns that are not read: 'notes', 'split'. --column FIELD=NAME reads one."
    assert built.lacking == [f"{tmp_path / 'b.csv'}: {named}"]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])  # hazard 92
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("packed", [False, True])
def test_marks_line_ends_and_blank_rows_change_nothing(tmp_path: Path, mark: bytes, end: str, packed: bool) -> None:
    lines = ["", " id , prediction", "1,Nice", ",", "", '2,"It is', 'Paris, or ""so"""', "", " , ", "3,Oslo"]
    content = mark + end.join(lines).encode()
    path = tmp_path / ("a.csv.gz" if packed else "a.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    result = read(path)
    assert texts(result) == [("1", ["Nice"]), ("2", [f'It is{end}Paris, or "so"']), ("3", ["Oslo"])]
    assert [entry.where for entry in result] == [f"{path}, row {number}" for number in (3, 6, 9)]


_CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8).filter(
    lambda text: text.strip() not in _MISSING | _NO_SAMPLE
)


@given(st.lists(st.tuples(st.sampled_from("abc"), _CELLS), min_size=1, max_size=9), st.sampled_from([",", "\t"]))
@example([("a", "a\u2028b\x85c\x1cd\x0be")], ",")  # hazard 93
def test_whatever_a_cell_holds_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, samples: list[tuple[str, str]], mark: str
) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=mark, quoting=csv.QUOTE_ALL).writerows([("id", "prediction"), *samples])
    path = tmp_path_factory.getbasetemp() / ("any.tsv" if mark == "\t" else "any.csv")
    path.write_bytes(out.getvalue().encode())
    asked = dict.fromkeys(name for name, _ in samples)
    assert texts(read(path)) == [(one, [text for name, text in samples if name == one]) for one in asked]


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.csv"
    path.write_bytes(b"id,prediction\n1,x\n" + noise)
    limit = csv.field_size_limit()
    with suppress(PoolError):
        assert read(path)[0].id == "1"
    assert csv.field_size_limit() == limit


HEADER = "id,question,prediction\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the table is empty; give a row that names the columns, and a row a sample or question."),
        (HEADER, "the table is empty; give a row that names the columns, and a row a sample or question."),
        (
            f"{HEADER}1,Which?\n",
            ", row 2: 2 cells under 3 columns; give one cell a column, in quotes if it holds a separator or a line ",
        ),
        (f"{HEADER}1,Which?,x\n\n2,And?,a, b\n", ", row 4: 4 cells under 3 columns; give one cell a column, in quotes"),
        (f'{HEADER}1,"a\nb",x\n2,And?,"t', ", row 3: not readable as CSV (unexpected end of data); close each quoted"),
        (f'{HEADER}1,Who?,"a" b\n', ", row 2: not readable as CSV (',' expected after '\"'); close each quoted cell,"),
        (
            f"{HEADER}1,Which?,{'x' * (MAX_CHARACTERS + 1)}\n",
            ", row 2: not readable as CSV (field larger than field limit (500000)); close each quoted cell, double "
            "each quote inside it, and give at most 500,000 characters a cell.",
        ),
        (
            "id,question,output\n1,Which?,x\n",
            ", row 1: no column is named 'prediction'; the columns are 'id', 'question', 'output'. Say which one it "
            "is: --column prediction=NAME.",
        ),
        ("key,prediction\n1,x\n", ", row 1: no column is named 'question'; the columns are 'key', 'prediction'. Say"),
        (
            "id|question|prediction\n1|Which?|x\n",
            "--column prediction=NAME. Separate cells by commas or semicolons in CSV, by tabs in TSV.",
        ),
        ("id,prediction,prediction\n1,x,y\n", ", row 1: the column 'prediction' occurs twice; rename one."),
        (f"{HEADER}1,Which?,x\n1,What?,y\n", ", row 3: its question differs from that in "),
        ("id,prediction,gold\n1,x,a\n1,y,b\n", ", row 3: its gold differs from that in "),
        ("id,prediction,evidence\n1,x,a\n1,y,b\n", "a row on the same question; write the same in both, or leave"),
        (
            "id,prediction\n" + "1,x\n" * (MAX_CANDIDATES + 1),
            f", row {MAX_CANDIDATES + 2}: the question has more than 1,000 rows; name its column right.",
        ),
    ],
)
def test_what_is_wrong_in_a_table_is_named_by_its_row(tmp_path: Path, content: str, message: str) -> None:  # hazard 94
    (tmp_path / "a.csv").write_text(content, encoding="utf-8", newline="")
    error = refused(lambda: read(tmp_path / "a.csv"))
    assert error.startswith(str(tmp_path / "a.csv")) and message in error


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,prediction\n1,\0\n", ", line 2: a NUL byte, as in UTF-16 or in a binary file; save the table as text in"),
        ("id,prediction\n1,x\n".encode("utf-16-le"), ", line 1: a NUL byte, as in UTF-16 or in a binary file; save"),
        ("id,prediction\n1,x\n".encode("utf-16"), "not a text file but UTF-16 text; save it as UTF-8"),
        (b"id,prediction\n1,caf\xe9\n", ", line 2: not UTF-8; save the table as text in UTF-8."),
        (b"PK\x03\x04", "not a text file but a zip archive"),
    ],
)
def test_a_table_that_is_not_utf_8_is_refused(tmp_path: Path, content: bytes, message: str) -> None:  # hazard 92
    (tmp_path / "a.csv").write_bytes(content)
    error = refused(lambda: read(tmp_path / "a.csv"))
    assert error.startswith(str(tmp_path / "a.csv")) and message in error


def test_answers_have_as_many_columns_as_predictions(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ("id", "a", "b", "c"), ("1", "x", "y", "z"))
    assert refused(lambda: read(path, prediction=["a", "b"], answer=["c"])) == (
        f"{path}, row 1: answer must have as many columns as prediction, 2; got 1. Name them all."
    )


def test_a_table_above_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # hazard 95
    path = table(tmp_path / "a.csv", ("id", "prediction"), ("1", "x"))
    monkeypatch.setattr("eldgr_dspy.programs.pools.csv_files.MAX_TABLE", path.stat().st_size - 1)
    assert refused(lambda: read(path)).endswith(f"write its rows as JSON lines, which are read one at a time. {RAISE}")
