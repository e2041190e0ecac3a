"""The ways in which a selector is called: once, awaited and in a batch, with an LM that says what scenes say."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeAlias

import dspy
from dspy.lm15 import Request

from eldgr_dspy.decision import Decision
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.lms import with_lms
from eldgr_dspy.programs.scenes import Scene
from eldgr_dspy.programs.scripted import Scripted, scripted_lm, text_of
from eldgr_dspy.programs.selector import Selector, plain

Came: TypeAlias = "dict[str, Any] | Exception"
"""What a call came to: the fields of its prediction, or what it raised."""
Fresh: TypeAlias = "Callable[[], Any]"
"""Makes a copy of the selector that has decided nothing."""

FIELDS = tuple(plain(Decision(None, "consensus")))
"""The fields of a decision."""


@contextmanager
def scripted(selector: Selector, asked: Sequence[Scene]) -> Iterator[Fresh]:
    """Give what makes copies of a selector that reach no LM but the script, where nothing else listens."""

    def reply(request: Request) -> Scripted:
        text = text_of(request)
        marks = ((scene, scene.question.text.partition(" ")[0]) for scene in asked)
        return next((scene for scene, mark in marks if mark in text), asked[0]).reply(request)

    lm = scripted_lm(reply)
    with dspy.context(lm=lm, callbacks=[], trace=None, track_usage=False, usage_tracker=None, disable_history=True):
        yield lambda: with_lms(selector, lambda _: lm)


def called(select: Selector, call: Mapping[str, Any]) -> Came:
    """Call a selector."""
    try:
        said = select(**call)
    except Exception as error:  # noqa: BLE001 - what is raised is what is looked at
        return error
    return fields_of(said)


def fields_of(said: Any) -> dict[str, Any]:
    """Return the fields of a prediction, all of which a decision has."""
    if not isinstance(said, dspy.Prediction):
        raise ArgumentError(f"The selector returned {said!r:.80}; return the dspy.Prediction of Selector.forward.")
    fields: dict[str, Any] = said.toDict()
    if missing := [name for name in FIELDS if name not in fields]:
        names, kind = ", ".join(map(repr, missing)), "field" if len(missing) == 1 else "fields"
        raise ArgumentError(
            f"The selector's prediction has no {kind} {names}. Return the prediction of Selector.forward with your"
            " changes and additions, not a new one with fewer fields."
        )
    return fields


def awaited(select: Selector, calls: Sequence[Mapping[str, Any]]) -> list[Came]:
    """Await all calls in one loop, in a thread of its own: the caller may be in a loop already."""

    async def gathered() -> list[Any]:
        return await asyncio.gather(*(select.acall(**call) for call in calls), return_exceptions=True)

    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(copy_context().run, asyncio.run, gathered()).result()
    return [one if isinstance(one, Exception) else fields_of(one) for one in found]


def batched(select: Selector, calls: Sequence[Mapping[str, Any]]) -> list[Came]:
    """Call a selector on a batch."""
    examples = [dspy.Example(**call).with_inputs(*call) for call in calls]
    found: Any = select.batch(examples, num_threads=2, disable_progress_bar=True) if examples else []
    return [RuntimeError("no prediction") if one is None else fields_of(one) for one in found]
