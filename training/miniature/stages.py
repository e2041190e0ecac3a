"""The stages of a run, each done once: a finished stage has a file that says so, and is skipped the next time."""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eldgr_dspy.differences import differences
from eldgr_dspy.errors import ArgumentError, RunChangedError
from eldgr_dspy.files import replacing
from eldgr_dspy.programs.file_locks import locked

FILE = "miniature.json"
"""The name of the record of a run's settings in its folder."""


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages that a folder knows of.

    Attributes:
        folder: Where the file of each stage is.
        say: Called with the current stage.
    """

    folder: Path
    say: Callable[[str], object]

    def do(self, name: str, work: Callable[[], Mapping[str, Any] | None]) -> None:
        """Do a stage that is not done, and write down its findings and the seconds that it took.

        Output printed meanwhile, by trainers and the like, goes into a file next to it.

        Args:
            name: Of the stage.
            work: The work to do. An interrupted stage is done again, and must cope with its own leftovers.
        """
        path = self.folder / f"{name}.json"
        if path.exists():
            self.say(f"{name}: already done")
            return
        self.say(f"{name} ...")
        self.folder.mkdir(exist_ok=True)
        wall, cpu = time.monotonic(), time.process_time()
        with path.with_suffix(".log").open("w", encoding="utf-8") as log, redirect_stdout(log), redirect_stderr(log):
            findings = work() or {}
        spent = {"wall": round(time.monotonic() - wall, 1), "cpu": round(time.process_time() - cpu, 1)}
        write_json(path, {"seconds": spent, "found": findings})
        self.say(f"{name}: {spent['wall']:.0f} s, {spent['cpu']:.0f} s of them on the processor")

    def findings(self, name: str) -> Any:
        """Return the findings of a stage."""
        return self._record(name)["found"]

    def seconds(self) -> dict[str, dict[str, float]]:
        """Return the seconds of each stage that is done, as `wall` and `cpu`: those of the call that finished it."""
        return {path.stem: self._record(path.stem)["seconds"] for path in sorted(self.folder.glob("*.json"))}

    def _record(self, name: str) -> Any:
        return json.loads((self.folder / f"{name}.json").read_text("utf-8"))


def begin(out: Path, stated: Mapping[str, Any]) -> None:
    """Start a run in a folder, or resume one that was started with the same settings.

    Raises:
        RunChangedError: It was started with others, saying what differs.
        ArgumentError: The folder holds something else.
    """
    path, plain = out / FILE, json.loads(json.dumps(stated))
    if path.exists():
        if changed := differences(json.loads(path.read_text("utf-8")), plain):
            listed = "\n".join(f"  {line}" for line in changed)
            raise RunChangedError(
                f"{out}: this miniature was started with other settings:\n{listed}\n"
                "Undo the change, or give another --out."
            )
        return
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise ArgumentError(f"--out {str(out)!r} exists and has no {FILE}; give a folder that is empty or new.")
    out.mkdir(parents=True, exist_ok=True)
    write_json(path, plain)


def alone(out: Path) -> AbstractContextManager[None]:
    """Keep other processes from a folder. Raises `RunLockedError` if one is at work in it."""
    busy = f"{out}: another process is at work in it; wait for it, or give another --out."
    return locked(out / f".{FILE}.lock", busy)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file of JSON, whole or not at all."""
    with replacing(path) as out:
        out.write(json.dumps(content, indent=1, allow_nan=False).encode("ascii") + b"\n")
