"""One run that is killed and restarted until it finishes, and what has to hold at each step; see `tests.crash`.

Children are forked from a process that has imported everything, so that a start takes milliseconds; what they run is
the command's own `main`.
"""

import json
import os
import random
import re
import select
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORKERS = 4
QUESTIONS = {"retrieval": 80, "arithmetic": 30}
STAGES = ("starting", "asking", "deciding and writing", "replacing files")
RESULTS = ("decisions.jsonl", "record.json", "summary.json")
PAGES = ("report.html", "questions.html")
PATIENCE = 120
"""Seconds after which a start, or a whole job at its end, counts as hung."""

_SECONDS = re.compile(rb'"seconds(?:_saved)?": [-+.e0-9]+')

Key = tuple[str, str]
"""A consultation: its question, which begins with pool and id, and its role."""


class CrashError(Exception):
    """Something that had to hold does not."""


@dataclass
class Start:
    """One start of the command: what it found in the journal, what it added before it ended, and how that was."""

    token: str
    dead: bool
    before: set[Key]
    calls: Counter[Key]
    stage: str = ""
    tear: bool = False


@dataclass
class Tally:
    """The results of the episodes of a job."""

    starts: list[Start] = field(default_factory=list)
    episodes: int = 0
    cuts: int = 0
    undos: int = 0


def write_pools(folder: Path) -> list[str]:
    """Write pools on which every role is asked, and return their paths."""
    paths = []
    for task, n in QUESTIONS.items():
        path = folder / f"{task}.jsonl"
        path.write_text("".join(json.dumps(_row(task, number)) + "\n" for number in range(n)), encoding="utf-8")
        paths.append(str(path))
    return paths


def _row(task: str, number: int) -> dict[str, Any]:
    draw = random.Random(f"{task} {number}")
    names = ["Nice", "Oslo", "Paris", "Riga"] if task == "retrieval" else [str(number + 3), str(number + 4), "7"]
    answers = [draw.choice(names) for _ in range(4)]
    passages = [{"title": name, "text": f"The ship of {name} lies in {name}."} for name in draw.sample(names, 2)]
    return {
        "id": f"q{number}", "question": f"{task}/q{number}: which is it, given {number} and 3?", "task": task,
        "candidates": [{"text": f"It is {answer}.", "answer": answer} for answer in answers],
        "evidence": passages if task == "retrieval" else [], "gold": [names[number % len(names)]],
    }  # fmt: skip


def command(pools: list[str], address: str, out: Path) -> list[str]:
    """The arguments of the command that is killed."""
    model = ["--lm", "openai/gpt-4o-mini", "--api-base", address, "--workers", str(WORKERS)]
    return ["evaluate", *pools, *model, "--out", str(out), "--quiet"]


def fork(token: str, arguments: list[str], log: Path) -> int:
    """Start the command in a child of this process and return the child's number."""
    number = os.fork()
    if number:
        return number
    code = 70
    try:
        signal.alarm(PATIENCE)
        os.environ["OPENAI_API_KEY"] = token
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        from eldgr_dspy.programs.commands import main as run

        code = run(arguments)
    except BaseException:  # noqa: BLE001 -- told, and the child ends here; it must not continue as its parent
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait(number: int, seconds: float | None, sign: Callable[[], bool] | None = None) -> bool:
    """Wait for a child to finish, or kill it after so many seconds, or at a sign. Returns whether it was killed.

    Raises:
        CrashError: if it finished with another exit code than 0.
    """
    handle, until = os.pidfd_open(number), time.monotonic() + (seconds or 0)
    try:
        while not select.select([handle], [], [], seconds if sign is None else 0.0005)[0]:
            if sign is None or sign() or time.monotonic() > until:
                os.kill(number, signal.SIGKILL)
                break
    finally:
        os.close(handle)
    status = os.waitpid(number, 0)[1]
    dead = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if not dead and status:
        raise CrashError(f"a start ended by itself with {os.waitstatus_to_exitcode(status)} instead of 0")
    return dead


def lines_of(journal: Path) -> tuple[list[bytes], bool]:
    """The whole lines of a journal, and whether a torn one follows."""
    whole, _, rest = (journal.read_bytes() if journal.exists() else b"").rpartition(b"\n")
    return whole.split(b"\n") if whole else [], bool(rest)


