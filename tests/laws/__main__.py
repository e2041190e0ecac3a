"""Runs the tests of all laws, prints a line a law and writes the table into `docs/laws.md`: `python -m tests.laws`.

The examples are those of the profile `ci`, so that a second run tries the same. Arguments are pytest's: `-n 2`.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.laws.law_table import PAGE, ROOT, Marks, lines, marked_files, missing, page


def run(files: list[Path], arguments: list[str]) -> tuple[int, Marks]:
    """Return pytest's exit code and what its passed tests tried, in a process of its own as the plugins ask for."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tried.json")
        options = ["-q", "-m", "law", "-p", "tests.laws.tried_counts", "--tried", str(file), "--hypothesis-profile=ci"]
        command = [sys.executable, "-m", "pytest", *options, *arguments, *map(str, files)]
        code = subprocess.run(command, check=False, cwd=ROOT).returncode
        rows = json.loads(file.read_text("utf-8")) if file.is_file() else []
    return code, {(row["law"], row["how"]): row["tried"] for row in rows}


def main(arguments: list[str]) -> int:
    """Return 1 and write nothing if a test fails or a law has none."""
    files = marked_files()
    code, counts = run(list(files), arguments)
    faults = missing(counts)
    if code or faults:
        sys.stderr.writelines(f"{fault}\n" for fault in faults)
        return 1
    marks = {mark: counts.get(mark, 0) for names in files.values() for mark in names}  # 0: skipped for want of a pool
    sys.stdout.writelines(f"{line}\n" for line in lines(marks))
    PAGE.write_text(page(PAGE.read_text("utf-8"), marks), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
