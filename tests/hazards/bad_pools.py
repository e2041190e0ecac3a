"""Bad pools, each once, for the tests that give them to the Python API and to the command."""

import gzip
import json
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.dates import LISTED

EVIDENCE = [{"title": "Nice", "text": "Nice lies by the sea."}]


def record(number: int, **changes: Any) -> dict[str, Any]:
    """A good row."""
    result: dict[str, Any] = {"id": f"q{number}", "question": "Which town lies by the sea?", "task": "retrieval"}
    return {**result, "candidates": [{"text": "I think Nice", "answer": "Nice"}], "gold": ["Nice"], **changes}


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in record(1).items() if name != field}


def write_lines(path: Path, records: Iterable[Any]) -> Path:
    """Write a pool as JSON would be written by anybody."""
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path


def nested(depth: int) -> list[Any]:
    """A list in a list in a list."""
    results: list[Any] = []
    for _ in range(depth):
        results = [results]
    return results


_TEXT = "expected text in quotes"
_ANSWER = f"{_TEXT}, or null for no answer."

BAD_ROWS: list[tuple[dict[str, Any], str]] = [
    # hazard 1
    ({"candidates": []}, "candidates is [] (list); a row needs at least one candidate: drop it."),
    # hazard 7
    ({"candidates": [{}, {"answer": 18}]}, f"candidates[1].answer is 18 (int); {_ANSWER}"),
    ({"candidates": [{"answer": True}]}, f"candidates[0].answer is True (bool); {_ANSWER}"),
    ({"candidates": [{"answer": 1.0}]}, f"candidates[0].answer is 1.0 (float); {_ANSWER}"),
    ({"candidates": [{"answer": float("inf")}]}, f"candidates[0].answer is inf (float); {_ANSWER}"),
    ({"candidates": [{"answer": ["Nice"]}]}, f"candidates[0].answer is ['Nice'] (list); {_ANSWER}"),
    ({"candidates": [{"answer": {"span": "Nice"}}]}, f"candidates[0].answer is {{'span': 'Nice'}} (dict); {_ANSWER}"),
    ({"candidates": [{"answer": nested(90)}]}, f"candidates[0].answer is [[[[[[[...]]]]]]] (list); {_ANSWER}"),
    ({"candidates": ["Nice"]}, """candidates[0] is 'Nice' (str); expected an object, such as {"answer": "Doha"}."""),
    ({"candidates": {"answer": "Nice"}}, "candidates is {'answer': 'Nice'} (dict); expected a list."),
    (
        {"candidates": [{"answer": "Nice", "score": 0.5}]},
        "candidates[0].score is 0.5 (float); not a field of a candidate, which has text, answer, source, "
        "confidence, logprobs, scores and tags: put "
        "anything else under the row's `meta`.",
    ),
    (
        {"evidence": [{"text": "Nice lies by the sea.", "url": "x"}]},
        "evidence[0].url is 'x' (str); not a field of a passage, which has title and text: put anything else under the "
        "row's `meta`.",
    ),
    ({"score": 0.5}, "score is 0.5 (float); not a field of a pool row: put anything else under `meta`."),
    ({"question": float("nan")}, f"question is nan (float); {_TEXT}."),
    (
        {"task": "maths"},
        f"task is 'maths' (str); expected one of {LISTED}, or your own module:name, given as --answer.",
    ),
    (
        {"evidence": ["Nice lies by the sea."]},
        "evidence[0] is 'Nice lies by the sea.' (str); expected an object, such as "
        '{"text": "Doha is the capital of Qatar."}.',
    ),
    ({"evidence": None}, "evidence is None (NoneType); expected a list."),
    ({"evidence": [{"title": "Nice"}]}, "evidence[0].text is missing; add it."),
    ({"gold": "Nice"}, "gold is 'Nice' (str); expected a list."),
    ({"gold": [42]}, f"gold[0] is 42 (int); {_TEXT}."),
    ({"meta": {"x": float("nan")}}, "meta holds NaN, an infinity or something else that JSON cannot express: drop it."),
    ({"meta": nested(50)}, "meta is [[[[[[[...]]]]]]] (list); expected an object."),
    ({"meta": {"x": nested(50)}}, "meta is nested more than 32 deep: flatten or drop it."),
    # hazard 10
    (
        {"candidates": [{"answer": "Nice"}] * 10_000},
        "candidates has 10,000 items, and at most 1,000 are read: shorten it or drop the row.",
    ),
    (
        {"candidates": [{"text": "x" * 1_000_000}]},
        "candidates[0].text has 1,000,000 characters, and at most 500,000 are read: shorten it or drop the row.",
    ),
    (
        {"evidence": [{"text": ""}] * 10_001},
        "evidence has 10,001 items, and at most 10,000 are read: shorten it or drop the row.",
    ),
    # hazard 92
    (
        {"question": "half \ud800"},
        "question is 'half \\ud800' (str); "
        "it has half of a surrogate pair, which is not valid Unicode: fix or drop it.",
    ),
    (
        {"candidates": [{"answer": "\udc00"}]},
        "candidates[0].answer is '\\udc00' (str); "
        "it has half of a surrogate pair, which is not valid Unicode: fix or drop it.",
    ),
    ({"meta": {"x": ["\udc00"]}}, "meta holds half of a surrogate pair, which is not valid Unicode: fix or drop it."),
]
"""Changes of a row, and what is said of it after the place."""

