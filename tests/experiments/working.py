"""Work for jobs: what is done, what fails, and what is killed in the middle."""

import os
import signal
from pathlib import Path


def note(path: Path, text: str) -> dict[str, str]:
    """Append a line to a file, which shows how often this was done."""
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")
    return {"text": text}


def fail(path: Path) -> None:
    """Fail until a file is there."""
    if not path.exists():
        raise ValueError("it is not there")


def interrupt(path: Path) -> dict[str, bool]:
    """Leave half of a file and be interrupted, the first time."""
    if path.exists():
        return {"again": True}
    path.write_text("half", "utf-8")
    raise KeyboardInterrupt


def die(path: Path) -> dict[str, bool]:
    """Leave half of a file and be killed, the first time."""
    if path.exists():
        return {"again": True}
    path.write_text("half", "utf-8")
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process does not get here")
