"""Work for jobs: what is done, what fails, and what is killed in the middle; and whether a run asked anybody."""

import json
import os
import signal
from pathlib import Path


def is_replay(journal: Path) -> bool:
    """Whether a journal has consultations, and only recorded ones."""
    lines = map(json.loads, journal.read_text("utf-8").splitlines())
    return {line["recorded"] for line in lines if line["kind"] == "consultation"} == {True}


def note(path: Path, text: str) -> dict[str, str]:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")
    return {"text": text}


def fail(path: Path) -> None:
    if not path.exists():
        raise ValueError("it is not there")


def interrupt(path: Path) -> dict[str, bool]:
    """Leave half of a file and be interrupted, the first time."""
    if path.exists():
        return {"again": True}
    path.write_text("half", "utf-8")
    raise KeyboardInterrupt


def die(path: Path) -> dict[str, bool]:
    """The same, but be killed."""
    try:
        return interrupt(path)
    except KeyboardInterrupt:
        os.kill(os.getpid(), signal.SIGKILL)
        raise
