"""Files of predictions on the same few questions, which are joined to a pool."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eldgr_dspy.pools import Pool, Row, open_pool
from eldgr_dspy.programs.pools.building import BuildResult
from tests.pools.layouts import write

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
