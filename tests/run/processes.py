"""Runs in processes of their own, which can be interrupted."""

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.capitals import row, write_pool
from tests.crash_runs import PAGES, RESULTS, calls_of, drop_times, lines_of
from tests.lm_server import LMServer

WORKERS, ROWS, FIRST = 4, 24, 6
# A shell starts what runs in the background with ctrl-C ignored, and each child inherits that.
HEARING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
COMMAND = HEARING + "import sys; from eldgr_dspy.programs.commands import main; sys.exit(main())"
LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0})); "
ENVIRONMENT = {"OPENAI_API_KEY": "key", "LITELLM_LOCAL_MODEL_COST_MAP": "true", "no_proxy": "127.0.0.1"}
BY_ADDRESS = re.compile(rb'("(?:role|settings)": )"[0-9a-f]{16}"')  # fingerprints of what the address is a part of


class Run:
    """A run directory, and the command that fills it from an LM server."""

    def __init__(self, folder: Path, server: LMServer) -> None:
        folder.mkdir(exist_ok=True)
        self.out, self.server, self._errors = folder / "run", server, folder / "errors"
        pool = write_pool(folder / "capitals.jsonl", map(asking, range(ROWS)))
        model = ["--lm", "openai/gpt-4o-mini", "--api-base", server.address, "--workers", str(WORKERS)]
        self.arguments = ["evaluate", str(pool), *model, "--quiet", "--out", str(self.out)]

    @contextmanager
    def start(self, *more: str, largest: int | None = None) -> Iterator["subprocess.Popen[bytes]"]:
        """The command as a process; `largest`: how long a file it may write, in bytes."""
        command = COMMAND if largest is None else LIMIT.format(largest) + COMMAND
        environment = {**os.environ, **ENVIRONMENT}
        with (
            self._errors.open("wb") as errors,
            subprocess.Popen(
                [sys.executable, "-c", command, *self.arguments, *more], env=environment, stderr=errors
            ) as process,
        ):
            try:
                yield process
            finally:
                process.kill()

    def finish(self, *more: str, largest: int | None = None) -> int:
        """Run the command to its end and return its exit code."""
        with self.start(*more, largest=largest) as process:
            return process.wait(60)

    @property
    def stderr(self) -> str:
        """What the command has written to standard error so far."""
        return self._errors.read_text()

    @property
    def calls(self) -> Counter[tuple[str, str]]:
        """The calls in the journal, by question and role."""
        return calls_of(lines_of(self.out / "journal.jsonl")[0])

    @property
    def requests(self) -> Counter[tuple[str, str]]:
        """The calls that the server has received, by question and role."""
        return Counter((entry.question.split(":")[0], entry.role) for entry in list(self.server.log))

    def results(self) -> dict[str, bytes]:
        """The results but for what the clock and the server's address decide."""
        address = self.server.address.encode()
        result = {name: drop_times(self.out / name) for name in RESULTS if (self.out / name).exists()}
        return {name: BY_ADDRESS.sub(rb"\1", content.replace(address, b"ADDRESS")) for name, content in result.items()}

    def leftovers(self) -> set[str]:
        """What lies in the directory and is neither journal nor result."""
        return {path.name for path in self.out.iterdir()} - {".lock", "journal.jsonl", *PAGES, *RESULTS}


def asking(number: int) -> dict[str, Any]:
    return row(number, question=f"capitals/q{number}: what is capital number {number}?")


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "waited for a minute in vain"
        time.sleep(0.01)
