"""Prints how a person walks through the source, who reads each function once, where it is first called.

A stay is an uninterrupted time in one of our files; a return is a stay in a file that was seen before.
"""

import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

from eldgr_dspy import Selector
from eldgr_dspy.programs.commands import main as eldgr
from eldgr_dspy.programs.testing import scripted_lm
from tests.house.package_files import ROOT

DEMO = [str(ROOT / "artifacts" / name) for name in ("demo-retrieval.jsonl", "demo-arithmetic.jsonl")]
REPLAY = ["--replay", str(ROOT / "artifacts" / "demo-replay.jsonl"), "--workers", "1"]


class Arrival(Exception):
    """Ends a walk where it was going."""


def stays(way: Callable[[], object]) -> list[str]:
    """Return the files of a walk in the order in which they are read, no two equal ones beside each other."""
    codes, reading, files = set[Any](), set[FrameType](), list[str]()
    folders = tuple(str(ROOT / name) + "/" for name in ("eldgr_dspy", "signatures", "programs", "training"))

    def stay(frame: FrameType | None) -> None:
        name = frame.f_code.co_filename if frame else ""
        if name.startswith(folders) and files[-1:] != [name]:
            files.append(name)

    def follow(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code not in codes and frame.f_code.co_name != "<module>":
            codes.add(frame.f_code)
            reading.add(frame)
            stay(frame)
        elif event == "return" and frame in reading:
            reading.discard(frame)
            stay(frame.f_back)

    threading.setprofile(follow)
    sys.setprofile(follow)
    with suppress(Arrival):
        way()
    sys.setprofile(None)
    threading.setprofile(None)
    return files


def command(*words: str) -> None:
    if eldgr([*words]):
        raise RuntimeError(f"eldgr {' '.join(words)} failed; run it alone to see why.")


def to_the_lm() -> None:
    def arrive(request: object) -> str:
        sys.setprofile(None)
        raise Arrival

    select = Selector()
    select.set_lm(scripted_lm(arrive))
    select(question="Which?", candidates=["Doha", "Dubai"], evidence=["Doha is north of Lusail."])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "run")
        walks: dict[str, Callable[[], object]] = {
            "eldgr evaluate, to the last file": lambda: command("evaluate", *DEMO, *REPLAY, "--out", out),
            "eldgr report, to the page": lambda: command("report", out, "--format", "html"),
            "eldgr bound, to the table": lambda: command("bound", *DEMO),
            "Selector(), to the LM": to_the_lm,
        }
        lines = [f"{'walk':<36}{'stays':>12}{'files':>12}{'returns':>12}\n"]
        for name, way in walks.items():
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                files = stays(way)
            lines.append(f"{name:<36}{len(files):>12}{len({*files}):>12}{len(files) - len({*files}):>12}\n")
    sys.stdout.writelines(lines)


if __name__ == "__main__":
    main()
