"""One judge, asked several things: one after the other in a thread, a bounded number at once in an event loop.

Every one is asked, whatever came of those before it, so that what is measured does not depend on when the outcome was
clear, and sync and async ask the same.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from eldgr_dspy.answers import answer_class
from eldgr_dspy.consultations import split_candidate
from eldgr_dspy.programs.consulting import Said, UnwritableReplyError, aask, ask
from eldgr_dspy.words import TASKS, Task

_AT_ONCE = 16


def calls_of(module: dspy.Module, candidates: Sequence[str]) -> int | None:
    """Return how many LM calls a role takes at most for one question, repeated ones aside; None where it does not say.

    A module says so by a method `most_calls(candidates)`, of the candidates as a judge is shown them (none for another
    role). It may depend on how many there are, which texts are equal and which answers vote together, on nothing else.
    """
    says: Any = getattr(module, "most_calls", None)
    if not callable(says):
        return None
    found: Any = says(candidates)
    return None if found is None else int(found)


def ask_all(module: dspy.Module, inputs: Sequence[Mapping[str, object]]) -> list[Said]:
    """Return what came of each, in order; raises what `eldgr_dspy.programs.consulting.ask` raises."""
    return [ask(module, one) for one in inputs]


async def aask_all(module: dspy.Module, inputs: Sequence[Mapping[str, object]]) -> list[Said]:
    """Return what `ask_all` returns; where a call does not come through, the others are awaited before it is raised."""
    free = asyncio.Semaphore(_AT_ONCE)

    async def asked(one: Mapping[str, object]) -> Said:
        async with free:
            return await aask(module, one)

    found = await asyncio.gather(*map(asked, inputs), return_exceptions=True)
    said: list[Said] = []
    for one in found:
        if isinstance(one, BaseException):
            raise one
        said.append(one)
    return said


def require_read(said: Sequence[Said]) -> None:
    """Raise the first parse error, for a judge that needs every one of its replies; it is treated as a plain judge's.

    A reply that could be read but not written is an abstention like any other.

    Raises:
        dspy.AdapterParseError: A reply cannot be read.
    """
    for one in said:
        if one.error is not None and not isinstance(one.error, UnwritableReplyError):
            raise one.error


def answers_of(candidates: Sequence[str]) -> list[str]:
    """Return the final answers of candidates as they are shown to a judge."""
    return [split_candidate(shown)[1] for shown in candidates]


def classes_of(answers: Sequence[str]) -> list[int | None]:
    """Return the class of each answer as the index of the first answer in it; None for one that is no answer.

    A judge is not told the task, so in one class are those that vote together in retrieval or in arithmetic, be it by
    way of a third: '18.0', '18' and 'The 18'.
    """
    keys: list[list[tuple[Task, str]]] = [
        [(task, found.key) for task in TASKS if (found := answer_class(answer, task)) is not None] for answer in answers
    ]
    first: dict[tuple[Task, str], int] = {}
    for index, own in enumerate(keys):
        known = {first[key] for key in own if key in first}
        least = min(known, default=index)
        if len(known) > 1:  # what was apart until now
            first = {key: least if one in known else one for key, one in first.items()}
        first.update(dict.fromkeys(own, least))
    return [first[own[0]] if own else None for own in keys]


def listed(values: Sequence[Any]) -> str:
    """Return values as a phrase lists them."""
    return ", ".join(map(str, values))
