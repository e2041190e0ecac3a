"""The tables of docs/evidence.md that a command prints."""

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "evidence.md").read_text(encoding="utf-8")
TABLES = re.findall(r"^`python -m benchmarks\.evidence_tables (.+)`\n\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE)


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "---" not in line]


def column(pool: str) -> dict[str, str]:
    """The cells of a pool in the tables of rules and judges, by the label of their row; none if no table has it."""
    for head, *rows in map(cells, (table for _, table in TABLES)):
        if pool in head:
            return {row[0]: row[head.index(pool)] for row in rows}
    return {}
