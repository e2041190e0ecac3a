"""Compare mathematical expressions in a process of their own, which is killed and replaced when a pair takes too long.

`math-verify` limits its time by SIGALRM, which works in the main thread only and cannot interrupt a long calculation
with whole numbers. So its own limits are off, and the system ends the process. One process serves all threads, one at a
time, and ends with the program. Which pairs run out of time depends on the clock, so a run records them.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from math import inf
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX, Lock, Thread
from time import monotonic, process_time
from typing import Any, Final, NamedTuple

from eldgr_dspy.errors import ArgumentError

SECONDS: Final = 3.0
"""The processor time that a pair may take, both ways together; ten times as long by the clock."""
QUESTION_SECONDS: Final = 15.0
"""The processor time that the classes of a question may take; its scores may take as much again."""
MEMORY = 1 << 30
"""The bytes of address space that the process may take, where the system can limit it."""
_AGAIN: Final = 10
"""How many times as long a question may take if a run recorded which pairs were late: the others were in time."""
_MOST: Final = 1 << 14
"""How many pairs are remembered."""
_WAYS: Final = {"classes": True, "scores": False}
_START: Final = "import sys; sys.path[:] = sys.argv[1:]; from eldgr_dspy.answer_types.comparing import serve; serve()"
_OUT_OF_TIME: Final = -getattr(signal, "SIGPROF", 0) or None


class Compared(NamedTuple):
    """Whether two expressions are equal, None if it could not be found out, and the processor time it took."""

    equal: bool | None
    seconds: float


class Pair(NamedTuple):
    """Two expressions; `both` if each has to equal the other as gold: `verify` is not symmetric."""

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
        """Start with what a run recorded of the question, as `record` returns it; its pairs are not compared.

        `ends` is when all comparisons end, by `time.monotonic`; None for no such limit.
        """
        self._known: dict[Pair, bool | None] = {pair: None for record in records for pair in _pairs(record)}
        self.late, self.is_close, self._ends = [*self._known], bool(records), ends
        more = _AGAIN if records else 1
        self._pair, self._half = SECONDS * more, QUESTION_SECONDS * more / 2
        self._left = dict.fromkeys(_WAYS.values(), QUESTION_SECONDS * more)

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
        ways = {
            way: [[*map(texts.index, pair[:2])] for pair in self.late if pair.both is both]
            for way, both in _WAYS.items()
        }
        return {"id": id, "texts": texts, **ways}


def _pairs(record: Mapping[str, Any]) -> list[Pair]:
    texts = record["texts"]
    return [Pair(texts[one], texts[other], both) for way, both in _WAYS.items() for one, other in record[way]]


def is_record(details: Mapping[str, Any]) -> bool:
    """Return whether the details of a line are as `Comparisons.record` makes them."""

    def are(kind: type, values: object) -> bool:
        return isinstance(values, list) and all(type(value) is kind for value in values)

    texts, ways = details.get("texts") or [], [details.get(way) for way in _WAYS]
    if not (type(details.get("id")) is str and are(str, texts) and all(are(list, pairs) for pairs in ways)):
        return False
    pairs = [pair for way in ways for pair in way or ()]
    return all(are(int, pair) and len(pair) == 2 and 0 <= min(pair) <= max(pair) < len(texts) for pair in pairs)


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

    It takes any text, but one that needs more time or memory than allowed ends the process, and starting another
    takes about a second. `math.fault` finds most such texts beforehand. `ends` is as in `Comparisons`.

    Raises:
        ArgumentError: `math-verify` is not installed, or its process cannot be started.
    """
    pair = Pair(gold, answer, both)
    if (found := _FOUND.get(pair)) is None:
        require_installed()
        found = _WORKER.compare(pair, seconds, inf if ends is None else ends)
        if found.equal is not None:
            if len(_FOUND) >= _MOST:
                _FOUND.clear()
            _FOUND[pair] = found
    return found if found.seconds <= seconds else Compared(None, seconds)


_FOUND: Final = dict[Pair, Compared]()


