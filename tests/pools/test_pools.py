"""A pool is validated whole, hashed by its content in any format, written whole or not at all, and streamed."""

import errno
import gzip
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import answer_class, exact_match
from eldgr_dspy.certificates import Passage
from eldgr_dspy.formats.rows import MAX_DEPTH, CandidateRow, PassageRow
from eldgr_dspy.pools import Row, open_pool, open_pools, pool_name, schema, write_pool
from tests.case_tables import each_case
from tests.memory import memory_of
from tests.pools.layouts import WORDS, refusal, write, write_parquet
from tests.refusing import refusal as refusal_of

FORMATS = (".jsonl", ".jsonl.gz", ".gz", ".parquet")


def record(number: int = 0, /, **changes: Any) -> dict[str, Any]:
    result = {"id": f"q{number}", "question": "Who?", "task": "retrieval", "candidates": [{"answer": "Ada"}]}
    return {**result, **changes}


def rows(n: int, **changes: Any) -> Iterator[Row]:
    return (Row.model_validate(record(number, **changes)) for number in range(n))


FULL = record(
    id="full",
    question="Who? \u2028 \x85 \x00 é 日本 \U0001f600",
    candidates=[{"text": "", "answer": None, "source": None}, {"text": "Ada\n", "answer": " Ada", "source": "m"}, {}],
    evidence=[{"title": "", "text": "Ada \x1c wrote."}, {"text": ""}],
    gold=["Ada", " A."],
    meta={"seed": 1, "temperature": 0.5, "nested": [{"a": None}, True], "é": "\u2029"},
)


def test_a_row_is_what_the_rules_are_told_and_meta_is_plain_json_to_a_bounded_depth(tmp_path: Path) -> None:
    pool = open_pool(write(tmp_path / "p.jsonl", FULL))
    (row,) = pool.rows()
    question = row.to_question()
    assert (question.text, question.task, question.answers) == (FULL["question"], "retrieval", (None, " Ada", None))
    assert (question.texts, question.passages) == (("", "Ada\n", ""), (Passage("", "Ada \x1c wrote."), Passage("", "")))
    assert (pool.name, pool.n, pool.task, pool.missing) == ("p", 1, "retrieval", 2)
    # Deeper is refused: see "files that are refused" in `cases.json`.
    deep = json.loads("[" * (MAX_DEPTH - 1) + "0" + "]" * (MAX_DEPTH - 1))
    assert open_pool(write(tmp_path / "p.jsonl", record(meta={"x": deep}))).n == 1


def test_rows_come_in_order_whatever_blank_lines_last_newline_and_suffix_are(tmp_path: Path) -> None:  # hazard 94
    pool = open_pool(write(tmp_path / "p.jsonl", *map(record, range(5))))
    for limit, n in ((None, 5), (0, 0), (1, 1), (5, 5), (9, 5)):
        assert [row.id for row in pool.rows(limit)] == [f"q{number}" for number in range(n)]
    other = write_pool(pool.path, (row for row in open_pool(pool.path).rows() if row.id != "q1"))
    assert [row.id for row in other.rows()] == ["q0", "q2", "q3", "q4"]
    lines = [json.dumps(record(number)) for number in range(2)]
    (tmp_path / "p.jsonl").write_text(f"\n{lines[0]}\n \t\r\n{lines[1]}")
    (tmp_path / "a.jsonl").write_bytes(gzip.compress(lines[0].encode()))
    (tmp_path / "b.jsonl.gz").write_bytes(lines[0].encode())
    assert [open_pool(tmp_path / name).n for name in ("p.jsonl", "a.jsonl", "b.jsonl.gz")] == [2, 1, 1]


@each_case("pools", "pools that changed")
def test_rows_come_by_sixteen_if_they_are_those_hashed(
    tmp_path: Path, n: int, after: int, where: str, count: int
) -> None:
    path = write(tmp_path / "p.jsonl", *map(record, range(n)))
    pool = open_pool(path)
    changes = {20: {"question": "Who else?"}} if n == after else {}
    write(path, *(record(number, **changes.get(number, {})) for number in range(after)))
    values: list[Row] = []
    message = refusal(lambda: values.extend(pool.rows()))
    assert message == f"{path}, {where}: changed since the pool was opened; restore the file and start again."
    assert len(list(pool.rows(count))) == count
    path.unlink()
    assert "no such file" in refusal(lambda: list(pool.rows()))


def count_rows(path: Path) -> int:
    return sum(1 for _ in open_pool(path).rows())


def test_memory_grows_by_a_few_bytes_a_row(tmp_path: Path) -> None:
    few, many = (write(tmp_path / f"{n}.jsonl", *map(record, range(n))) for n in (1_000, 6_000))
    assert memory_of(count_rows, many).peak - memory_of(count_rows, few).peak < 5_000 * 64


