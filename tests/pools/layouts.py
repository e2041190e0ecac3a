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
from tests.refusing import refused as refused_by

QUESTION = "Who painted it?"

SOLUTION = "He has 2 and 3.\nThat is <<2+3=5>>5.\n#### 5"

HOTPOTQA = {
    "id": "5ab",
    "question": QUESTION,
    "answer": "Ana",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": {"title": ["Ana", "It", "It"], "sent_id": [0, 1, 9]},
    "context": {
        "title": ["Ana", "It", "Bo"],
        "sentences": [["Ana paints.", " Ana sings."], ["It hangs.", " Ana did it."], ["Bo did not."]],
    },
}


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def table(path: Path, *rows: Sequence[str]) -> Path:
    """A table as spreadsheets write it."""
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


def harness(**changes: Any) -> dict[str, Any]:
    """A line of `samples_gsm8k_DATE.jsonl`, as lm-evaluation-harness writes it."""
    return {
        "doc_id": 0,
        "doc": {"question": QUESTION, "answer": SOLUTION},
        "target": SOLUTION,
        "arguments": {"gen_args_0": {"arg_0": f"Question: {QUESTION}\nAnswer:", "arg_1": {"until": ["Question:"]}}},
        "resps": [[" 2 + 3 = 5\n#### 5"]],
        "filtered_resps": ["[invalid]"],
        "filter": "strict-match",
        "metrics": ["exact_match"],
        "doc_hash": "d",
        "prompt_hash": "p",
        "target_hash": "t",
        "exact_match": 0.0,
        **changes,
    }


def choice(content: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": content, "source": "generate"}, "stop_reason": "stop"}


def sample(**changes: Any) -> dict[str, Any]:
    """A sample of a log of inspect."""
    return {
        "id": 1,
        "epoch": 1,
        "input": QUESTION,
        "target": "Ana",
        "messages": [],
        "output": {"model": "m", "choices": [choice("ANSWER: Ana")], "completion": "ANSWER: Ana"},
        "scores": {"match": {"value": "C", "answer": "Bo"}},
        **changes,
    }


def log_text(samples: Sequence[object], head: Mapping[str, Any]) -> str:
    content: dict[str, Any] = {
        "version": 2,
        "status": "success",
        "eval": {"task": "t", "model": "m"},
        "samples": samples,
    }
    return json.dumps({**content, **head}, indent=2)


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


def rows(built: BuildResult) -> list[Row]:
    return list(open_pool(built.pool.path).rows())


def texts_of(pool: Pool) -> dict[str, list[str]]:
    return {row.id: [candidate.text for candidate in row.candidates] for row in pool.rows()}


refused = partial(refused_by, kind=PoolError)

WORDS: dict[str, Callable[..., Any]] = {
    "times": lambda value, n: value * n,
    "joined": lambda *parts: "".join(parts),
    "bytes": lambda text: text.encode("latin-1"),
    "sample": sample,
    "harness": harness,
    "choice": choice,
    "log": log_text,
    "HotpotQA": lambda **changes: HOTPOTQA | changes,
    "predictions on": prediction_rows,
    "questions on": question_rows,
}
"""What a word in `cases.json` makes of its arguments."""
