"""Files that are not read as they are: each is refused by the name of its format, with how to convert it."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from eldgr_dspy.errors import PoolError

Content = Literal["rows", "pool"]  # what the records of a file must be


def refuse_csv(path: Path, content: Content = "rows") -> None:
    """Refuse a file that is CSV by its name. The message has the command or the code that converts it."""
    if not path.name.lower().endswith((".csv", ".tsv")):
        return
    if content == "pool":
        raise PoolError(
            f"{path}: CSV is not read as a pool, since a cell holds no list. Make a pool of it: eldgr pool build "
            f"{shlex.quote(str(path))} --answer short --out pool.jsonl (or --answer number)."
        )
    tabs = r', delimiter="\t"' if path.name.lower().endswith(".tsv") else ""
    rows = f'csv.DictReader(io.StringIO(Path({str(path)!r}).read_bytes().decode("utf-8-sig"), newline=""){tabs})'
    code = _json_lines(rows)
    raise PoolError(
        f"{path}: CSV is not read, since a cell holds no list. Write one JSON object a line, in Python: "
        f"import csv, io, json; {code}. Then give rows.jsonl."
    )


def named_layout(record: object) -> str:
    """Return which tool wrote a record that is not read as it is, and what to do. Empty for any other."""
    fields: Mapping[str, Any] = record if isinstance(record, Mapping) else {}
    data, results = fields.get("data"), fields.get("results")
    if {"vars", "promptIdx"} <= fields.keys() or (isinstance(results, Mapping) and "results" in results):
        return (
            "an output of promptfoo is not read. Write a CSV with a row a result and the columns question (of its "
            "`vars`), prediction (its `response.output`) and gold; rows on one question are its samples."
        )
    if isinstance(data, list) and data and isinstance(data[0], Mapping) and "paragraphs" in data[0]:
        return (
            "SQuAD is read with a row a question. Write one JSON object a line for each of its `qas`, with its id, "
            "question and answers, and with the context and the title, and give it to eldgr pool build as --questions."
        )
    if {"context", "question", "answers"} <= fields.keys() and "prediction" not in fields:
        return "rows of SQuAD are questions without predictions; give them to eldgr pool build as --questions."
    return ""


def one_document(place: str, path: Path) -> PoolError:
    """Return the error for a file that is one JSON document, with the code that makes JSON lines of a list of rows."""
    code = _json_lines(f'json.loads(Path({str(path)!r}).read_text("utf-8"))')
    return PoolError(
        f"{place}: one JSON document of all rows is not read, since one row is in memory at a time. Write one JSON "
        f"object a line, in Python: import json; {code}. Then give rows.jsonl. eldgr pool build takes a log of "
        "inspect as it is, and says how to convert a file of promptfoo or SQuAD."
    )


def _json_lines(rows: str) -> str:
    """Return Python code that writes JSON lines, a line for each row."""
    return (
        f'from pathlib import Path; Path("rows.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in {rows}))'
    )
