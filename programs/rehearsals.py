"""Run a program by a plan of what its LMs say, and watch what the selectors inside it decide.

The plan is made before the program runs, since a program may ask in several threads.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from inspect import signature
from itertools import cycle, islice
from threading import Lock
from typing import Any
from zlib import crc32

import dspy
from dspy.lm15 import Request
from dspy.utils import BaseCallback

from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.lms import sub_modules, with_lms
from eldgr_dspy.programs.planned_replies import ASKED, DECIDING, Asked, Item, Plan, said, written
from eldgr_dspy.programs.scripted import Scripted, scripted_lm
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.threads import in_own_loop
from eldgr_dspy.questions import Question


@dataclass(slots=True)
class Call:
    """A call of a selector inside a program.

    Attributes:
        name: The selector's place in the program. select: the selector.
        question: The question that it was given, None if it could not be read.
        nested: Whether another selector's role made the call.
        started, ended: When, in counts of starts and ends; a call that has not ended has `ended` 0.
        pred: What it returned. error: what it raised.
    """

    name: str
    select: Selector
    question: Question | None
    nested: bool
    started: int
    ended: int = 0
    pred: Any = None
    error: BaseException | None = None


@dataclass(slots=True)
class Rehearsal:
    """A program that is run once by a plan.

    Attributes:
        program: A copy of the program. plan: what the LMs say. selectors: those in the copy, by their place.
        calls: The calls of selectors, in order of start. said: what the LM replied, in order.
        returned: What the program returned. error: what it raised.
    """

    program: Any
    plan: Plan
    selectors: Mapping[str, Selector]
    calls: list[Call] = field(default_factory=list)
    said: list[Any] = field(default_factory=list)
    returned: Any = None
    error: Exception | None = None

    @property
    def final(self) -> list[Call]:
        """The last call of a selector, and those that overlap with it."""
        own = [call for call in self.calls if not call.nested]
        latest = max((call.started for call in own), default=0)
        return [call for call in own if call.ended > latest]


def selectors_in(program: dspy.Module) -> dict[str, Selector]:
    """Return the selectors in a program by their place; those in closures and in other objects are not found."""
    return dict(sub_modules(program, Selector))


def rehearsed(program: dspy.Module, inputs: Mapping[str, Any], plan: Plan, *, awaited: bool) -> Rehearsal:
    """Run a copy of a program by a plan."""
    with staged(program, plan) as run:
        try:
            run.returned = in_own_loop(run.program.acall(**inputs)) if awaited else run.program(**inputs)
        except Exception as error:  # noqa: BLE001 - what is raised is what is looked at
            run.error = error
    return run


@contextmanager
def staged(program: dspy.Module, plan: Plan) -> Iterator[Rehearsal]:
    """Yield a copy of a program in which every LM says what is planned and every selector is watched."""

    def reply(request: Request) -> Scripted:
        found = said(plan, request)
        run.said.append(found)
        return written(found, request)

    lm = scripted_lm(reply)
    twin = with_lms(program, lambda _: lm)
    run = Rehearsal(twin, plan, selectors_in(twin))
    watch = _Watch(run)
    # In the modules too, since threads of the program's own do not have the settings of this context.
    for predictor in [one for _, one in sub_modules(twin, dspy.Predict)]:
        predictor.lm, predictor.callbacks = lm, [watch]
    for select in run.selectors.values():
        select.callbacks = [watch]
    nothing: dict[str, Any] = {"trace": None, "track_usage": False, "usage_tracker": None, "disable_history": True}
    with dspy.context(lm=lm, callbacks=[watch], **nothing):
        yield run


class _Watch(BaseCallback):
    """Hears of each call of a predictor, to know what is asked, and of a selector, to know what it decided."""

    def __init__(self, run: Rehearsal) -> None:
        self._run, self._lock = run, Lock()
        self._places = {id(select): name for name, select in run.selectors.items()}
        self._open = dict[str, tuple[Call | None, Any]]()
        self._asked, self._clock = Counter[int](), 0

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Note what a predictor is asked, or what a selector is given."""
        given = {**inputs.get("kwargs", {})}
        if call_id in self._open or not isinstance(instance, Selector | dspy.Predict):
            return
        if isinstance(instance, dspy.Predict):
            self._open[call_id] = None, ASKED.get()
            ASKED.set(Asked(instance.signature, given, self._items(instance.signature, given)))
            return
        outer, question = DECIDING.get(), _question(instance, inputs.get("args", ()), given)
        with self._lock:
            self._clock += 1
            place = self._places.get(id(instance), "a Selector")
            call = Call(place, instance, question, outer is not None, self._clock)
            self._run.calls.append(call)
        self._open[call_id] = call, outer
        DECIDING.set(question)

    def on_module_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """Note what a selector returned."""
        if call_id not in self._open:
            return
        call, before = self._open.pop(call_id)
        if call is None:
            ASKED.set(before)
            return
        DECIDING.set(before)
        with self._lock:
            self._clock += 1
            call.ended, call.pred, call.error = self._clock, outputs, exception
        with suppress(Exception):  # a copy, where there can be one: a program may write into what it gets
            call.pred = deepcopy(outputs)

    def _items(self, asked: Any, inputs: Mapping[str, Any]) -> Iterator[Item]:
        """The plan's next replies to these inputs; where they start depends on them alone, not on threads."""
        shown = f"{[*asked.output_fields]} {[inputs.get(name) for name in asked.input_fields]}"
        key = crc32(shown.encode("utf-8", "replace"))
        with self._lock:
            start = (key + self._asked[key]) % len(self._run.plan.samples)
            self._asked[key] += 1
        return islice(cycle(self._run.plan.samples), start, None)


def _question(select: Selector, args: Sequence[Any], given: Mapping[str, Any]) -> Question | None:
    """The question that a selector is given; None if its arguments are not those of `Selector`, which then raises."""
    try:
        bound = signature(Selector.forward).bind(select, *args, **given).arguments
        pool, evidence, options = bound["candidates"], bound.get("evidence"), bound.get("options", ())
        if any(isinstance(one, Iterator) for one in (pool, evidence, options)):
            return None  # reading them here would leave none to the selector
        answer = bound.get("answer") or select.type
        return to_question(bound["question"], pool, evidence, answer, select.answer_field, options)
    except (TypeError, ValueError):
        return None
