"""Fuzzes `hostile.once` under coverage for SECONDS (600), leaves findings in `runs/fuzz`: `python -m tests.fuzz`."""

import logging
import os
import sys
import tempfile
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

atheris: Any = import_module("atheris")  # installed by `make fuzz` alone

with atheris.instrument_imports(include=["eldgr_dspy"]):
    from tests.fuzz import hostile

OUT = Path("runs") / "fuzz"
WORDS = (
    "<think>", "</think>", "```json\n", "[[ ## preferred ## ]]", "[[ ## completed ## ]]", "#### ", "\\boxed{",
    "the answer is",
)  # fmt: skip


class Fuzzing:
    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        self.inputs = 0
        self.findings: dict[str, bytes] = {}

    def try_one(self, data: bytes) -> None:
        if time.monotonic() > self.end:
            self.tell()
        self.inputs += 1
        try:
            hostile.once(data)
        except Exception as error:  # noqa: BLE001 - whatever comes is the finding
            self.keep(data, error)

    def keep(self, data: bytes, error: Exception) -> None:
        """Keep the first input of a kind: the same error at the same place of the same law."""
        ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "eldgr_dspy" in frame.filename]
        place = f"{ours[-1].filename}:{ours[-1].lineno}"
        kind = f"{type(error).__name__} at {place}: {str(error).partition(chr(10))[0]:.120}"
        if kind not in self.findings:
            self.findings[kind] = data
            OUT.mkdir(parents=True, exist_ok=True)
            (OUT / f"{len(self.findings)}.bin").write_bytes(data)
            print(f"\n{kind}\n{data!r}\n{error}", flush=True)  # noqa: T201 - this is a command

    def tell(self) -> None:
        """Print what came of it, and end the process: libFuzzer gives nothing back."""
        print(f"{self.inputs} inputs, {len(self.findings)} kinds of finding", flush=True)  # noqa: T201 - this is a command
        os._exit(bool(self.findings))


def main(seconds: float) -> None:
    logging.disable(logging.CRITICAL)
    folder = Path(tempfile.mkdtemp(prefix="eldgr-fuzz-"))
    for number, seed in enumerate(hostile.SEEDS):
        (folder / f"seed{number}").write_bytes(seed)
    dictionary = folder.with_suffix(".dict")
    escapes = ("".join(f"\\x{byte:02x}" for byte in word.encode()) for word in WORDS)
    dictionary.write_text("".join(f'"{word}"\n' for word in escapes))
    arguments = [sys.argv[0], str(folder), f"-dict={dictionary}", "-max_len=8192", "-rss_limit_mb=8192"]
    atheris.Setup(arguments, Fuzzing(seconds).try_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 600.0)