def test_columns_and_fields_that_are_missing_or_null_are_absent_and_meta_may_be_json(tmp_path: Path) -> None:
    arrow, file = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rest: dict[str, Any] = {"question": "Who?", "task": "retrieval"}
    first = {"id": "q0", **rest, "candidates": [{"answer": "Ada", "text": None}], "evidence": None}
    second = {"id": "q1", **rest, "candidates": [{"answer": None, "text": "?"}]}
    second["evidence"] = [{"text": "Ada wrote.", "title": None}]
    table = arrow.Table.from_pylist([first, second])
    file.write_table(table.set_column(0, "id", table["id"].cast(arrow.large_string())), tmp_path / "p.parquet")
    pool = open_pool(tmp_path / "p.parquet")
    plain = record(1, candidates=[{"text": "?"}], evidence=[{"text": "Ada wrote."}])
    assert pool.sha256 == open_pool(write(tmp_path / "p.jsonl", record(0), plain)).sha256
    assert [row.meta for row in pool.rows()] == [{}, {}]
    for meta in ({"seed": 1}, '{"seed": 1}'):
        path = write_parquet(tmp_path / "p.parquet", record(0, meta=meta), record(1, meta=None))
        assert [row.meta for row in open_pool(path).rows()] == [{"seed": 1}, {}]


def test_what_is_no_parquet_or_what_is_lost_on_pyarrow_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    """It keeps the last of two columns; categories are a few bytes a row in the file, and many texts once read."""
    arrow, file = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "p.parquet"
    for content in (b"", b"PAR1", b"PAR1" + b"x" * 100 + b"PAR1", json.dumps(record()).encode()):
        path.write_bytes(content)
        assert refusal(lambda: open_pool(path)).startswith(f"{path}: not a readable Parquet file (")
    twice = arrow.table([["q0"], ["Who?"], ["Why?"]], names=["id", "question", "question"])
    categories = arrow.table({"id": ["q0"], "task": arrow.array(["retrieval"]).dictionary_encode()})
    for table, message in (
        (twice, "two columns have the same name (id, question, question); drop one."),
        (categories, "p.parquet: column 'task' holds categories; write it as plain text."),
    ):
        file.write_table(table, path)
        assert refusal(lambda: open_pool(path)).endswith(message)
    write_pool(path, rows(1))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    needs = "p.parquet: Parquet needs pyarrow; run: pip install 'eldgr_dspy[parquet]'"
    assert refusal(lambda: open_pool(path)).endswith(needs)


def test_the_hash_is_of_the_content_and_not_of_the_spelling(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    expected = open_pool(write(path, FULL)).sha256
    spellings: list[Any] = [
        json.dumps(FULL, ensure_ascii=False, indent=None, separators=(" , ", " : ")),
        json.dumps(dict(reversed(FULL.items()))),
        json.dumps({**FULL, "meta": {}}),
        json.dumps(FULL).replace("{}", '{"text": "", "answer": null, "source": null}'),
        json.dumps(FULL).replace("{}", '{"answer": NaN}'),
    ]
    for line in spellings:
        path.write_text(line, encoding="utf-8")
        assert open_pool(path).sha256 == expected


@each_case("pools", "pools of other content", record=record)
def test_any_change_of_the_content_or_of_the_order_changes_the_hash(tmp_path: Path, other: list[Any]) -> None:
    first = open_pool(write(tmp_path / "p.jsonl", record(0), record(1)))
    assert open_pool(write(tmp_path / "q.jsonl", *other)).sha256 != first.sha256


text = st.text(max_size=8)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
    max_leaves=4,
)
candidates = st.builds(CandidateRow, text=text, answer=st.none() | text, source=st.none() | text)
fields: dict[str, st.SearchStrategy[Any]] = {"id": st.text(min_size=1, max_size=6), "question": text}
fields |= {"task": st.just("retrieval"), "candidates": st.lists(candidates, min_size=1, max_size=3)}
fields |= {"evidence": st.lists(st.builds(PassageRow, title=text, text=text), max_size=2)}
fields |= {"gold": st.lists(text.filter(lambda gold: answer_class(gold, "retrieval") is not None), max_size=2)}
any_rows = st.builds(Row, **fields, meta=st.dictionaries(text, json_values, max_size=2))


@settings(max_examples=40)
@given(st.lists(any_rows, min_size=1, max_size=4, unique_by=lambda row: row.id))
@example([Row.model_validate(FULL), *rows(40)])
def test_rows_come_back_from_every_format_as_they_were_written(values: list[Row]) -> None:
    """With the same hash; forty are more than Parquet is read by at once."""
    with tempfile.TemporaryDirectory() as folder:
        pools = [write_pool(Path(folder, f"p{suffix}"), values) for suffix in FORMATS]
        assert len({pool.sha256 for pool in pools}) == 1
        for pool in pools:
            assert (pool, list(pool.rows())) == (open_pool(pool.path), values)


