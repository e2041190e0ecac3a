"""The examples that the miniature's policies are taught before rewards: right replies, and some with bad habits.

A policy that has seen only right replies errs only where it does not know, and then no reward helps. So some of the
examples stop too soon, state something false, misread the question, or leave the answer unmarked. Rewards and
certificates can see most of it. They cannot see one habit: a sum that was misread is true, traces and is checked.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from eldgr_dspy.training.miniature.solved import Solved, stated
from eldgr_dspy.training.miniature.sums import BACK, apply
from eldgr_dspy.words import Task

RIGHT: Final = 0.3
"""How often an example is right; otherwise it has one of the habits of its task, all equally often."""

_INSTEAD: Final = {"+": "-", "-": "+", "*": "+"}

Habit = Callable[[Solved, Sequence[Solved], random.Random], str]
"""The reply to a question; the others are questions of its kind."""


def shown_reply(solved: Solved, others: Sequence[Solved], drawn: random.Random) -> str:
    """Return a reply for an example: the right one, or one with a habit.

    Args:
        solved: The question.
        others: Questions of the same kind, itself among them or not.
        drawn: Where random numbers come from.
    """
    if drawn.random() < RIGHT:
        return solved.reply
    return drawn.choice(list(HABITS[solved.task].values()))(solved, others, drawn)


def _stops(solved: Solved, others: Sequence[Solved], drawn: random.Random) -> str:
    """Return the first step alone, and its answer."""
    first = solved.steps[0]
    return f"{first}\n{stated(solved.task, first.rstrip('.').rpartition(' ')[2])}"


def _unmarked(solved: Solved, others: Sequence[Solved], drawn: random.Random) -> str:
    """Return the right answer, in a sentence."""
    return "\n".join([*solved.steps, f"So it is {solved.answer}."])


def _misstates(solved: Solved, others: Sequence[Solved], drawn: random.Random) -> str:
    """Return another value in the last fact, and as the answer."""
    value = drawn.choice(others).answer
    before, _, after = solved.steps[-1].rpartition(solved.answer)
    return "\n".join([*solved.steps[:-1], f"{before}{value}{after}", stated(solved.task, value)])


def _misreads(solved: Solved, others: Sequence[Solved], drawn: random.Random) -> str:
    """Return another operator in the second equation, which is worked out and checked."""
    left, operator, right, *_ = solved.steps[1].split()
    instead = _INSTEAD[operator]
    end = apply(instead, int(left), int(right))
    second = f"{left} {instead} {right} = {end}"
    return _worked(solved.steps[0], second, f"Check: {end} {BACK[instead]} {right} = {left}")


def _worked(first: str, second: str, check: str) -> str:
    return "\n".join([first, second, check, stated("arithmetic", second.rpartition(" ")[2])])


HABITS: Final[Mapping[Task, Mapping[str, Habit]]] = {
    "retrieval": {"stops": _stops, "unmarked": _unmarked, "misstates": _misstates},
    "arithmetic": {"stops": _stops, "unmarked": _unmarked, "misreads": _misreads},
}
