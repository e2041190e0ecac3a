"""The command as it is installed, and as a test types it."""

import sys
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.case_tables import tables_of

COMMAND = [sys.executable, "-c", "import sys; from eldgr_dspy.programs.commands import main; sys.exit(main())"]


class Output(NamedTuple):
    """What a command has printed."""

    out: str
    err: str


class Eldgr(Protocol):
    """Give the command its words, after which its exit code must be as expected."""

    def __call__(self, *words: str | Path, code: int = 0) -> Output: ...


def lacking(out: str, table: str) -> list[str]:
    """The texts of a table of `cases.json` that are not in what was printed."""
    return [text for text in tables_of("commands")[table]["cases"] if text not in out]
