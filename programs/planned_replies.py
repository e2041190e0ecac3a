"""What LMs say while a program is checked: by a plan, in whatever form is asked for.

A plan says which words come, not which texts: they are taken from what the program shows to the LM, so that some
answers occur in the evidence.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import dspy
from dspy.lm15 import Request
from pydantic import TypeAdapter

from eldgr_dspy.certificates import Passage
from eldgr_dspy.programs.plain_values import plain
from eldgr_dspy.programs.scripted import Scripted, role_of
from eldgr_dspy.questions import Question
from eldgr_dspy.words import Role

Item: TypeAlias = "int | str | Exception"
"""A reply in a plan: a number is one in the form that is asked for; a text and an exception are sent as they are."""

_WORDS = ("Paris", "Lyon", "97", "yes", "")
_NAMES = re.compile(r"\b[A-Z][\w'’-]+|\d[\d.,]*\d|\d")
_MOST_WORDS, _DEEPEST = 8, 4


@dataclass(frozen=True, slots=True)
class Plan:
    """What the LMs say while a program runs.

    Attributes:
        samples: The replies to the program's own modules, in turn. From 1 on a number is a word of the module's inputs,
            up to 0 one of a few words that mostly do not occur there.
        judge: The candidate that is preferred, counted around the pool; none if it is negative.
        repairer: The span, as in `samples`, among the words of the evidence.
        deriver: What is done with the first two numbers in the question: 0 adds, 1 subtracts, 2 multiplies.
        scores: The judge's scores, in turn.
    """

    samples: tuple[Item, ...]
    judge: Item = -1
    repairer: Item = -1
    deriver: Item = 0
    scores: tuple[float, ...] = ()


@dataclass(slots=True)
class Asked:
    """A call of a predictor: its signature, its inputs, and the items of the plan that it gets, one a completion."""

    signature: Any
    inputs: Mapping[str, Any]
    items: Iterator[Item]
    last: Item = 0

    def item(self) -> Item:
        """Return the next item; what cannot be read is repeated if an adapter asks again."""
        self.last = next(self.items) if isinstance(self.last, int) else self.last
        return self.last


ASKED: ContextVar[Asked | None] = ContextVar("asked", default=None)
DECIDING: ContextVar[Question | None] = ContextVar("deciding", default=None)
"""The call of a predictor, and the question that a selector decides, in which a request is made."""


@contextmanager
def deciding(question: Question) -> Iterator[None]:
    """Let roles be asked about a question apart from the selector."""
    token = DECIDING.set(question)
    try:
        yield
    finally:
        DECIDING.reset(token)


def said(plan: Plan, request: Request) -> "Mapping[str, Any] | str | Exception":
    """What the plan says to a request: the outputs of the signature that is asked, a text or an exception."""
    asked, known = ASKED.get(), role_of(request)
    question, role = DECIDING.get() or (_told(asked) if asked and known else None), known or "judge"
    if question is None:
        item = asked.item() if asked else plan.samples[0]
        return _outputs(asked, item, _words(asked.inputs if asked else ())) if isinstance(item, int) else item
    items: dict[Role, Item] = {"judge": plan.judge, "repairer": plan.repairer, "deriver": plan.deriver}
    item = items[role]
    if not isinstance(item, int):
        return item
    typed = _typed(plan, role, item, question)
    own = _outputs(asked, typed.get("preferred", item), _words([passage.text for passage in question.passages]))
    return {name: typed.get(name, value) for name, value in own.items()} or typed


def _told(asked: Asked) -> Question:
    """The question that a program puts to a role itself."""
    shown = {name: asked.inputs.get(name) or () for name in ("candidates", "evidence")}
    passages = tuple(Passage("", str(text)) for text in shown["evidence"])
    return Question(str(asked.inputs.get("question")), "retrieval", (*map(str, shown["candidates"]),), (), passages)


def written(said: "Mapping[str, Any] | str | Exception", request: Request) -> Scripted:
    """What is said, in the form that the adapter asks for."""
    asked = ASKED.get()
    if not isinstance(said, Mapping) or asked is None or request.config.response_format:
        return said or _WORDS[0]
    adapter = dspy.settings.adapter or dspy.ChatAdapter()
    return str(adapter.format_assistant_message_content(asked.signature, dict(said)))


def _typed(plan: Plan, role: Role, item: int, question: Question) -> dict[str, Any]:
    """A role's reply in the form that our signatures ask for."""
    n = len(question.answers)
    if role == "judge":
        scores = [plan.scores[index % len(plan.scores)] for index in range(n)] if plan.scores else []
        assessments = [[5] * 7 + [round(10 * score)] for score in scores]
        return {"judge_rationale": "", "assessments": assessments, "preferred": item % n if n and item >= 0 else -1}
    if role == "repairer":
        span = _word(item, _words([passage.text for passage in question.passages]))
        return {"repair_passage": -1, "repaired_answer": span}
    one, other = (*map(int, re.findall(r"\d{1,6}", question.text)[:2]), 2, 3)[:2]
    sign, value, check = (
        ("+", one + other, f"{one + other} - {other} = {one}"),
        ("-", one - other, f"{one - other} + {other} = {one}"),
        ("*", one * other, f"{one * other} / {other} = {one}"),
    )[item % 3]
    steps = [{"expression": f"{one} {sign} {other}", "value": str(value)}]
    return {"derivation_steps": steps, "derived_answer": str(value), "consistency_check": check}


def _outputs(asked: Asked | None, item: int, words: Sequence[str]) -> dict[str, Any]:
    """A value of the declared type for each output of the program's own signature."""
    fields = asked.signature.output_fields.items() if asked else ()
    return {name: _value(one.annotation, _word(item, words), item) for name, one in fields}


def _value(annotation: Any, word: str, number: int) -> Any:
    try:
        schema = TypeAdapter(annotation).json_schema()
    except Exception:  # noqa: BLE001 - a type without a schema is written as text
        return word
    return _filled(schema, schema.get("$defs", {}), word, number)


def _filled(schema: Mapping[str, Any], defs: Mapping[str, Any], word: str, number: int, depth: int = 0) -> Any:
    """The JSON value of a schema, made of a word and a number."""
    schema = defs[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    choices = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if choices:
        return choices[number % len(choices)]
    if "anyOf" in schema:
        return _filled(schema["anyOf"][0], defs, word, number, depth)
    counted = int(word) if word.isdecimal() else number
    counted = min(max(counted, schema.get("minimum", counted)), schema.get("maximum", counted))
    blanks = {"integer": counted, "number": float(counted), "boolean": number % 2 == 1, "null": None}
    if schema.get("type") == "array":
        return [] if depth >= _DEEPEST else [_filled(schema.get("items", {}), defs, word, number, depth + 1)]
    if schema.get("type") == "object":
        parts = schema.get("properties", {}).items()
        return {name: _filled(part, defs, word, number, depth + 1) for name, part in parts if depth < _DEEPEST}
    return blanks.get(schema.get("type", ""), word)


def _word(item: int, words: Sequence[str]) -> str:
    return words[(item - 1) % len(words)] if item > 0 and words else _WORDS[-item % len(_WORDS)]


def _words(shown: Any) -> list[str]:
    """The names and numbers in what an LM is shown, the longest of several texts first."""
    values = [*shown.values()] if isinstance(shown, Mapping) else [*shown]
    texts = sorted(
        (one if isinstance(one, str) else json.dumps(plain(one), ensure_ascii=False) for one in values),
        key=len,
        reverse=True,
    )
    found = dict.fromkeys(word for text in texts for word in _NAMES.findall(text))
    return [*found][:_MOST_WORDS]
