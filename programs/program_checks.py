"""The part of `check_selector` for a whole program: it must return what the selector inside it ships.

What the LMs say is planned before a run, since a program may ask in several threads. A plan has numbers; they become
names and numbers in what the program shows to the LM, so that some answers occur in the evidence.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

import dspy
from dspy.lm15 import Request
from dspy.utils import BaseCallback
from hypothesis import strategies as st
from pydantic import TypeAdapter

from eldgr_dspy.errors import ArgumentError, ReplyError, brief
from eldgr_dspy.falsifying import falsify
from eldgr_dspy.laws.trials import table
from eldgr_dspy.programs.inputs import to_question
from eldgr_dspy.programs.lms import sub_modules, with_lms
from eldgr_dspy.programs.plain_values import plain
from eldgr_dspy.programs.scripted import Scripted, role_of, scripted_lm
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.threads import in_own_loop

Inputs: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
Plan: TypeAlias = tuple[tuple[int, ...], int, int]
"""The samples in turn, from 1 on a word of what is shown and up to 0 another; whom the judge prefers; the repair."""

_PLANS: tuple[Plan, ...] = (
    ((-4,), -1, 0),  # no answer
    ((0,), -1, 0),  # an answer that is not in the evidence
    ((1,), -1, 0),  # one that mostly is
    ((0,), -1, 1),
    *(((0, 0, 1), judge, repair) for judge in range(3) for repair in (0, 2)),
    ((1, 1, 0), 2, 2),
    ((-3, -3, 1), 2, 1),  # a yes
    ((0, 0, 1, 2), 3, 2),
)
"""What is tried on each of the inputs before anything is drawn."""
_WORDS = ("Paris", "Lyon", "97", "yes", "")
_NAMES = re.compile(r"\b[A-Z][\w'’-]+|\d[\d.,]*\d|\d")
_numbers = st.integers(-4, 6)
_plans = st.tuples(st.lists(_numbers, min_size=1, max_size=6).map(tuple), _numbers, _numbers)
_ASKED: ContextVar[Any] = ContextVar("asked", default=None)
_INSIDE: ContextVar[bool] = ContextVar("inside", default=False)
"""The predictor whose request is made, with its inputs, and whether a selector is deciding."""


def check_returned(program: Any, inputs: Inputs, answer_field: str, most: int | None) -> dict[str, int]:
    """Check that a program returns what its selector ships; return how many calls of selectors there were.

    Raises:
        AssertionError: It returns something else, on inputs and replies that the message shows.
        ArgumentError: It has no selector, never calls it, or returns something without an answer.
        Exception: What the program raises, with the inputs and the replies as its note.
    """
    __tracebackhide__ = True
    if not isinstance(program, dspy.Module) or not [*sub_modules(program, Selector)]:
        raise ArgumentError(
            f"selector must be a Selector, or a program with one among its modules; got {program!r:.80}. Make it an"
            " attribute, as in self.select = Selector()."
        )
    several = [inputs] if isinstance(inputs, Mapping | dspy.Example) else [*inputs]
    calls = [dict(one.inputs().items() if isinstance(one, dspy.Example) else one) for one in several]
    ways = [way for way in ("forward", "aforward") if getattr(type(program), way, None)]
    if not calls or not ways:
        lacking = "inputs must have at least one mapping" if ways else "A program must have forward or aforward"
        raise ArgumentError(f"{lacking}; got none, so nothing would be tried.")
    n = 0

    def hold(example: tuple[Mapping[str, Any], Plan]) -> None:
        nonlocal n
        for way in ways:
            run = _Run(program, example[1])
            try:
                run.go(deepcopy(dict(example[0])), awaited=way == "aforward")
                run.require_shipped(answer_field)
            except ReplyError:  # a program that is strict about replies ships nothing
                continue
            except Exception as error:
                error.add_note(f"Falsifying example:\n{table(run.described(example[0]))}")
                raise
            n += len(run.calls)

    for plan in _PLANS:
        for call in calls:
            hold((call, plan))
    falsify(st.tuples(st.sampled_from(calls), _plans), hold, most)
    if not n:
        raise ArgumentError(
            f"{type(program).__name__} never called its Selector, so nothing was checked. Call it as self.select(...)"
            " for these inputs, or give others."
        )
    return {"selector_calls": n}


@dataclass(slots=True)
class _Call:
    """A call of a selector: when it started and ended, in counts of both, what it was given and what it shipped."""

    select: Selector
    inputs: Mapping[str, Any]
    started: int
    ended: int = 0
    answer: Any = None


@dataclass
class _Run(BaseCallback):
    """One run of a copy of a program by a plan, watched."""

    program: Any
    plan: Plan
    calls: list[_Call] = field(default_factory=list)
    replies: list[Any] = field(default_factory=list)
    returned: Any = None

    def __post_init__(self) -> None:
        self._clock, self._samples, self._open = count(1), count(), dict[str, tuple[_Call | None, Callable[[], Any]]]()

    def go(self, inputs: dict[str, Any], *, awaited: bool) -> None:
        """Run the program, every LM in it scripted."""
        lm = scripted_lm(self._reply)
        twin = with_lms(self.program, lambda _: lm)
        # In the modules too, since threads of the program's own do not have the settings of this context.
        for _, predictor in [*sub_modules(twin, dspy.Predict)]:
            predictor.lm, predictor.callbacks = lm, [self]
        for _, select in [*sub_modules(twin, Selector)]:
            select.callbacks = [self]
        nothing: dict[str, Any] = {"trace": None, "track_usage": False, "usage_tracker": None, "disable_history": True}
        with dspy.context(lm=lm, callbacks=[self], **nothing):
            self.returned = in_own_loop(twin.acall(**inputs)) if awaited else twin(**inputs)

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Note what a predictor is asked, or that a selector starts."""
        if call_id in self._open:
            return
        arguments = {**inputs.get("kwargs", {})}
        if isinstance(instance, dspy.Predict):
            before = _ASKED.get()
            self._open[call_id] = None, lambda: _ASKED.set(before)
            _ASKED.set((instance.signature, arguments))
        elif isinstance(instance, Selector) and not _INSIDE.get():
            self.calls.append(call := _Call(instance, arguments, next(self._clock)))
            self._open[call_id] = call, lambda: _INSIDE.set(False)
            _INSIDE.set(True)

    def on_module_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """Note what a selector shipped: at once, since a program may write into what it gets."""
        call, leave = self._open.pop(call_id, (None, lambda: None))
        leave()
        if call is not None and exception is None:
            call.ended, call.answer = next(self._clock), deepcopy(outputs.get("answer"))

    def _reply(self, request: Request) -> Scripted:
        current: tuple[Any, dict[str, Any]] = _ASKED.get() or (None, {})
        signature, inputs = current
        role, (samples, judge, repair) = role_of(request), self.plan
        item = {"judge": judge, "repairer": repair}.get(role or "", samples[next(self._samples) % len(samples)])
        source = inputs.get("evidence", inputs) if role == "repairer" else inputs
        word = _word(item, source)
        fields = signature.output_fields.items() if signature else ()
        values = {name: _filled(one.annotation, word, item) for name, one in fields}
        n = len(inputs.get("candidates") or ()) or 1
        typed = {"preferred": item % n if item >= 0 else -1, "assessments": [], "repair_passage": -1}
        values |= {name: value for name, value in typed.items() if name in values and role}
        self.replies.append(values)
        if request.config.response_format or signature is None:
            return values
        adapter = dspy.settings.adapter or dspy.ChatAdapter()
        return str(adapter.format_assistant_message_content(signature, values))

    def require_shipped(self, answer_field: str) -> None:
        """Require that the program returned what the last selector shipped, or one of several at once."""
        name, returned = type(self.program).__name__, self.returned
        latest = max((call.started for call in self.calls), default=0)
        final = [call for call in self.calls if call.ended > latest]
        if isinstance(returned, dspy.Example | Mapping):
            if answer_field not in returned:
                raise ArgumentError(
                    f"The prediction of {name} has no field {answer_field!r}; it has {', '.join(returned.keys())}. Name"
                    " the field that holds the answer: check_selector(..., answer_field=...)."
                )
            returned = returned[answer_field]
        if not self.calls and returned not in (None, ""):
            raise ArgumentError(
                f"{name} returned {returned!r:.80} without having called a selector. Return what its selector ships, or"
                " no answer."
            )
        if final and not any(_is_same(call, returned) for call in final):
            raise AssertionError(f"{name} returned {returned!r:.80}; its selector shipped {final[-1].answer!r:.80}.")

    def described(self, inputs: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the run as lines of a table."""
        shipped = "\n".join(brief(repr(call.answer), 120) for call in self.calls)
        replies = "\n".join(brief(repr(one), 120) for one in self.replies[:12])
        return [("inputs", brief(repr(dict(inputs)), 600)), ("LM replies", replies), ("shipped", shipped or "nothing")]


def _is_same(call: _Call, returned: Any) -> bool:
    """Whether a program's answer is what a selector shipped, in whatever spelling of its class."""
    shipped = call.answer
    if returned in (None, "") or shipped in (None, ""):
        return returned in (None, "") and shipped in (None, "")
    kind = call.inputs.get("answer") or call.select.type
    question = to_question("", [shipped, returned], None, kind, "answer", call.inputs.get("options") or ())
    one, other = (question.type.class_of(answer) for answer in question.answers)
    return question.answers[0] == question.answers[1] or (one is not None and one == other)


def _filled(annotation: Any, word: str, number: int) -> Any:
    """A value of an output's declared type, made of a word and a number."""
    try:
        schema = TypeAdapter(annotation).json_schema()
    except Exception:  # noqa: BLE001 - a type without a schema is written as text
        return word
    return _value(schema, schema.get("$defs", {}), word, number)


def _value(schema: Mapping[str, Any], defs: Mapping[str, Any], word: str, number: int) -> Any:
    schema = defs[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if choices := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        return choices[number % len(choices)]
    if "anyOf" in schema:
        return _value(schema["anyOf"][0], defs, word, number)
    if schema.get("type") == "object":
        return {name: _value(part, defs, word, number) for name, part in schema.get("properties", {}).items()}
    counted = int(word) if word.isdecimal() else number
    counted = min(max(counted, schema.get("minimum", counted)), schema.get("maximum", counted))
    values = {"integer": counted, "number": float(counted), "boolean": number % 2 == 1, "null": None, "array": []}
    return values.get(schema.get("type", ""), word)


def _word(item: int, source: Any) -> str:
    """A name or number in what an LM is shown, that of the longest text first; or one of a few words."""
    values = [*source.values()] if isinstance(source, Mapping) else [*source]
    texts = [one if isinstance(one, str) else json.dumps(plain(one), ensure_ascii=False) for one in values]
    words = [*dict.fromkeys(word for text in sorted(texts, key=len, reverse=True) for word in _NAMES.findall(text))]
    return words[(item - 1) % len(words)] if item > 0 and words else _WORDS[-item % len(_WORDS)]
