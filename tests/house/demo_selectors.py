"""The columns of artifacts/demo-selectors.jsonl, drawn from hashes: the questions of demo-retrieval.jsonl with them.

Run: python -m tests.house.demo_selectors > artifacts/demo-selectors.jsonl
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

SOURCE = Path("artifacts/demo-retrieval.jsonl")
TAGS = (("cot",), ("cot", "bm25"), ("react", "bm25"), ("direct",))


def draw(name: str) -> float:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) / 2**32


def with_columns(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose candidates state every column; right candidates have slightly higher values."""
    for place, candidate in enumerate(row["candidates"]):
        right = 0.1 * (candidate["answer"] in row["gold"])

        def value(column: str, where: str = f"{row['id']} {place}", lift: float = right) -> float:
            return round(0.9 * draw(f"{where} {column}") + lift, 2)

        candidate |= {
            "confidence": value("confidence"),
            "logprobs": {"tokens": [round(value(f"token {n}") - 1.5, 2) for n in range(8)], "answer_tokens": 2},
            "scores": {
                "orm": value("orm"),
                "prm": [value(f"step {n}") for n in range(3)],
                "relevance": value("relevance"),
                "coherence": value("coherence"),
                "self_certainty": round(10 + 8 * value("certainty"), 2),
            },
            "tags": [*TAGS[place % len(TAGS)]],
        }
    return row


if __name__ == "__main__":
    rows = map(json.loads, SOURCE.read_text(encoding="utf-8").splitlines())
    sys.stdout.writelines(f"{json.dumps(with_columns(row), ensure_ascii=False)}\n" for row in rows)
