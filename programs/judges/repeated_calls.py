"""Ask one judge several questions: one after the other in a thread, a bounded number at once in an event loop.

All of them are asked, whatever the earlier replies, so that measurements do not depend on when the outcome was clear,
and sync and async ask the same.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import Any

import dspy

from eldgr_dspy.answers import answer_class
from eldgr_dspy.consultations import split_candidate
from eldgr_dspy.programs.consulting import Said, UnwritableReplyError, aask, ask
from eldgr_dspy.words import TASKS, Task

_AT_ONCE = 16


def calls_of(module: dspy.Module, candidates: Sequence[str]) -> int | None:
    """Return how many LM calls a role takes at most for one question, not counting repeats; None if it does not say.

    A module says so in a method `most_calls(candidates)`, given the candidates as a judge is shown them (an empty list
    for another role). It may depend only on how many there are, how long, which texts are equal and which answers vote
    together.
    """
    says: Any = getattr(module, "most_calls", None)
    if not callable(says):
        return None
    calls: Any = says(candidates)
    return None if calls is None else int(calls)


def ask_all(module: dspy.Module, inputs: Sequence[Mapping[str, object]]) -> list[Said]:
    """Return the outcome of each, in order; raises what `eldgr_dspy.programs.consulting.ask` raises."""
    return [ask(module, fields) for fields in inputs]


async def aask_all(module: dspy.Module, inputs: Sequence[Mapping[str, object]]) -> list[Said]:
    """Return the same as `ask_all`; if a call does not come through, the others are awaited before it is raised."""
    return await aask_each([(module, fields) for fields in inputs])


async def aask_each(questions: Sequence[tuple[dspy.Module, Mapping[str, object]]]) -> list[Said]:
    """Ask each module its question as `aask_all` asks one module several."""
    free = asyncio.Semaphore(_AT_ONCE)

    async def asked(module: dspy.Module, fields: Mapping[str, object]) -> Said:
        async with free:
            return await aask(module, fields)

    outcomes = await asyncio.gather(*starmap(asked, questions), return_exceptions=True)
    said: list[Said] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        said.append(outcome)
    return said


def require_read(said: Sequence[Said]) -> None:
    """Raise the first parse error, for a judge that needs all its replies; it is treated like a plain judge's.

    A reply that could be read but not written is an ordinary abstention.

    Raises:
        dspy.AdapterParseError: A reply cannot be read.
    """
    for reply in said:
        if reply.error is not None and not isinstance(reply.error, UnwritableReplyError):
            raise reply.error


def answers_of(candidates: Sequence[str]) -> list[str]:
    """Return the final answers of candidates as they are shown to a judge."""
    return [split_candidate(shown)[1] for shown in candidates]


def classes_of(answers: Sequence[str]) -> list[int | None]:
    """Return the class of each answer as the index of the first answer in it; None for text without an answer.

    A judge does not know the task, so one class holds all answers that vote together in retrieval or in arithmetic,
    even through a third: '18.0', '18' and 'The 18'.
    """
    keys: list[list[tuple[Task, str]]] = [
        [(task, kind.key) for task in TASKS if (kind := answer_class(answer, task)) is not None] for answer in answers
    ]
    first: dict[tuple[Task, str], int] = {}
    for index, own in enumerate(keys):
        known = {first[key] for key in own if key in first}
        least = min(known, default=index)
        if len(known) > 1:  # these were separate until now
            first = {key: least if place in known else place for key, place in first.items()}
        first.update(dict.fromkeys(own, least))
    return [first[own[0]] if own else None for own in keys]


def listed(values: Sequence[Any]) -> str:
    """Return values as a list in a sentence."""
    return ", ".join(map(str, values))
