"""Files of predictions and of questions in the layouts that others write, and what is refused of them."""

import csv
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.errors import PoolError
from eldgr_dspy.pools import Pool, Row, open_pool
from eldgr_dspy.programs.pools.building import BuildResult
from eldgr_dspy.programs.pools.entries import Entry
from eldgr_dspy.programs.pools.predictions import Layout, read_predictions
from tests.case_tables import tables_of
from tests.refusing import refusal as refusal_of

QUESTION = "Who painted it?"

RECORDS: dict[str, dict[str, Any]] = tables_of("pools")["records"]
"""A row of HotpotQA, a line that lm-evaluation-harness writes, and a sample of a log of inspect."""


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def table(path: Path, *rows: Sequence[str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, delimiter="\t" if ".tsv" in path.name else ",").writerows(rows)
    return path


def write_parquet(path: Path, *records: Mapping[str, Any]) -> Path:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist([*records]), path)
    return path


def write_file(path: Path, content: Any) -> Path:
    """A file of bytes, of a text, or of records as its name says."""
    if isinstance(content, str | bytes):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(write(path.with_suffix(""), *content).read_bytes()))
    else:
        writers: dict[str, Callable[..., Path]] = {".parquet": write_parquet, ".csv": table, ".tsv": table}
        writers.get(path.suffix.lower(), write)(path, *content)
    return path


def choice(content: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": content, "source": "generate"}, "stop_reason": "stop"}


def sample(**changes: Any) -> dict[str, Any]:
    return {**RECORDS["sample"], **changes}


def log_text(samples: Sequence[object], head: Mapping[str, Any]) -> str:
    content: dict[str, Any] = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
    return json.dumps({**content, "samples": samples, **head}, indent=2)


def log(path: Path, *samples: object, **head: Any) -> Path:
    path.write_text(log_text(samples, head), encoding="utf-8")
    return path


def only(path: Path, layout: Layout | None = None) -> Entry:
    (entry,) = read_predictions(path, layout)
    return entry


TOWNS = ("Doha", "Oslo", "Lima", "Rome")


def question(number: int) -> str:
    return f"What is town number {number}?"


def prediction_rows(numbers: Sequence[int] = range(4), name: str = "it", **changes: Any) -> list[dict[str, Any]]:
    return [{"id": f"q{n}", "question": question(n), "prediction": f"{name} says {n}", **changes} for n in numbers]


def question_rows(numbers: Sequence[int] = range(4), **changes: Any) -> list[dict[str, Any]]:
    return [{"id": f"q{n}", "question": question(n), "gold": [TOWNS[n]], **changes} for n in numbers]


def predictions(path: Path, numbers: Sequence[int] = range(4), **changes: Any) -> Path:
    return write(path, *prediction_rows(numbers, path.stem, **changes))


def questions(path: Path, numbers: Sequence[int] = range(4), **changes: Any) -> Path:
    return write(path, *question_rows(numbers, **changes))


def rows(outcome: BuildResult) -> list[Row]:
    return list(open_pool(outcome.pool.path).rows())


def texts_of(pool: Pool) -> dict[str, list[str]]:
    return {row.id: [candidate.text for candidate in row.candidates] for row in pool.rows()}


refusal = partial(refusal_of, kind=PoolError)

WORDS: dict[str, Callable[..., Any]] = {
    "times": lambda value, n: value * n,
    "joined": lambda *parts: "".join(parts),
    "bytes": lambda text: text.encode("latin-1"),
    "sample": sample,
    "harness": lambda **changes: RECORDS["harness"] | changes,
    "choice": choice,
    "log": log_text,
    "HotpotQA": lambda **changes: RECORDS["hotpotqa"] | changes,
    "predictions on": prediction_rows,
    "questions on": question_rows,
}
"""What a word in `cases.json` makes of its arguments."""
