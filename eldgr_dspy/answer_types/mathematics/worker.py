"""The process that compares expressions: it reads pairs of texts from a pipe and writes back what `math-verify` says.

Only this process imports `math-verify`. It ends itself if a pair takes too much processor time or memory, and when the
pipe closes, so it never outlives the program that started it by more than one comparison.
"""

import json
import signal
import sys
from collections.abc import Callable
from functools import lru_cache
from time import process_time
from typing import Any

MEMORY = 1 << 30
"""The bytes of address space that the process may take, where the system can limit it."""


def serve() -> None:
    """Answer requests until the input ends: `[seconds, gold, answer, both]` is answered by `[equal, seconds used]`.

    The first line that is written is null, or the reason why nothing can be compared.
    """
    replies, sys.stdout = sys.stdout, sys.stderr  # what the libraries print is not a reply

    def reply(content: object) -> None:
        replies.write(json.dumps(content) + "\n")
        replies.flush()

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program that started this one decides what Ctrl-C does
    _limit_memory()
    try:
        equal = _comparison()
    except ImportError as error:
        return reply(str(error))
    reply(None)
    for line in sys.stdin:
        seconds, gold, answer, both = json.loads(line)
        started = process_time()
        _limit_time(seconds)
        found = equal(gold, answer, both)
        _limit_time(0)
        reply([found, process_time() - started])


def _comparison() -> Callable[[str, str, bool], bool]:
    """The comparison of two texts as LaTeX; plain expressions are LaTeX too, so no text is evaluated as Python."""
    from math_verify import parse, verify
    from math_verify.parser import LatexExtractionConfig
    from sympy import Expr, FiniteSet, Float, Interval, Tuple

    as_latex = [LatexExtractionConfig()]
    no_limit: Any = None  # its own limits are off

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


def _limit_time(seconds: float) -> None:
    """Have the system end this process after so much processor time; Python itself may be busy in one long call."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    except (ImportError, ValueError, OSError):  # not on this system
        return
