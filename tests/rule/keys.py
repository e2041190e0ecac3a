"""What the tests of reading and normalising share: the key of an answer's class, and the cases of `cases.json`."""

import json
from pathlib import Path
from typing import Any

from eldgr_dspy.answer_types.answers import answer_class
from eldgr_dspy.words import Task

CASES = json.loads(Path(__file__).with_name("cases.json").read_text("utf-8"))


def key(text: str | None, task: Task = "retrieval") -> str | None:
    result = answer_class(text, task)
    return None if result is None else result.key


def cases(name: str) -> Any:
    """The cases of a table, each with the others of its source; a table by reason is a mapping."""
    table = CASES[name]
    return table if isinstance(table, dict) else [case for group in table for case in group["cases"]]