def test_lines_split_anywhere_are_rows_and_the_same_rows_the_same_bytes(tmp_path: Path) -> None:  # hazard 93
    write_pool(tmp_path / "p.jsonl", [Row.model_validate(FULL), *rows(1)])
    lines = (tmp_path / "p.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["full", "q0"]
    assert "日本" in lines[0]
    for suffix in FORMATS:
        one, other = (write_pool(tmp_path / f"{name}{suffix}", rows(3)).path for name in ("one", "other"))
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("suffix", FORMATS)
@each_case("pools", "rows that are not a pool")
def test_rows_that_are_no_pool_leave_the_old_file(tmp_path: Path, suffix: str, values: Any, message: str) -> None:
    path = tmp_path / f"p{suffix}"
    before = write_pool(path, rows(2))
    records = (record(**({"id": one} if isinstance(one, str) else one)) for one in values)
    assert refusal(lambda: write_pool(path, map(Row.model_validate, records))) == f"{path}{message}"
    assert open_pool(path) == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_row_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    message = refusal(lambda: write_pool(tmp_path / "p.jsonl", rows(1, candidates=[{"text": "x" * 500_000}] * 34)))
    assert message.endswith("p.jsonl, id 'q0': a row of 17,001,661 bytes; at most 16,777,216 can be read.")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_full_disk_leaves_the_old_pool_intact(tmp_path: Path, suffix: str) -> None:  # hazard 89
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    path = tmp_path / f"p{suffix}"
    before = write_pool(path, rows(2))
    noise = rows(2_000, gold=[os.urandom(40).hex() for _ in range(20)])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, limits[1]))
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            write_pool(path, noise)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert open_pool(path) == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_pool_is_named_after_its_file_and_pools_of_one_name_are_refused(tmp_path: Path) -> None:
    names = {"a/x.jsonl": "x", "x.jsonl.gz": "x", "x.gz": "x", "x.y.parquet": "x.y", "x": "x", ".jsonl": ".jsonl"}
    assert {path: pool_name(Path(path)) for path in names} == names
    paths = [write_pool(tmp_path / f"{name}.jsonl", rows(1)).path for name in "ba"]
    assert [pool.name for pool in open_pools(paths)] == ["b", "a"]
    one, other = write_pool(tmp_path / "x.jsonl", rows(1)).path, write_pool(tmp_path / "x.jsonl.gz", rows(1)).path
    for first, second in ((one, other), (one, one)):
        message = f"{first} and {second} are both named 'x'; rename one of the files."
        assert refusal_of(lambda: open_pools([first, second])) == message  # noqa: B023
    assert refusal_of(lambda: open_pools("x.jsonl")) == "'x.jsonl' is one path; give a list of them."


def test_the_published_schema_is_that_of_the_code() -> None:
    """Made by: python -c 'import json, eldgr_dspy.pools as p; print(json.dumps(p.schema(), indent=2))'."""
    file = Path(__file__).parents[2] / "artifacts" / "pool.schema.json"
    assert json.loads(file.read_text(encoding="utf-8")) == schema()


@each_case("pools", "changes of a row", full=lambda: FULL, **WORDS)
def test_the_published_schema_takes_what_the_code_takes(tmp_path: Path, change: dict[str, Any]) -> None:
    """A schema can't say that meta is plain JSON to a bounded depth, that ids are unique, or gold answers visible."""
    validator = pytest.importorskip("jsonschema").Draft202012Validator(schema())
    value = record(**change)
    path = write(tmp_path / "p.jsonl", value)
    if validator.is_valid(value):
        assert open_pool(path).n == 1
    else:
        refusal(lambda: open_pool(path))


@pytest.mark.parametrize("gold", ["the", ".", "A", "-", "A+"])
def test_a_gold_answer_of_which_the_normalisation_leaves_nothing_makes_no_other_answer_right(gold: str) -> None:
    row = Row.model_validate(record(gold=[gold]))
    right = [exact_match(answer, row.gold) for answer in (gold, None, " ", "an", "Ada")]
    assert right == [True, False, False, True, False]  # "an" as the official evaluation has it
    assert answer_class("an", "retrieval") != answer_class(gold, "retrieval")


def test_a_folder_of_files_is_the_pool_of_their_rows_in_the_order_of_their_names(tmp_path: Path) -> None:
    given_rows = [*rows(6)]
    whole = write_pool(tmp_path / "whole.jsonl", given_rows)
    folder = tmp_path / "parts.parquet"
    folder.mkdir()
    for name, part in (("c.jsonl", given_rows[3:]), ("b.parquet", given_rows[1:3]), ("a.jsonl.gz", given_rows[:1])):
        write_pool(folder / name, part)
    for name in ("_SUCCESS", "_metadata.parquet", ".hidden.jsonl", "notes.txt"):
        (folder / name).write_text("not rows")
    result = open_pool(folder)
    assert (result.name, result.n, result.sha256) == ("parts", 6, whole.sha256)
    assert list(result.rows()) == given_rows
    write_pool(folder / "d.jsonl", given_rows[:1])
    assert "id 'q0' is in a.jsonl.gz, line 1 and in d.jsonl, line 1" in refusal(lambda: open_pool(folder))
