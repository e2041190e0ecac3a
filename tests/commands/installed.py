"""The command as it is installed, and as a test types it."""

import sys
from pathlib import Path
from typing import NamedTuple, Protocol

COMMAND = [sys.executable, "-c", "import sys; from eldgr_dspy.programs.commands import main; sys.exit(main())"]


class Printed(NamedTuple):
    """What a command has printed."""

    out: str
    err: str


class Eldgr(Protocol):
    """Give the command its words, after which its exit code must be as expected."""

    def __call__(self, *words: str | Path, code: int = 0) -> Printed: ...
