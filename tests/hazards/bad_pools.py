"""Bad pools, each once, for the tests that give them to the Python API and to the command."""

import gzip
import json
import pickle
from collections.abc import Callable, Iterable, Mapping
from operator import mul
from pathlib import Path
from typing import Any

from tests.case_tables import TEXTS, build, tables_of

EVIDENCE = [{"title": "Nice", "text": "Nice lies by the sea."}]


def record(number: int, **changes: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"id": f"q{number}", "question": "Which town lies by the sea?", "task": "retrieval"}
    return {**result, "candidates": [{"text": "I think Nice", "answer": "Nice"}], "gold": ["Nice"], **changes}


def row(number: int, changes: Mapping[str, Any] = {}) -> dict[str, Any]:
    return record(number, **changes)


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in record(1).items() if name != field}


def write_lines(path: Path, records: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path


def nest(depth: int) -> list[Any]:
    results: list[Any] = []
    for _ in range(depth):
        results = [results]
    return results


WORDS: dict[str, Callable[..., Any]] = {"float": float, "nested": nest, **TEXTS}
BAD_ROWS: list[tuple[dict[str, Any], str]] = [
    (changes, message) for changes, message in build(tables_of("hazards")["bad rows"]["cases"], WORDS)
]
"""Changes of a row, and what is said of it after the place."""

POOLS = build(tables_of("hazards")["bad pools"], {"row": row, "without": without, **TEXTS})
BAD_POOLS: list[tuple[list[dict[str, Any]], str]] = [
    *(([record(0), record(1, **changes)], f", line 2, id 'q1': {message}") for changes, message in BAD_ROWS),
    *((records, message) for records, message in POOLS),
    ([*map(record, range(500)), record(0), record(0)], ": id 'q0' is in line 1 and in line 501; make ids unique."),
]
"""Rows, and what is said of their pool after its name."""

LINE = json.dumps(record(0))


BYTES: dict[str, Callable[..., bytes]] = {
    "text": lambda text, encoding="utf-8": text.replace("LINE", LINE).encode(encoding),
    "replaced": lambda old, new, encoding="utf-8": LINE.replace(old, new).encode(encoding),
    "pretty": lambda: json.dumps(record(0), indent=1).encode(),
    "pickle": lambda: pickle.dumps([record(0)]),
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "torn": lambda content: content[:-9],
    "times": mul,
    "join": lambda *parts: b"".join(parts),
}
BAD_CONTENTS: dict[str, tuple[bytes, str]] = {
    **{
        name: (content, message) for name, (content, message) in build(tables_of("hazards")["bad files"], BYTES).items()
    },
    # refused whatever they hold
    **dict.fromkeys(
        ("p.pkl", "p.pickle", "p.joblib", "p.npz", "p.npy", "p.pt", "p.pth", "P.PKL", "p.pkl.gz"),
        (
            f"{LINE}\n".encode(),
            ": pickles and archives of them are never loaded, since loading one can run code; "
            "export the rows as .jsonl.",
        ),
    ),
}
"""Files by name: their bytes, and a part of what is said of them."""


def bad_file(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(BAD_CONTENTS[name][0])
    return path
