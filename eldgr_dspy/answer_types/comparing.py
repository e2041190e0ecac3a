"""Compare mathematical expressions in a process of their own, which is ended and replaced when a pair takes too long.

`math-verify` limits its time by SIGALRM, which cannot interrupt a long calculation with whole numbers. So its own
limits are off, and the system ends the process. One process serves all threads, one pair at a time, and ends with the
program. Which pairs run out of time depends on the clock, so a run records them.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from math import inf
from threading import TIMEOUT_MAX, Timer
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
        self._known: dict[Pair, bool | None] = {
            Pair(record["texts"][one], record["texts"][other], both): None
            for record in records
            for way, both in _WAYS.items()
            for one, other in record[way]
        }
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


def is_record(details: Mapping[str, Any]) -> bool:
    """Return whether the details of a line are as `Comparisons.record` makes them."""
    match details:
        case {"id": str(), "texts": [*texts], "classes": [*classes], "scores": [*scores]}:
            pairs = [*classes, *scores]
            places = [place for pair in pairs if isinstance(pair, list) and len(pair) == 2 for place in pair]
            are_places = all(type(place) is int and 0 <= place < len(texts) for place in places)
            return are_places and len(places) == 2 * len(pairs) and all(isinstance(text, str) for text in texts)
    return False


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
    takes about a second. `math.fault` finds most such texts beforehand. `ends` is as in `Comparisons`; a pair that is
    compared then ends too, so that the next one does not wait for it.

    Raises:
        ArgumentError: `math-verify` is not installed, or its process cannot be started.
    """
    pair, wait = Pair(gold, answer, both), TIMEOUT_MAX if ends is None else ends - monotonic()
    if (found := _WORKER.known.get(pair)) is None:
        require_installed()
        if wait <= 0:
            return Compared(None, 0.0)
        future = None
        try:
            future = _WORKER.thread.submit(_WORKER.compare, pair, seconds, ends)
            found = future.result(min(wait, TIMEOUT_MAX))
        except TimeoutError:
            found = Compared(None, 0.0 if future is None or future.cancel() else seconds)
        except (OSError, RuntimeError) as error:  # no file descriptors, no memory, no threads
            raise ArgumentError(
                f"Answers of type 'math' cannot be compared: the process that compares them cannot be started "
                f"({error}). Close files or end programs, raise the system's limits, such as `ulimit -n`, or install "
                "math-verify again: pip install 'eldgr_dspy[math]'."
            ) from error
        except BaseException:  # Ctrl-C: the program is not to wait for the pair at its end
            _WORKER.give_up()
            raise
    return found if found.seconds <= seconds else Compared(None, seconds)


class _Worker:
    """The process of this program, if there is one, and the thread that asks it; a timer ends it if it is silent."""

    def __init__(self) -> None:
        self.known: dict[Pair, Compared] = {}
        self._process: Any = None
        self._until = 0.0
        self.forget()

    def compare(self, pair: Pair, seconds: float, ends: float | None) -> Compared:
        """Compare a pair, and once more if the process ended for a reason other than the time."""
        self._until = min(monotonic() + 10 * seconds, inf if ends is None else ends)
        for _ in range(2):
            if (left := self._until - monotonic()) <= 0:
                break
            if reply := self._reply([seconds, *pair], left):
                if len(self.known) >= _MOST:
                    self.known.clear()
                self.known[pair] = Compared(*json.loads(reply))
                return self.known[pair]
            if self.stop() == _OUT_OF_TIME:
                break
        return Compared(None, seconds)

    def give_up(self) -> None:
        """End the process while the thread waits for it, and the pair with it."""
        self._until = 0.0
        if (process := self._process) is not None:
            process.kill()

    def _reply(self, request: Sequence[object], seconds: float) -> bytes:
        """Return the line that answers a request, empty if the process ends before; it starts if there is none."""
        if self._process is None:  # it imports from where this one does, and has the same hashes each time
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, *map(str, sys.path)],
                bufsize=0,  # buffers have locks, which a fork could leave closed
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONHASHSEED": "0"},
            )
            if not self._reply([], 60.0):
                raise OSError(f"it ended with exit code {self.stop()}")
        timer = Timer(seconds, self._process.kill)
        timer.start()
        try:
            with suppress(BrokenPipeError):
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
            reply: bytes = self._process.stdout.readline()
        finally:
            timer.cancel()
        return reply

    def stop(self) -> int | None:
        """End the process, if there is one, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        with process.stdin, process.stdout:
            process.kill()
            code: int = process.wait()
        return code

    def forget(self) -> None:
        """Start anew in a forked program: threads are gone, and only the program that started a process can wait."""
        process, self._process, self.thread = self._process, None, ThreadPoolExecutor(1, "mathematics")
        if process is not None:
            process.returncode = 0
            process.stdin.close()
            process.stdout.close()


_WORKER: Final = _Worker()
atexit.register(_WORKER.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WORKER.forget)


# -- in the process ----------------------------------------------------------------------------------------------------


def serve() -> None:
    """Answer `[seconds, gold, answer, both]` by `[equal, seconds used]`, and an empty list at the start by null.

    Only this process imports `math-verify`. It ends itself if a pair takes too much processor time or memory.
    """
    replies, sys.stdout = sys.stdout, sys.stderr  # what the libraries print is not a reply
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program that started this one decides what Ctrl-C does
    with suppress(ImportError, ValueError, OSError):  # not on this system
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    equal = _comparison()
    for line in sys.stdin:
        reply = None
        if request := json.loads(line):
            started = process_time()
            _limit_time(request[0])
            reply = [equal(*request[1:]), process_time() - started]
            _limit_time(0)
        print(json.dumps(reply), file=replies, flush=True)


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
