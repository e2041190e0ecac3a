"""The questions: HotpotQA with five passages by BM25, and GSM8K, drawn by a seed, without those tried before."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eldgr_dspy.certificates import Passage
from eldgr_dspy.pools import read_records
from eldgr_dspy.programs.scoring.bm25 import BM25

SEED = 2029
PASSAGES = 5
"""How many passages a question has, the paper's K."""


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file of JSON lines, compressed or not."""
    yield from (record for _, record in read_records(path))


def sample(rows: list[dict[str, Any]], past: set[str], n: int) -> list[dict[str, Any]]:
    """Return n rows in the order of the draw; a larger n adds to those of a smaller one."""
    rest = sorted((row for row in rows if row["id"] not in past), key=lambda row: str(row["id"]))
    random.Random(SEED).shuffle(rest)
    return rest[:n]


def hotpotqa(data: Path, n: int) -> list[dict[str, Any]]:
    """Return n distractor questions, each with the five of its ten paragraphs that BM25 ranks first."""
    past = {row["id"] for row in records(data / "first-try" / "hotpot5-qwen15b-24.jsonl.gz")}
    return [_with_passages(row) for row in sample(list(records(data / "hotpotqa-distractor300.jsonl.gz")), past, n)]


def gsm8k(data: Path, n: int) -> list[dict[str, Any]]:
    """Return n test questions."""
    past = {row["question"] for row in records(data / "first-try" / "gsm8k-qwen15b-20.jsonl.gz")}
    rows = list(records(data / "gsm8k-openai4.jsonl.gz"))
    rest = sample(rows, {row["id"] for row in rows if row["question"] in past}, n)
    return [{key: row[key] for key in ("id", "question", "gold")} for row in rest]


def _with_passages(row: dict[str, Any]) -> dict[str, Any]:
    paragraphs = [Passage(text="".join(part["sentences"]).strip(), title=part["title"]) for part in row["context"]]
    passages = [paragraphs[hit.document] for hit in BM25(paragraphs).search([row["question"]], PASSAGES)[0]]
    evidence = [{"title": passage.title, "text": passage.text} for passage in passages]
    return {"id": row["id"], "question": row["question"], "evidence": evidence, "gold": row["gold"]}


QUESTIONS = {"hotpotqa": hotpotqa, "gsm8k": gsm8k}


def write_questions(name: str, data: Path, n: int, path: Path) -> None:
    """Write n questions of a data set as a file that `eldgr collect` reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in QUESTIONS[name](data, n)), encoding="utf-8"
    )