def consultations(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    """The consultations among lines of a journal."""
    return (record for record in map(json.loads, lines) if record["kind"] == "consultation")


def calls_of(lines: list[bytes]) -> Counter[Key]:
    """How many calls each consultation took, by the lines of a journal."""
    calls: Counter[Key] = Counter()
    for record in consultations(lines):
        calls[f"{record['pool']}/{record['id']}", record["role"]] += record["calls"]
    return calls


class Harness:
    """Runs episodes in one folder against one server."""

    def __init__(self, folder: Path, address: str, draw: random.Random, name: str) -> None:
        self.folder, self.address, self.draw, self.name = folder, address, draw, name
        self.tally = Tally()
        self.pools = write_pools(folder)
        self.log = folder / "log"
        self.whole, self.again = (self._measure(folder / "whole") for _ in range(2))
        self.lines = lines_of(folder / "whole" / "journal.jsonl")[0]
        self.pace = 1.0
        self.expected = {name: drop_times(folder / "whole" / name) for name in RESULTS}

    def _measure(self, out: Path) -> float:
        start = time.monotonic()
        self._start(out, None)
        return time.monotonic() - start

    def _start(self, out: Path, seconds: float | None, sign: Callable[[], bool] | None = None) -> Start:
        """Start the command, kill it after so many seconds or at a sign, and see what it has added to the journal."""
        token = f"{self.name}-{len(self.tally.starts)}"
        before = lines_of(out / "journal.jsonl")[0]
        dead = wait(fork(token, command(self.pools, self.address, out), self.log), seconds, sign)
        after, tear = lines_of(out / "journal.jsonl")
        require(after[: len(before)] == before, "a start changed lines that it had found in the journal")
        start = Start(token, dead, set(calls_of(before)), calls_of(after[len(before) :]), tear=tear)
        self.tally.starts.append(start)
        return start

    def episode(self, kills: int) -> int:
        """Kill and restart one run, at most `kills` times, until it has finished. Returns how many kills it took."""
        out, power = self.folder / "episode", self.draw.random() < 0.3
        self.tally.episodes += 1
        count = 0
        while True:
            expected, clock = self._estimate(out), time.monotonic()
            start = self._start(out, *self._moment(out, expected)) if count < kills else self._start(out, None)
            self._compare(out, complete=not start.dead)
            if not start.dead:
                self.pace += 0.3 * ((time.monotonic() - clock) / expected - 1) * self.pace
                shutil.rmtree(out)
                return count
            count += 1
            start.stage = self._stage(out)
            if power and self.draw.random() < 0.5:
                self._cut(out / "journal.jsonl")

    def _moment(self, out: Path, expected: float) -> tuple[float, Callable[[], bool] | None]:
        """When to kill a start: at any moment of what it has to do, or, once all is asked, as it replaces its files."""
        if len(lines_of(out / "journal.jsonl")[0]) == len(self.lines) and self.draw.random() < 0.3:
            before = _number(out / RESULTS[0])
            return PATIENCE, lambda: _number(out / RESULTS[0]) != before
        return self.draw.uniform(0, 1.1 * expected), None

    def _estimate(self, out: Path) -> float:
        """How many seconds a start takes for what is left to do, by the starts that were left to finish."""
        rest = 1 - len(lines_of(out / "journal.jsonl")[0]) / len(self.lines)
        return self.pace * (self.again + rest * (self.whole - self.again))

    def _stage(self, out: Path) -> str:
        """How far a killed start had come, by what it left."""
        temporary = len(list(out.glob(".*.tmp")))
        if 0 < temporary <= len(RESULTS):
            return "replacing files"
        complete = len(lines_of(out / "journal.jsonl")[0]) == len(self.lines)
        return "starting" if not temporary else "deciding and writing" if complete else "asking"

    def _cut(self, journal: Path) -> None:
        """Cut the journal at any byte, half of the time in the last two lines."""
        lines, _ = lines_of(journal)
        if not lines:
            return
        size = journal.stat().st_size
        near = self.draw.random() < 0.5
        to = self.draw.randrange(max(0, size - sum(map(len, lines[-2:])) - 2) if near else 0, size)
        os.truncate(journal, to)
        self.tally.cuts += 1
        self.tally.undos += (calls_of(lines) - calls_of(lines_of(journal)[0])).total()

    def _compare(self, out: Path, *, complete: bool) -> None:
        for name in RESULTS:
            if (out / name).exists() or complete:
                require(drop_times(out / name) == self.expected[name], f"{name} is not that of an undisturbed run")
        if complete:
            counts = Counter((record["pool"], record["id"], record["role"]) for record in self._records(out))
            expected = Counter((record["pool"], record["id"], record["role"]) for record in consultations(self.lines))
            require(counts == expected, "the journal does not settle each consultation exactly once")
            files = {path.name for path in out.iterdir()} - {".lock", "journal.jsonl", *PAGES, *RESULTS}
            require(not files, f"a finished run leaves {sorted(files)}")
            for page in PAGES:
                require((out / page).read_text().rstrip().endswith("</html>"), f"{page} is not whole")

    def _records(self, out: Path) -> list[dict[str, Any]]:
        lines, tear = lines_of(out / "journal.jsonl")
        require(not tear, "a finished run leaves a torn line")
        return [record for record in consultations(lines) if record["outcome"] != "failed"]


def _number(path: Path) -> int | None:
    """What tells a file from the one that replaces it; None without a file."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def drop_times(path: Path) -> bytes:
    """The bytes of a file but for what the clock decides."""
    return _SECONDS.sub(b'"seconds": null', path.read_bytes())


def require(holds: bool, otherwise: str) -> None:
    """Raise `CrashError` unless something holds."""
    if not holds:
        raise CrashError(otherwise)
