"""Files of predictions and of questions in the layouts that others write, and what is refused of them."""

import csv
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

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


def log(path: Path, *samples: object) -> Path:
    content = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "samples": samples}
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return path


def only(path: Path, layout: Layout | None = None) -> Entry:
    (entry,) = read_predictions(path, layout)
    return entry


TOWNS = ("Doha", "Oslo", "Lima", "Rome")


def question(number: int) -> str:
    return f"What is town number {number}?"


def predictions(path: Path, numbers: Sequence[int] = range(4), **changes: Any) -> Path:
    rows = [
        {"id": f"q{number}", "question": question(number), "prediction": f"{path.stem} says {number}", **changes}
        for number in numbers
    ]
    return write(path, *rows)


def questions(path: Path, numbers: Sequence[int] = range(4), **changes: Any) -> Path:
    rows = [
        {"id": f"q{number}", "question": question(number), "gold": [TOWNS[number]], **changes} for number in numbers
    ]
    return write(path, *rows)


def rows(built: BuildResult) -> list[Row]:
    return list(open_pool(built.pool.path).rows())


def texts_of(pool: Pool) -> dict[str, list[str]]:
    return {row.id: [candidate.text for candidate in row.candidates] for row in pool.rows()}


refused = partial(refused_by, kind=PoolError)
