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
    """Return the number of statements of a module, without docstrings."""
    return sum(isinstance(node, ast.stmt) and not is_docstring(node) for node in ast.walk(ast.parse(text)))


def is_docstring(node: ast.stmt) -> bool:
    """Return whether a statement is a text that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def count(paths: list[Path]) -> Counter[str]:
    """Return the files, lines, statements and words of Python files or pages."""
    size = Counter(files=len(paths))
    for path in paths:
        text = path.read_text(encoding="utf-8")
        size.update(lines=text.count("\n"), words=len(text.split()))
        if path.suffix == ".py":
            size.update(statements=statements(text))
    return size


def main() -> None:
    """Print a row for each room, the whole source, the tests, the benchmarks and the pages."""
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