BAD_POOLS: list[tuple[list[dict[str, Any]], str]] = [
    *(([record(0), record(1, **changes)], f", line 2, id 'q1': {message}") for changes, message in BAD_ROWS),
    ([record(0), without("id")], ", line 2: id is missing; add it."),
    *(
        ([record(0), without(name)], f", line 2, id 'q1': {name} is missing; add it.")
        for name in ("question", "task", "candidates")
    ),
    (
        [record(0, id="x" * 301)],
        f", line 1, id '{'x' * 79}: id has 301 characters, and at most 300 are read: shorten it or drop the row.",
    ),
    ([record(0, id="")], ", line 1, id '': id is '' (str); expected text that names the row."),
    (
        [record(0, question=None, gold=[1, 2])],
        f", line 1, id 'q0': question is None (NoneType); {_TEXT}. (2 more in this row.)",
    ),
    # hazard 4
    ([record(0), record(0), record(0)], ": id 'q0' is in line 1 and in line 2; make ids unique."),
    ([*map(record, range(500)), record(0), record(0)], ": id 'q0' is in line 1 and in line 501; make ids unique."),
    ([*map(record, (0, 1, 2, 2, 1, 0))], ": id 'q2' is in line 3 and in line 4; make ids unique."),
    ([*map(record, (3, 1, 2, 3))], ": id 'q3' is in line 1 and in line 4; make ids unique."),
    (
        [record(0), record(1, task="arithmetic")],
        ", line 2, id 'q1': task is 'arithmetic' and was 'retrieval' before; a pool has one task: split the file.",
    ),
    (
        [record(0, task="arithmetic"), record(1)],
        ", line 2, id 'q1': task is 'retrieval' and was 'arithmetic' before; a pool has one task: split the file.",
    ),
]
"""Rows, and what is said of their pool after its name."""

LINE = json.dumps(record(0))


def _gzip(text: str) -> bytes:
    return gzip.compress(text.encode(), mtime=0)


BAD_CONTENTS: dict[str, tuple[bytes, str]] = {
    "empty.jsonl": (b"", "no rows; a pool has at least one question."),
    "blank.jsonl": (b"\n \r\n\n", "no rows; a pool has at least one question."),
    "empty.jsonl.gz": (_gzip(""), "no rows; a pool has at least one question."),
    "utf-16.jsonl": (LINE.encode("utf-16"), "UTF-16 text; save it as UTF-8"),
    "utf-16-without-mark.jsonl": (LINE.encode("utf-16-le"), "line 1: not one JSON object (a NUL byte, as in UTF-16"),
    "latin-1.jsonl": ((LINE + "\n" + LINE.replace("sea", "se\xe9")).encode("latin-1"), "line 2: byte "),
    "nul.jsonl": (LINE.replace("sea", "s\0a").encode(), "line 1: not one JSON object (a NUL byte"),
    "trailing-comma.jsonl": (f"{LINE},\n".encode(), "line 1: not one JSON object (Extra data at column "),
    "comma-inside.jsonl": (LINE.replace("}]", "},]").encode(), "line 1: not one JSON object ("),
    "concatenated.jsonl": (f"{LINE}{LINE}".encode(), "line 1: not one JSON object (Extra data at column "),
    "array.jsonl": (
        f"[{LINE}]".encode(),
        "line 1: one JSON document of all rows is not read, since one row is in memory at a time. Write",
    ),
    "pretty-array.jsonl": (f"\n[\n{LINE}\n]".encode(), "line 2: one JSON document of all rows is not read"),
    "pretty.jsonl": (json.dumps(record(0), indent=1).encode(), "line 1: not one JSON object (Expecting property name"),
    "number.jsonl": (b"42", "line 1: row is 42 (int); expected an object."),
    "null.jsonl": (b"null", "line 1: row is None (NoneType); expected an object."),
    "twice.jsonl": (LINE.replace("{", '{"id": "x", ', 1).encode(), "line 1: not one JSON object (the key 'id' occurs"),
    "digits.jsonl": (b'{"id": ' + b"9" * 5_000 + b"}", "Exceeds the limit (4300 digits) for integer string conversion"),
    "deep.jsonl": (b'{"meta":' * 50_000, "line 1: nested too deeply, more than 100 lists or objects"),
    "deep-list.jsonl": (b"[" * 100_000, "line 1: one JSON document of all rows is not read"),
    "torn.jsonl.gz": (_gzip(LINE)[:-9], "the compressed file is damaged ("),
    "tail.jsonl.gz": (_gzip(LINE) + b"more", "the compressed file is damaged ("),
    "pickle.jsonl": (pickle.dumps([record(0)]), "a pickle, which is never loaded since loading one can run code"),
    "zip.jsonl": (b"PK\x03\x04\x14\x00", "a zip archive (.npz and .pt are ones), which is never unpacked"),
    "npy.jsonl.gz": (gzip.compress(b"\x93NUMPY\x01", mtime=0), "a NumPy array"),
    "none.parquet": (b"PAR1", "not a readable Parquet file ("),
    "rows.csv": (
        b"id,question\n",
        "CSV is not read as a pool, since a cell holds no list. Make a pool of it: eldgr pool build ",
    ),
    "rows.txt": (b"id,question\n", "the format is not known by its name; use one of .jsonl, .jsonl.gz, .parquet."),
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
    """Write one of `BAD_CONTENTS` and return its path."""
    path = folder / name
    path.write_bytes(BAD_CONTENTS[name][0])
    return path