class _Worker:
    """The process of this program, if there is one. A thread reads its replies, so that every wait has a limit."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._replies = SimpleQueue[bytes]()
        self._is_ready = False

    def compare(self, pair: Pair, seconds: float, ends: float) -> Compared:
        """Compare a pair, and once more if the process ended for a reason other than the time."""
        if not self._lock.acquire(timeout=_wait(ends - monotonic())):
            return Compared(None, 0.0)
        try:
            for _ in range(2):
                process = self._started()
                if not (self._is_ready or self._starts(process, ends - monotonic())):
                    return Compared(None, seconds)  # it goes on starting
                if (limit := min(10 * seconds, ends - monotonic())) <= 0:
                    return Compared(None, 0.0)
                _write(process.stdin, json.dumps([seconds, *pair]).encode() + b"\n")
                if reply := self._reply(limit):
                    return Compared(*json.loads(reply))
                if self.stop() == _OUT_OF_TIME or reply is None:
                    break
        except BaseException:  # as after Ctrl-C: the reply that nobody awaits must not answer the next request
            self.stop()
            raise
        finally:
            self._lock.release()
        return Compared(None, seconds)

    def _started(self) -> "subprocess.Popen[bytes]":
        """The process, which imports from where this one does and has the same hashes each time."""
        if self._process is None:
            self._replies, self._is_ready = SimpleQueue(), False
            command = [sys.executable, "-P", "-c", _START, *map(str, sys.path)]
            try:  # without buffers, whose locks a fork could leave closed
                self._process = subprocess.Popen(
                    command,
                    bufsize=0,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, "PYTHONHASHSEED": "0"},
                )
                Thread(target=_read, args=(self._process.stdout, self._replies), daemon=True).start()
            except (OSError, RuntimeError) as error:  # no file descriptors, no memory, no threads
                raise ArgumentError(
                    f"Answers of type 'math' cannot be compared: the process that compares them cannot be started "
                    f"({error}). Close files or end programs, or raise the system's limits, such as `ulimit -n`."
                ) from error
        return self._process

    def _starts(self, process: "subprocess.Popen[bytes]", seconds: float) -> bool:
        if (reply := self._reply(min(60.0, seconds))) == b"":
            raise ArgumentError(
                f"Answers of type 'math' cannot be compared: the process ended with exit code {process.wait()}. Run: "
                "pip install 'eldgr_dspy[math]'"
            )
        self._is_ready = reply is not None
        return self._is_ready

    def _reply(self, seconds: float) -> bytes | None:
        """Return the next line: empty if the process has ended, None if it is late."""
        try:
            return self._replies.get(timeout=_wait(seconds))
        except Empty:
            return None

    def stop(self) -> int | None:
        """End the process, if there is one, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        if process.stdin is not None:
            process.stdin.close()
        return process.wait()

    def forget(self) -> None:
        """Start anew in a forked program; only the program that started the process can wait for it."""
        process, self._process, self._lock = self._process, None, Lock()
        if process is not None:
            process.returncode = 0
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def _wait(seconds: float) -> float:
    return min(max(seconds, 0.0), TIMEOUT_MAX)


def _write(pipe: Any, data: bytes) -> None:
    with suppress(BrokenPipeError):
        while data:
            data = data[pipe.write(data) :]


def _read(pipe: Any, replies: SimpleQueue[bytes]) -> None:
    with pipe:
        while (line := pipe.readline()).endswith(b"\n"):
            replies.put(line)
    replies.put(b"")


_WORKER: Final = _Worker()
atexit.register(_WORKER.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WORKER.forget)


# -- in the process ----------------------------------------------------------------------------------------------------


def serve() -> None:
    """Answer `[seconds, gold, answer, both]` by `[equal, seconds used]` until the input ends; the first line is null.

    Only this process imports `math-verify`. It ends itself if a pair takes too much processor time or memory.
    """
    replies, sys.stdout = sys.stdout, sys.stderr  # what the libraries print is not a reply
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program that started this one decides what Ctrl-C does
    with suppress(ImportError, ValueError, OSError):  # not on this system
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    equal = _comparison()
    print("null", file=replies, flush=True)
    for line in sys.stdin:
        seconds, *pair = json.loads(line)
        started = process_time()
        _limit_time(seconds)
        found = equal(*pair)
        _limit_time(0)
        print(json.dumps([found, process_time() - started]), file=replies, flush=True)


def _limit_time(seconds: float) -> None:
    """Have the system end this process after so much processor time; Python itself may be busy in one long call."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _comparison() -> Any:
    """The comparison of two texts as LaTeX; plain expressions are LaTeX too, so no text is evaluated as Python."""
    from math_verify import parse, verify
    from math_verify.parser import LatexExtractionConfig
    from sympy import Expr, FiniteSet, Float, Interval, Tuple

    as_latex = [LatexExtractionConfig()]
    no_limit: Any = None  # its own limits are off; it types them as whole numbers

    @lru_cache(maxsize=256)
    def parsed(text: str) -> list[Any]:
        return list(parse(f"${text}$", as_latex, parsing_timeout=no_limit))

    def of_one_kind(one: str, other: str) -> bool:
        """Whether both are percentages or neither is, and not one of them ordered and the other a set."""
        kinds = [type(expression) for text in (one, other) for expression in parsed(text)[:1]]
        ordered, unordered = (any(issubclass(kind, of) for kind in kinds) for of in ((Interval, Tuple), FiniteSet))
        return ("%" in one) == ("%" in other) and not (ordered and unordered)

    def apart(one: Any, other: Any) -> bool:
        """Whether exact values differ, however little: `verify` compares numbers in floating point."""
        if isinstance(one, Expr) and isinstance(other, Expr):
            return not (one.has(Float) or other.has(Float)) and one.equals(other) is False
        return isinstance(one, Tuple | Interval) and type(one) is type(other) and any(map(apart, one.args, other.args))

    def equal(gold: str, answer: str, both: bool) -> bool:
        if gold.count("'") != answer.count("'"):  # which the parser drops
            return False
        if both and not of_one_kind(gold, answer):
            return False
        pairs = ((gold, answer), (answer, gold)) if both else ((gold, answer),)
        alike = all(verify(parsed(one), parsed(other), timeout_seconds=no_limit) for one, other in pairs)
        return alike and not any(map(apart, parsed(gold)[:1], parsed(answer)[:1]))

    return equal
