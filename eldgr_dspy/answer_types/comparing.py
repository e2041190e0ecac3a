"""Compare mathematical expressions in a process of their own, which is ended and replaced when a pair takes too long.

`math-verify` limits its time by SIGALRM, which cannot interrupt a long calculation with whole numbers. So its own
limits are off, and the system ends the process. One process serves all threads, one pair at a time, and ends with the
program. Which pairs run out of time depends on the clock, so a run records them.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from threading import TIMEOUT_MAX
from time import monotonic, process_time
from typing import Any, Final, NamedTuple

from eldgr_dspy.base.child_processes import Worker, limit_memory, take_output
from eldgr_dspy.errors import ArgumentError

SECONDS: Final = 3.0  # of processor time for a pair, both ways together; ten times as long by the clock
QUESTION_SECONDS: Final = 15.0  # of processor time for the classes of a question, and again for its scores
MEMORY = 1 << 30  # bytes of address space for the process, where the system can limit it
_AGAIN: Final = 10  # times as long if a run recorded which pairs were late: the others were in time
_WAYS: Final = {"classes": True, "scores": False}


class Comparison(NamedTuple):
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
        late: The pairs that could not be compared in time, including those of a run's records.
        is_close: Whether a pair or the question took more than half of its time. A run records such a question.
    """

    def __init__(self, records: Sequence[Mapping[str, Any]] = (), ends: float | None = None) -> None:
        """Start with what a run recorded of the question; its pairs are not compared again.

        `ends` is when all comparisons end, by `time.monotonic`; None for no such limit.
        """
        self._equal: dict[Pair, bool | None] = {
            Pair(record["texts"][one], record["texts"][other], both): None
            for record in records
            for way, both in _WAYS.items()
            for one, other in record[way]
        }
        self.late, self.is_close, self._ends = [*self._equal], bool(records), ends
        more = _AGAIN if records else 1
        self._pair, self._half = SECONDS * more, QUESTION_SECONDS * more / 2
        self._budget = dict.fromkeys(_WAYS.values(), QUESTION_SECONDS * more)

    def equal(self, gold: str, answer: str, *, both: bool) -> bool | None:
        """Return what `compare` finds; None if the pair, or the question, runs out of time."""
        pair = Pair(gold, answer, both)
        if pair not in self._equal:
            seconds = min(self._pair, self._budget[both])
            result = compare(*pair, seconds=seconds, ends=self._ends) if seconds > 0 else Comparison(None, 0.0)
            self._equal[pair] = result.equal
            self._budget[both] -= result.seconds
            if result.equal is None:
                self.late.append(pair)
            self.is_close |= result.equal is None or result.seconds > self._pair / 2 or self._budget[both] < self._half
        return self._equal[pair]

    def record(self, id: str) -> dict[str, Any]:
        """Return the late pairs of a question as JSON: the texts, and each pair as two of their indices."""
        texts = [*dict.fromkeys(text for pair in self.late for text in pair[:2])]
        ways = {
            way: [[*map(texts.index, pair[:2])] for pair in self.late if pair.both is both]
            for way, both in _WAYS.items()
        }
        return {"id": id, "texts": texts, **ways}


def compare(gold: str, answer: str, both: bool, *, seconds: float = SECONDS, ends: float | None = None) -> Comparison:
    """Return whether an expression is equal to a gold one by `math-verify`; `ends` is as in `Comparisons`.

    It takes any text. One that needs too much time or memory ends the process; then the result is unknown.
    """
    worker, wait = _worker(os.getpid()), TIMEOUT_MAX if ends is None else ends - monotonic()
    if wait <= 0 or not worker.lock.acquire(timeout=wait):
        return Comparison(None, 0.0)
    try:
        until = 10 * seconds if ends is None else min(10 * seconds, ends - monotonic())
        reply = worker.ask([seconds, gold, answer, both], until)
    except (OSError, RuntimeError) as error:  # no file descriptors, no memory, no threads
        raise ArgumentError(
            "Answers of type 'math' need math-verify; run: pip install 'eldgr_dspy[math]'. If it is installed, close "
            f"files or end programs: the process that compares cannot be started ({error})."
        ) from error
    finally:
        worker.lock.release()
    result = Comparison(*json.loads(reply)) if reply else Comparison(None, seconds)
    return result if result.seconds <= seconds else Comparison(None, seconds)


@cache
def _worker(program: int) -> Worker:
    """The worker of a program, by its process id: a forked one has its own."""
    return Worker("eldgr_dspy.answer_types.comparing", PYTHONHASHSEED="0")  # the same each time


# -- in the process ----------------------------------------------------------------------------------------------------


def serve() -> None:
    """Answer `[seconds, gold, answer, both]` by `[equal, seconds used]`, and an empty list at the start by null."""
    replies = take_output()
    limit_memory(MEMORY)
    equal = _comparison()

    @lru_cache(maxsize=1 << 14)
    def measure(*pair: Any) -> list[Any]:  # with the time that it took at first, so that no limit depends on the cache
        start = process_time()
        return [equal(*pair), process_time() - start]

    for line in sys.stdin:
        reply, (seconds, *pair) = None, json.loads(line) or [0.0]
        if hasattr(signal, "setitimer"):  # the system ends the process; Python may be busy in one long call
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, seconds)
        if pair:
            reply = measure(*pair)
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()


def _comparison() -> Any:
    """The comparison of two texts as LaTeX; plain expressions are LaTeX too, so no text is evaluated as Python."""
    from math_verify import parse, verify
    from math_verify.parser import LatexExtractionConfig
    from sympy import Expr, FiniteSet, Float, Interval, Tuple

    no_limit: Any = None  # its own limits are off; it types them as whole numbers

    @lru_cache(maxsize=256)
    def read(text: str) -> list[Any]:
        return list(parse(f"${text}$", [LatexExtractionConfig()], parsing_timeout=no_limit))

    def is_a(text: str, *kinds: Any) -> bool:
        return any(isinstance(expression, kinds) for expression in read(text)[:1])

    def are_of_one_kind(one: str, other: str) -> bool:
        """Whether both are percentages or neither is, and not one of them ordered and the other a set."""
        clashes = [is_a(a, Interval, Tuple) and is_a(b, FiniteSet) for a, b in ((one, other), (other, one))]
        return ("%" in one) == ("%" in other) and not any(clashes)

    def are_apart(one: Any, other: Any) -> bool:
        """Whether exact values differ, however little: `verify` compares numbers in floating point."""
        if isinstance(one, Expr) and isinstance(other, Expr):
            return not (one.has(Float) or other.has(Float)) and one.equals(other) is False
        has_order = isinstance(one, Tuple | Interval) and type(one) is type(other)
        return has_order and any(map(are_apart, one.args, other.args))

    def equal(gold: str, answer: str, both: bool) -> bool:
        if gold.count("'") != answer.count("'") or (both and not are_of_one_kind(gold, answer)):  # it drops primes
            return False
        pairs = ((gold, answer), (answer, gold)) if both else ((gold, answer),)
        alike = all(verify(read(one), read(other), timeout_seconds=no_limit) for one, other in pairs)
        return alike and not any(map(are_apart, read(gold)[:1], read(answer)[:1]))

    return equal
