"""The ways to call a selector, with an LM that says what scenes say: once, awaited, in a batch, or its roles alone."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import dspy
from dspy.lm15 import Request

from eldgr_dspy.cases import Case
from eldgr_dspy.certifying import certify_again
from eldgr_dspy.consultations import Heard
from eldgr_dspy.decision import Decision
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws.trials import SILENT
from eldgr_dspy.programs.calls import Calls
from eldgr_dspy.programs.lms import with_lms
from eldgr_dspy.programs.plain_decisions import plain
from eldgr_dspy.programs.scenes import Scene
from eldgr_dspy.programs.scripted import Scripted, scripted_lm, text_of
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.threads import in_own_loop
from eldgr_dspy.questions import Settings
from eldgr_dspy.words import Consulted

Came: TypeAlias = "dict[str, Any] | Exception"
"""The outcome of a call: the fields of its prediction, or what it raised."""
Fresh: TypeAlias = "Callable[[], Any]"
"""Makes a copy of the selector that has decided nothing."""

FIELDS = tuple(plain(Decision(None, "consensus")))
"""The fields of a decision."""


@contextmanager
def scripted(selector: Selector, several: Sequence[Scene]) -> Iterator[Fresh]:
    """Yield a maker of copies of a selector that reach only the scripted LM, without callbacks."""

    def reply(request: Request) -> Scripted:
        text = text_of(request)
        marks = ((scene, scene.question.text.partition(" ")[0]) for scene in several)
        return next((scene for scene, mark in marks if mark in text), several[0]).reply(request)

    lm = scripted_lm(reply)
    with dspy.context(lm=lm, callbacks=[], trace=None, track_usage=False, usage_tracker=None, disable_history=True):
        yield lambda: with_lms(selector, lambda _: lm)


def called(select: Selector, call: Mapping[str, Any]) -> Came:
    """Call a selector."""
    try:
        prediction = select(**call)
    except Exception as error:  # noqa: BLE001 - what is raised is the outcome
        return error
    return fields_of(prediction)


def fields_of(prediction: Any) -> dict[str, Any]:
    """Return the fields of a prediction; it must have all fields of a decision."""
    if not isinstance(prediction, dspy.Prediction):
        raise ArgumentError(
            f"The selector returned {prediction!r:.80}; return the dspy.Prediction of Selector.forward."
        )
    fields: dict[str, Any] = prediction.toDict()
    if missing := [name for name in FIELDS if name not in fields]:
        names, kind = ", ".join(map(repr, missing)), "field" if len(missing) == 1 else "fields"
        raise ArgumentError(
            f"The selector's prediction has no {kind} {names}. Return the prediction of Selector.forward with your"
            " changes and additions, not a new one with fewer fields."
        )
    return fields


def awaited(select: Selector, calls: Sequence[Mapping[str, Any]]) -> list[Came]:
    """Await all calls in one loop."""

    async def gathered() -> list[Any]:
        return await asyncio.gather(*(select.acall(**call) for call in calls), return_exceptions=True)

    return [result if isinstance(result, Exception) else fields_of(result) for result in in_own_loop(gathered())]


def batched(select: Selector, calls: Sequence[Mapping[str, Any]]) -> list[Came]:
    """Call a selector on a batch."""
    examples = [dspy.Example(**call).with_inputs(*call) for call in calls]
    results: Any = select.batch(examples, num_threads=2, disable_progress_bar=True) if examples else []
    return [RuntimeError("no prediction") if result is None else fields_of(result) for result in results]


def reply_apart(select: Selector, name: Consulted, case: Case, replies: Mapping[Consulted, Heard]) -> Heard:
    """Return what a role or the certificate of a selector says about a case, asked apart from the selector."""
    calls = Calls(select.on_failure, None)
    try:
        with select.reading():
            output = calls.ask(name, *select.asking(case, name, replies))
        return select.reply_of(name, output, case)
    except Exception:  # noqa: BLE001 - where the selector asks this role, it raises the same and is checked there
        return SILENT


def as_certified(case: Case, replies: Mapping[Consulted, Heard]) -> Settings:
    """Return the settings of a case; a consulted certificate becomes one that repeats what it said."""
    own = case.settings.own
    if own is None or not own.consulted:
        return case.settings
    certify_again(case, replies)
    repeated = replace(own, function=lambda answer, evidence, question: case.certificate(answer), consulted=False)
    return replace(case.settings, certificate=repeated)
