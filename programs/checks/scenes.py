"""Scenes: trials in which an LM replies, typed or raw, or its calls do not come through. Needs Hypothesis."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import dspy
from dspy import lm15
from dspy.lm15 import Request
from hypothesis import strategies as st

from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.laws.situations import calculation, contest, derived_sum, typed
from eldgr_dspy.laws.trials import Trial
from eldgr_dspy.programs.lms.lms import with_lms
from eldgr_dspy.programs.scripted import Scripted, role_of, scripted_lm, text_of
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.consultations import Derivation, Repair, Reply, Verdict
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.testing import VALID_REPLIES, lm_replies
from eldgr_dspy.words import Role

ALONE: Mapping[str, Any] = {"trace": None, "track_usage": False, "usage_tracker": None, "disable_history": True}
"""Settings of DSPy under which calls leave nothing behind."""
_ASPECTS = ("logic", "fact", "epist", "info", "triang", "adv", "min", "scalar")
_FAILURES = st.sampled_from((lm15.ServerError("down"), lm15.RateLimitError("slow down"), lm15.TimeoutError("late")))


def inputs_of(trial: Trial, answer_field: str) -> dict[str, Any]:
    """Return a question as a user gives it, with new lists each time.

    Without passages, evidence is None for an odd number of candidates and an empty list for an even one.
    """
    question = trial.question
    candidates = [{answer_field: answer} for answer in question.answers]
    evidence = [asdict(passage) for passage in question.passages] or (None if len(candidates) % 2 else [])
    answer = question.type if question.type.is_own else question.type.name
    options = {"options": [*question.options]} if question.options else {}
    return {"question": question.text, "candidates": candidates, "evidence": evidence, "answer": answer, **options}


def reply_to(request: Request, trial: Trial) -> Scripted:
    """Return a trial's reply to a request; a typed one also has the further fields that a user's own module asks for.

    Where that module asks for a number, it is that of the preferred candidate.
    """
    role = role_of(request)
    fields = _fields_of(role, trial.reply(role)) if role else {}
    if not isinstance(fields, Mapping):
        return fields
    response_format: Any = request.config.response_format
    judged, schema = _fields_of("judge", trial.reply("judge")), (response_format or {}).get("schema") or {}
    number = judged.get("preferred", 0) if isinstance(judged, Mapping) else 0
    properties, defs = schema.get("properties", {}), schema.get("$defs", {})
    return {**{name: value_of(kind, "", number, defs) for name, kind in properties.items()}, **fields}


def _fields_of(role: Role, reply: Reply | Any) -> Scripted:
    """The fields in which an LM gives a reply; for an abstention, those that say nothing. A raw reply as it is."""
    if not isinstance(reply, Reply):
        raw: Scripted = reply
        return raw
    if role == "judge":
        preferred, scores = (reply.preferred, reply.scores) if isinstance(reply, Verdict) else (-1, None)
        assessments = [{**dict.fromkeys(_ASPECTS, 0.5), "scalar": score} for score in scores or ()]
        return {"judge_rationale": "", "assessments": assessments, "preferred": preferred}
    if role == "repairer":
        return {"repair_passage": -1, "repaired_answer": reply.answer if isinstance(reply, Repair) else ""}
    derived = reply if isinstance(reply, Derivation) else Derivation((), "")
    steps = [asdict(step) for step in derived.steps]
    return {"derivation_steps": steps, "derived_answer": derived.answer, "consistency_check": derived.check}


def value_of(schema: Mapping[str, Any], word: str, number: int, defs: Mapping[str, Any]) -> Any:
    """Return a value of an output's declared type, by its JSON schema, made of a word and a number."""
    schema = defs[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if choices := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        return choices[number % len(choices)]
    if several := schema.get("anyOf"):  # an object that may be absent is: it could hold itself
        absent = "$ref" in several[0] and {"type": "null"} in several
        return None if absent else value_of(several[0], word, number, defs)
    if schema.get("type") == "object":
        return {name: value_of(part, word, number, defs) for name, part in schema.get("properties", {}).items()}
    counted = int(word) if word.isdecimal() else number
    counted = min(max(counted, schema.get("minimum", counted)), schema.get("maximum", counted))
    values = {"integer": counted, "number": float(counted), "boolean": number % 2 == 1, "null": None, "array": []}
    return values.get(schema.get("type", ""), word)


@contextmanager
def scripted(selector: Selector, several: Sequence[Trial]) -> Iterator[Callable[[], Any]]:
    """Yield a maker of copies of a selector that have decided nothing, and reach only the scripted LM."""

    def reply(request: Request) -> Scripted:
        text = text_of(request)
        marks = ((scene, scene.question.text.partition(" ")[0]) for scene in several)
        return reply_to(request, next((scene for scene, mark in marks if mark in text), several[0]))

    lm = scripted_lm(reply)
    with dspy.context(lm=lm, callbacks=[], **ALONE):
        yield lambda: with_lms(selector, lambda _: lm)


@st.composite
def scenes(draw: st.DrawFn, questions: st.SearchStrategy[Question]) -> Sequence[Trial]:
    """Draw two of the questions, of two texts or of one, with a reply of each role: typed in most cases, else raw."""

    def trial(mark: str) -> Trial:  # the script knows a question by its first word: letters, since a number counts
        question, replies = draw(questions), dict[Role, Any]()
        for role in ("judge", question.type.repairer):
            is_odd = draw(st.integers(0, 4)) == 4
            replies[role] = draw(lm_replies() | _FAILURES if is_odd else VALID_REPLIES[role](question))
        return Trial(replace(question, text=f"{mark} {question.text}"), replies=replies)

    one, other = trial("qaaz"), trial("qabz")
    has_one_text = draw(st.booleans())
    return [one, replace(one, question=replace(other.question, text=one.question.text)) if has_one_text else other]


def repeats(kind: AnswerType) -> list[Trial]:
    """Return one question repeated: with other evidence, with none, and with the same answers in other pools."""
    if kind.way == "derivation":
        pools = (("18", "9", "9"), ("9", "18", "18"), ("18", "18", "9"), ("9", "9", "18"), ("18", "9", "9"))
        trials = [calculation(pool, None, derived_sum("18")[1]) for pool in pools]
    else:
        lyon, rome = ("Lyon", "Rome", "Rome"), ("Lyon", "Lyon", "Rome")
        several = [(lyon, ("Lyon",)), (lyon, ("Rome",)), (lyon, ()), (lyon, ("Lyon",)), (rome, ("Lyon",))]
        several += [(lyon, ("Lyon",)), (lyon[::-1], ("Lyon",)), (lyon, ("Doha", "Lyon")), (lyon, ("Lyon", "Doha"))]
        trials = [contest(pool, "Lyon", "Doha", texts=texts) for pool, texts in several]
    return [*typed(trials, kind)]
