"""The part of `check_selector` for a whole program: it must return what the selector inside it ships.

What the LMs say is planned before a run, since a program may ask in several threads. A plan has numbers; they become
names and numbers in what the program shows to the LM, so that some answers occur in the evidence.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from copy import deepcopy
from itertools import count, product
from typing import Any, TypeAlias

import dspy
from dspy.lm15 import Request
from dspy.utils import BaseCallback
from hypothesis import strategies as st
from pydantic import TypeAdapter

from eldgr_dspy.errors import ArgumentError, ReplyError, brief
from eldgr_dspy.laws.trials import table
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.lms.lms import sub_modules, with_lms
from eldgr_dspy.programs.plain_values import plain
from eldgr_dspy.programs.sampled import Sampled
from eldgr_dspy.programs.scripted import ALONE, ScriptedReply, role_of, scripted_lm, value_of
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.service.threads import in_own_loop
from eldgr_dspy.programs.typed_answers import as_candidate
from eldgr_dspy.testing import falsify

Inputs: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
Plan: TypeAlias = tuple[tuple[int, ...], int, int]
"""The samples in turn, a word that is shown from 1 on and another up to 0; the judge's preference; the repair."""
Call: TypeAlias = tuple[Selector, Mapping[str, Any], Any]
"""A selector, what it was called with, and what it shipped."""

_PLANS: Sequence[Plan] = [
    *product(((-4,), (0,), (1,), (1, 1, 0), (-3, -3, 1)), (2,), (0, 1)),  # no answer, one elsewhere, mostly one shown
    *product(((0, 0, 1), (0, 0, 1, 2)), range(3), (0, 2)),
]
"""What is tried on each of the inputs before anything is drawn."""
_WORDS = ("Paris", "Lyon", "97", "yes", "")
_NAMES = re.compile(r"\b[A-Z][\w'’-]+|\d[\d.,]*\d|\d")
_numbers = st.integers(-4, 6)
_plans = st.tuples(st.lists(_numbers, min_size=1, max_size=6).map(tuple), _numbers, _numbers)
_PREDICTOR: ContextVar[tuple[Any, Mapping[str, Any]]] = ContextVar("predictor", default=(None, {}))
"""The signature of the predictor whose request is made, with its inputs."""


def check_return(program: Any, inputs: Inputs, answer_field: str, most: int | None) -> dict[str, int]:
    """Check that a program returns what its selector ships; return how many calls of selectors there were."""
    __tracebackhide__ = True
    if not isinstance(program, dspy.Module) or not [*sub_modules(program, Selector)]:
        raise ArgumentError(
            "selector must be a Selector, or a program with one among its modules; got"
            f" {repr(program) or type(program).__name__:.80}. Make it an attribute, as in self.select = Selector()."
        )
    several = [inputs] if isinstance(inputs, Mapping | dspy.Example) else [*inputs]
    calls = [dict(one.inputs().items() if isinstance(one, dspy.Example) else one) for one in several]
    if not calls:
        raise ArgumentError("inputs must have at least one mapping; got none. Give what the program is called with.")
    n = 0

    def hold(example: tuple[Mapping[str, Any], Plan]) -> None:
        nonlocal n
        for way in ("forward", "aforward"):
            if getattr(type(program), way, None):
                run = _Run(program, example[1])
                try:
                    run.require_shipment(run.go(deepcopy(dict(example[0])), is_async=way == "aforward"), answer_field)
                except ReplyError:  # a program that is strict about replies ships nothing
                    continue
                except Exception as error:
                    error.add_note(run.story(example[0]))
                    raise
                n += len(run.calls)

    falsify(st.tuples(st.sampled_from(calls), _plans), hold, most, product(calls, _PLANS))
    if not n:
        raise ArgumentError(
            f"{type(program).__name__} never called its Selector, so nothing was checked. Call it as self.select(...)"
            " for these inputs, or give others."
        )
    return {"selector_calls": n}


