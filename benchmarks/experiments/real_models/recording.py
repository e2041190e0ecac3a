"""What the models wrote, by question id: small enough to keep, and every table comes from it without a model."""

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.experiments.real_models.real_questions import QUESTIONS, records

RESULTS = Path("artifacts/results/real-models")
POOLS = {"hotpotqa": "hotpotqa", "mixed": "hotpotqa", "gsm8k": "gsm8k"}
"""The pools, and the data set that has the questions of each."""


def keep(out: Path) -> None:
    """Write the candidates of each pool and the replies of each run under `RESULTS`, without questions and passages."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in POOLS:
        if (pool := out / f"{name}.jsonl").exists():
            answers = ({name: row[name] for name in ("id", "task", "candidates")} for row in records(pool))
            _write(RESULTS / f"{name}.candidates.jsonl.gz", answers)
        if (journal := out / name / "journal.jsonl").exists():
            _write(RESULTS / f"{name}.replies.jsonl.gz", _replies(journal))


def restore(data: Path, out: Path) -> None:
    """Write the pools again, from the kept candidates and the data sets' questions."""
    for name, source in POOLS.items():
        if not (recording := RESULTS / f"{name}.candidates.jsonl.gz").exists():
            continue
        answers = {row["id"]: row for row in records(recording)}
        out.mkdir(parents=True, exist_ok=True)
        with (out / f"{name}.jsonl").open("w", encoding="utf-8") as pool:
            for row in QUESTIONS[source](data, sys.maxsize):
                if row["id"] in answers:
                    pool.write(json.dumps(row | answers[row["id"]], ensure_ascii=False) + "\n")
        sys.stdout.write(f"{out / name}.jsonl: {len(answers)} questions.\n")


def _replies(journal: Path) -> Iterator[dict[str, Any]]:
    """Yield the consultations; `served` and a line's checksum, which covers it, go: it names a file of the machine."""
    for line in records(journal):
        if line["kind"] == "consultation":
            yield {name: value for name, value in line.items() if name not in ("served", "crc32")}


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write a compressed file that is the same bytes for the same rows."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as lines:
        for row in rows:
            lines.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
