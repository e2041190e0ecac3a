"""Compare mathematical expressions in a process of their own, which is killed and replaced when a pair takes too long.

`math-verify` limits its time by SIGALRM, which works in the main thread only and cannot interrupt a long calculation
with whole numbers. So its own limits are off, and the process has one. It starts at the first comparison, serves all
threads one at a time, and ends with the program. A forked program starts its own.

`Comparisons` limits the time of a question, classes and scores, and keeps the pairs that ran out of it. They depend on
the clock, so a run records them, and whoever decides again takes them from the record.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from math import inf
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX, Lock, Thread
from time import monotonic
from typing import Any, Final, NamedTuple

from eldgr_dspy.errors import ArgumentError

SECONDS: Final = 3.0
"""The processor time that the comparison of one pair may take, both ways together."""
QUESTION_SECONDS: Final = 15.0
"""The processor time that the classes of a question may take; its scores may take as much again."""

_BY_THE_CLOCK: Final = 10
"""How many times as long a pair may take by the clock: other programs may be busy, and some systems limit only this."""
_START_SECONDS: Final = 60.0
"""How long a pair waits for the process to start."""
_AGAIN: Final = 10
"""How many times as long a question may take if a run recorded which pairs were late: the others were in time."""
_MOST: Final = 1 << 14
"""How many pairs are remembered."""

_START: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; from eldgr_dspy.answer_types.mathematics.worker import serve; serve()"
)


class Compared(NamedTuple):
    """Whether two expressions are equal, None if it could not be found out, and the processor time it took."""

    equal: bool | None
    seconds: float


class Pair(NamedTuple):
    """Two expressions; `both` as in `compare`."""

    gold: str
    answer: str
    both: bool


class Comparisons:
    """The comparisons about one question: the time that is left for them, and the pairs that ran out of it.

    Attributes:
        late: The pairs that could not be compared, those of the records included.
        is_close: Whether a pair or the question took more than half of its time, so that a slower machine may run out
            of it. A run records such a question.
    """

    def __init__(self, records: Sequence[Mapping[str, Any]] = (), ends: float | None = None) -> None:
        """Start with what a run recorded of the question.

        Args:
            records: The details of its lines, as `record` returns them; their pairs are not compared.
            ends: When all comparisons end, by `time.monotonic`; None for no such limit.
        """
        self._known: dict[Pair, bool | None] = {pair: None for record in records for pair in _pairs(record)}
        self.late = [*self._known]
        self.is_close = bool(records)
        more = _AGAIN if records else 1
        self._pair, self._ends = SECONDS * more, ends
        self._left = dict.fromkeys(_WAYS.values(), QUESTION_SECONDS * more)
        self._half = QUESTION_SECONDS * more / 2

    def equal(self, gold: str, answer: str, *, both: bool) -> bool | None:
        """Return what `compare` finds; None if the pair, or the question, runs out of time."""
        pair = Pair(gold, answer, both)
        if pair not in self._known:
            seconds = min(self._pair, self._left[both])
            found = compare(*pair, seconds=seconds, ends=self._ends) if seconds > 0 else Compared(None, 0.0)
            self._known[pair] = found.equal
            self._left[both] -= found.seconds
            if found.equal is None:
                self.late.append(pair)
            self.is_close |= found.equal is None or found.seconds > self._pair / 2 or self._left[both] < self._half
        return self._known[pair]

    def record(self, id: str) -> dict[str, Any]:
        """Return the late pairs of a question as JSON: the texts, and each pair as two of their indices."""
        texts = [*dict.fromkeys(text for pair in self.late for text in pair[:2])]
        place = {text: index for index, text in enumerate(texts)}
        ways = {
            way: [[place[pair.gold], place[pair.answer]] for pair in self.late if pair.both is both]
            for way, both in _WAYS.items()
        }
        return {"id": id, "texts": texts, **ways}


_WAYS: Final = {"classes": True, "scores": False}


def _pairs(record: Mapping[str, Any]) -> Iterator[Pair]:
    texts = record["texts"]
    return (Pair(texts[one], texts[other], both) for way, both in _WAYS.items() for one, other in record[way])


def is_record(details: Mapping[str, Any]) -> bool:
    """Return whether the details of a line are as `Comparisons.record` makes them."""
    texts = details.get("texts")
    ways = [details.get(way) for way in _WAYS]
    if not (
        isinstance(details.get("id"), str) and _is_list_of(texts, str) and all(_is_list_of(of, list) for of in ways)
    ):
        return False
    n = len(texts or ())
    pairs = [pair for of in ways for pair in of or ()]
    return all(_is_list_of(pair, int) and len(pair) == 2 and 0 <= min(pair) <= max(pair) < n for pair in pairs)


def _is_list_of(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(type(one) is kind for one in value)


def recorded_in(lines: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Return by pool and question the records in a journal's lines that are not consultations."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for line in lines:
        if line["kind"] == "comparisons":
            found.setdefault((line["name"], line["details"]["id"]), []).append(line["details"])
    return found


def require_installed() -> None:
    """Raise an ArgumentError unless `math-verify` is installed."""
    if find_spec("math_verify") is None:
        raise ArgumentError("Answers of type 'math' need math-verify; run: pip install 'eldgr_dspy[math]'")


def compare(gold: str, answer: str, both: bool, *, seconds: float = SECONDS, ends: float | None = None) -> Compared:
    """Return whether an expression is equal to a gold one by `math-verify`; what was found out is remembered.

    It takes any text, but one that needs more time or memory than allowed ends the process, and starting another takes
    about a second. `eldgr_dspy.answer_types.math.fault` finds most such texts beforehand.

    Args:
        gold: The expression that is right. answer: The one to compare with it.
        both: Whether each has to equal the other as gold, and both have to be of one kind: `verify` is not symmetric.
        seconds: The processor time allowed. ends: When to give up, by `time.monotonic`; None for never.

    Raises:
        ArgumentError: `math-verify` is not installed, or its process cannot be started.
    """
    pair = Pair(gold, answer, both)
    found = _FOUND.get(pair)
    if found is None:
        require_installed()
        found = _WORKER.compare(pair, seconds, inf if ends is None else ends)
        if found.equal is not None:
            if len(_FOUND) >= _MOST:
                _FOUND.clear()
            _FOUND[pair] = found
    return found if found.seconds <= seconds else Compared(None, seconds)


_FOUND: Final = dict[Pair, Compared]()


class _Process:
    """A process that compares, which imports from where this one does and has the same hashes each time.

    A thread reads its replies, so that waiting for one has a limit on every system.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, *map(str, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={**os.environ, "PYTHONHASHSEED": "0"},
        )
        self.is_ready = False
        self._lines = SimpleQueue[bytes]()
        self._reader = Thread(target=self._read, name="eldgr-mathematics", daemon=True)
        try:
            self._reader.start()
        except BaseException:
            self.close()
            raise

    def _read(self) -> None:
        assert self._process.stdout is not None
        while (line := self._process.stdout.readline()).endswith(b"\n"):
            self._lines.put(line)
        self._lines.put(b"")

    def start(self, seconds: float) -> bool:
        """Wait until it can compare; return whether it can.

        Raises:
            ArgumentError: It cannot compare at all.
        """
        if not self.is_ready and (said := self._line(seconds)) is not None:
            if said != b"null\n":
                why = json.loads(said) if said else f"the process ended with exit code {self._process.wait()}"
                raise ArgumentError(f"{_CANNOT}: {why}. Run: pip install 'eldgr_dspy[math]'")
            self.is_ready = True
        return self.is_ready

    def reply(self, request: object, seconds: float) -> bytes | None:
        """Return the line that answers a request: empty if the process ended first, None if it is late."""
        assert self._process.stdin is not None
        data = json.dumps(request).encode() + b"\n"
        with suppress(BrokenPipeError):
            while data:
                data = data[self._process.stdin.write(data) :]
        return self._line(seconds)

    def _line(self, seconds: float) -> bytes | None:
        try:
            return self._lines.get(timeout=min(max(seconds, 0.0), TIMEOUT_MAX))
        except Empty:
            return None

    def close(self) -> int:
        """End it, and return its exit code."""
        self._process.kill()
        code = self._process.wait()
        if self._reader.ident is not None:
            self._reader.join()
        self._close_pipes()
        return code

    def forget(self) -> None:
        """Leave it to the program from which this one was forked."""
        self._process.returncode = 0  # only the program that started it can wait for it
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class _Worker:
    """The process of this program; there is none before the first comparison, and after one that ended it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: _Process | None = None

    def compare(self, pair: Pair, seconds: float, ends: float) -> Compared:
        """Compare a pair, and once more if the process ended for a reason other than the time."""
        if not self._lock.acquire(timeout=min(max(ends - monotonic(), 0.0), TIMEOUT_MAX)):
            return Compared(None, 0.0)
        try:
            for _ in range(2):
                process = self._process = self._process or _started()
                if not process.start(min(_START_SECONDS, ends - monotonic())):
                    return Compared(None, seconds)  # it goes on starting
                limit = min(seconds * _BY_THE_CLOCK, ends - monotonic())
                line = process.reply([seconds, *pair], limit) if limit > 0 else b"[null, 0.0]\n"
                if line:
                    return Compared(*json.loads(line))
                if self.stop() == _OUT_OF_TIME or line is None:
                    break
        except BaseException:  # as after Ctrl-C: the reply that nobody awaits must not answer the next request
            self.stop()
            raise
        finally:
            self._lock.release()
        return Compared(None, seconds)

    def stop(self) -> int | None:
        """End the process, if there is one, and return its exit code."""
        process, self._process = self._process, None
        return None if process is None else process.close()

    def forget(self) -> None:
        """Start anew in a forked program."""
        process, self._process, self._lock = self._process, None, Lock()
        if process is not None:
            process.forget()


_OUT_OF_TIME: Final = -getattr(signal, "SIGPROF", 0) or None
_CANNOT: Final = "Answers of type 'math' cannot be compared"


def _started() -> _Process:
    try:
        return _Process()
    except (OSError, RuntimeError) as error:  # no file descriptors, no memory, no threads
        raise ArgumentError(
            f"{_CANNOT}: the process that compares them cannot be started ({error}). Close files or end programs, or "
            "raise the system's limits, such as `ulimit -n`."
        ) from error


_WORKER: Final = _Worker()
atexit.register(_WORKER.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WORKER.forget)