class _Run(BaseCallback):
    """One run of a copy of a program by a plan, watched: its calls of selectors, and the last, or several at once."""

    def __init__(self, program: Any, plan: Plan) -> None:
        self.program, self.plan = program, plan
        self.calls, self.replies = dict[str, tuple[Selector, Mapping[str, Any]]](), list[Any]()
        self.shipments, self.last = dict[str, Call](), list[Call]()
        self._samples = count()

    def go(self, inputs: dict[str, Any], *, is_async: bool) -> Any:
        lm = scripted_lm(self._reply)
        twin = with_lms(self.program, lambda _: lm)
        # In the modules too, since threads of the program's own do not have the settings of this context.
        for _, predictor in [*sub_modules(twin, dspy.Predict)]:
            predictor.lm, predictor.callbacks = lm, [self]
        for _, select in [*sub_modules(twin, Selector)]:
            select.callbacks = [self]
        with dspy.context(lm=lm, callbacks=[self], **{**ALONE, "trace": []}):  # Refine and BestOfN need a trace
            return in_own_loop(twin.acall(**inputs)) if is_async else twin(**inputs)

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        arguments = {**inputs.get("kwargs", {})}
        callers = dspy.settings.caller_modules or ()
        inside = any(isinstance(one, Selector) or type(one) is Sampled for one in callers)
        select = instance.select if type(instance) is Sampled else instance  # it may ship consensus for a repair
        if isinstance(instance, dspy.Predict):
            _PREDICTOR.set((instance.signature, arguments))
        elif isinstance(select, Selector) and not inside and call_id not in self.calls:
            self.calls[call_id] = select, arguments if select is instance else {}
            self.last.clear()

    def on_module_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """Note what a selector shipped: at once, since a program may write into what it gets."""
        if call_id in self.calls and exception is None and call_id not in self.shipments:
            self.shipments[call_id] = (*self.calls[call_id], deepcopy(as_candidate(outputs.get("answer"))))
            self.last.append(self.shipments[call_id])

    def _reply(self, request: Request) -> ScriptedReply:
        signature, inputs = _PREDICTOR.get()
        role, (samples, judge, repair) = role_of(request), self.plan
        item = {"judge": judge, "repairer": repair}.get(role or "", samples[next(self._samples) % len(samples)])
        word = _word(item, inputs.get("evidence", inputs) if role == "repairer" else inputs)
        fields = signature.output_fields.items() if signature else ()
        schemas = {name: TypeAdapter(one.annotation).json_schema() for name, one in fields}
        values = {name: value_of(schema, word, item, schema.get("$defs", {})) for name, schema in schemas.items()}
        n = len(inputs.get("candidates") or ()) or 1
        own = {"preferred": item % n if item >= 0 else -1, "assessments": [], "repair_passage": -1}
        values |= {name: value for name, value in own.items() if name in values and role}
        self.replies.append(values)
        if request.config.response_format or signature is None:
            return values
        adapter = dspy.settings.adapter or dspy.ChatAdapter()
        return str(adapter.format_assistant_message_content(signature, values))

    def require_shipment(self, result: Any, answer_field: str) -> None:
        """Require that the program returned what the last selector shipped, or one of several at once."""
        name = type(self.program).__name__
        if isinstance(result, dspy.Example | Mapping):
            if answer_field not in result:
                raise ArgumentError(
                    f"The prediction of {name} has no field {answer_field!r}; it has {', '.join(result.keys())}. Name"
                    " the field that holds the answer: check_selector(..., answer_field=...)."
                )
            result = result[answer_field]
        if not self.calls and result not in (None, ""):
            raise ArgumentError(
                f"{name} returned {result!r:.80} without having called a selector. Return what its selector ships, or"
                " no answer."
            )
        if self.last and not any(_is_same(call, result) for call in self.last):
            raise AssertionError(f"{name} returned {result!r:.80}; its selector shipped {self.last[-1][2]!r:.80}.")

    def story(self, inputs: Mapping[str, Any]) -> str:
        replies = "\n".join(brief(repr(one), 120) for one in self.replies[:12])
        listing = "\n".join(brief(repr(answer), 120) for *_, answer in self.shipments.values()) or "nothing"
        return table([("inputs", brief(repr(dict(inputs)), 600)), ("LM replies", replies), ("shipped", listing)])


def _is_same(call: Call, output: Any) -> bool:
    """Whether a program's answer is what a selector shipped, in whatever spelling of its class."""
    select, inputs, shipment = call
    if output in (None, "") or shipment in (None, ""):
        return output in (None, "") and shipment in (None, "")
    kind = inputs.get("answer") or select.type
    question = to_question("", [shipment, as_candidate(output)], None, kind, "answer", inputs.get("options") or ())
    one, other = (question.type.class_of(answer) for answer in question.answers)
    return question.answers[0] == question.answers[1] or (one is not None and one == other)


def _word(item: int, source: Any) -> str:
    """A name or number in what an LM is shown, that of the longest text first; or one of a few words."""
    values = [*source.values()] if isinstance(source, Mapping) else [*source]
    texts = [one if isinstance(one, str) else json.dumps(plain(one), ensure_ascii=False) for one in values]
    words = [*dict.fromkeys(word for text in sorted(texts, key=len, reverse=True) for word in _NAMES.findall(text))]
    return words[(item - 1) % len(words)] if item > 0 and words else _WORDS[-item % len(_WORDS)]
