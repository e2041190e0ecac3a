"""Every layout says the same of the same question, and what does not fit is named with file, line and field."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.certificates import Passage
from eldgr_dspy.formats.columns import Columns as CandidateColumns
from eldgr_dspy.pools import open_pool
from eldgr_dspy.programs.pools.csv_files import Columns
from eldgr_dspy.programs.pools.entries import Sample
from eldgr_dspy.programs.pools.predictions import read_predictions
from eldgr_dspy.programs.pools.question_files import read_questions
from tests.case_tables import each_case
from tests.pools import layouts
from tests.pools.layouts import log, refusal, sample, write_file

READERS: Any = {
    "predictions": read_predictions,
    "unfinished": partial(read_predictions, unfinished=True),
    "layout predictions": lambda path: read_predictions(path, "predictions"),
    "lm-eval": lambda path: read_predictions(path, "lm-eval"),
    "inspect": lambda path: read_predictions(path, "inspect"),
    "questions": read_questions,
    "facts": lambda path: read_questions(path, "facts"),
    "pool": lambda path: open_pool(path).rows(),
}
RECORD = {"id": "q0", "question": "Who?", "task": "retrieval", "candidates": [{"answer": "Ada"}]}


def deep(levels: int) -> Any:
    return [deep(levels - 1)] if levels else 0


columns_of: Any = Columns
WORDS: dict[str, Callable[..., Any]] = {
    **layouts.WORDS,
    "record": lambda **changes: RECORD | changes,
    "nested": deep,
    "Sample": Sample,
    "Passage": Passage,
    "Columns": lambda **values: CandidateColumns.model_validate(values),
    "columns": lambda **names: partial(read_predictions, columns=columns_of(names)),
    "question columns": lambda **names: partial(read_questions, columns=columns_of(names)),
}


@each_case("pools", "files that are read", **WORDS)
def test_a_file_is_read_whatever_its_layout(tmp_path: Path, read: Any, name: str, content: Any, entries: Any) -> None:
    read_entries = READERS.get(read, read)(write_file(tmp_path / name, content))
    results = [replace(entry, where=entry.where.replace(f"{tmp_path}/", "")) for entry in read_entries]
    assert [
        {field: [*value] if isinstance(value := getattr(result, field), tuple) else value for field in expected}
        for result, expected in zip(results, entries, strict=True)
    ] == entries


@each_case("pools", "files that are refused", **WORDS)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, read: Any, name: str, content: Any, sentence: str) -> None:
    path = write_file(tmp_path / name, content)  # hazards 7, 92, 94, 96
    assert refusal(lambda: list(READERS.get(read, read)(path))).replace(f"{tmp_path}/", "") == sentence


def test_a_date_that_python_cannot_hold_is_named_with_its_file(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    never = arrow.array([2**31 - 1], arrow.date32())
    table = arrow.table({"id": ["q"], "prediction": ["4"], "until": never})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "a.parquet")
    assert "a.parquet: not a readable Parquet file (" in refusal(lambda: list(read_predictions(tmp_path / "a.parquet")))


def test_a_failed_log_is_taken_where_that_is_asked_for_and_what_it_lacks_is_told(tmp_path: Path) -> None:
    of_22 = {"eval": {"dataset": {"samples": 22, "sample_ids": [*range(1, 23)]}, "config": {"epochs": 3}}}
    error, notes = {"message": "the server was gone", "traceback": ""}, list[str]()
    samples = [sample(id=number % 22 + 1, epoch=number // 22 + 1, input=f"{number % 22}?") for number in range(27)]
    failure = sample(id=6, epoch=2, input="5?", output=None, error=error)
    path = log(tmp_path / "log.json", *samples, failure, status="error", error=error, **of_22)
    entries = list(read_predictions(path, unfinished=True, notes=notes))
    assert [len(entry.samples) for entry in entries] == [2] * 6 + [1] * 16
    assert notes == [f"{path}: a log of status 'error', with 27 of 66 samples done; 1 ended in an error."]


@each_case("pools", "logs that succeeded", **WORDS)
def test_a_log_that_succeeded_is_told_of_where_it_lacks_samples(
    tmp_path: Path, samples: Any, n: Any, notes: Any
) -> None:
    path, results = log(tmp_path / "log.json", *samples, results={"total_samples": n}), list[str]()
    assert len(list(read_predictions(path, notes=results))) == len(samples)
    assert results == [f"{path}: a log of status 'success', {one}." for one in notes]
