"""The code blocks and tables of the docs."""

import dataclasses
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block; `place` is its page and line, `follows` whether it stands right below a python block."""

    language: str
    text: str
    place: str
    follows: bool


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    text, results, end = page.read_text(encoding="utf-8"), list[Block](), -1
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        below = bool(results) and results[-1].language == "python" and not text[end : match.start()].strip()
        line = text.count("\n", 0, match.start()) + 2
        results.append(Block(match[1], match[2], f"{name_of(page)}:{line}", below))
        end = match.end()
    return results


def column(page: str, heading: str) -> list[str]:
    """The names in code in the first column of the first table below a heading of a page of the reference."""
    text = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    _, result, below = text.partition(f"# {heading}\n")
    assert result, f"{page} has no heading {heading!r}"
    table = re.search(r"^(?:\|.*\n)+", below, flags=re.MULTILINE)
    rows = table[0].splitlines()[2:] if table else []
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def demo_rows(ids: str) -> dict[str, list[str]]:
    """The rows of the README of `artifacts/` whose ids begin with one of these letters, without their last cell."""
    lines = (ROOT / "artifacts" / "README.md").read_text(encoding="utf-8").splitlines()
    cells = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    return {row[0]: row[1:-1] for row in cells if row and re.fullmatch(rf"[{ids}]\d\d", row[0])}
