"""Prints the size of the house by room: python -m tests.house.size.

A line is any line of a file. A statement is an `ast.stmt`; a text that stands alone, such as a docstring, is not.
"""

import ast
import sys
from collections import Counter
from pathlib import Path

from tests.house.package_files import ROOT, sources

KIT = ["laws", "testing", "programs.testing", "programs.scripted", "programs.checks"]
"""The kit that tests rules, certificates, types, selectors and programs of a user's own: modules and packages."""


def statements(text: str) -> int:
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    alone = (node.value for node in nodes if isinstance(node, ast.Expr))
    return len(nodes) - sum(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in alone)


def count(paths: list[Path]) -> Counter[str]:
    size = Counter(files=len(paths))
    for path in paths:
        text = path.read_text(encoding="utf-8")
        size.update(lines=text.count("\n"), words=len(text.split()))
        if path.suffix == ".py":
            size.update(statements=statements(text))
    return size


def main() -> None:
    rooms = dict[str, list[Path]]()
    for path, name in sources():
        rooms.setdefault(name if path.name == "__init__.py" else name.rpartition(".")[0], []).append(path)
    of_kit = tuple(f"eldgr_dspy.{name}." for name in KIT)
    rooms["the kit"] = [path for path, name in sources() if f"{name}.".startswith(of_kit)]
    rooms["all of the source"] = [path for path, _ in sources()]
    rooms |= {folder: [*(ROOT / folder).rglob("*.py")] for folder in ("tests", "benchmarks")}
    rooms["docs and README"] = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    columns = ("files", "lines", "statements", "words")
    sys.stdout.write(f"{'':<36}{''.join(f'{column:>12}' for column in columns)}\n")
    for name, paths in rooms.items():
        size = count(paths)
        sys.stdout.write(f"{name:<36}{''.join(f'{size[column]:>12,}' for column in columns)}\n")


if __name__ == "__main__":
    main()
