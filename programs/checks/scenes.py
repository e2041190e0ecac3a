"""Questions with an LM's replies: typed ones, raw ones, and calls that do not come through. Needs Hypothesis."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
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

_ASPECTS = ("logic", "fact", "epist", "info", "triang", "adv", "min", "scalar")
_FAILURES = st.sampled_from((lm15.ServerError("down"), lm15.RateLimitError("slow down"), lm15.TimeoutError("late")))


@dataclass(frozen=True, slots=True)
class Scene:
    """A question, and the LM's replies to it.

    Attributes:
        question: The question with its pool and evidence.
        replies: The reply to each role that may be asked.
        has_evidence: Whether evidence is given, even an empty list, and not None.
    """

    question: Question
    replies: Mapping[Role, Scripted]
    has_evidence: bool = True

    def inputs(self, answer_field: str) -> dict[str, Any]:
        """Return the question as a user gives it; with new lists each time."""
        question = self.question
        candidates = [{answer_field: answer} for answer in question.answers]
        evidence = [asdict(passage) for passage in question.passages] if self.has_evidence else None
        answer = question.type if question.type.is_own else question.type.name
        options = {"options": [*question.options]} if question.options else {}
        return {"question": question.text, "candidates": candidates, "evidence": evidence, "answer": answer, **options}

    def reply(self, request: Request) -> Scripted:
        """Return the reply to a request; a typed one also has the further fields that a user's own module asks for.

        Where that module asks for a number, it is that of the preferred candidate.
        """
        response_format: Any = request.config.response_format
        properties = ((response_format or {}).get("schema") or {}).get("properties", {})
        role = role_of(request)
        fields = self.replies.get(role, "") if role else {}
        if not isinstance(fields, Mapping):
            return fields
        verdict = self.replies.get("judge")
        number = verdict.get("preferred", 0) if isinstance(verdict, Mapping) else 0
        blanks: dict[str, Any] = {"string": "", "integer": number, "number": 0.5, "boolean": False, "array": []}
        return {**{name: blanks.get(kind.get("type")) for name, kind in properties.items()}, **fields}


@contextmanager
def script_selector(selector: Selector, several: Sequence[Scene]) -> Iterator[Callable[[], Any]]:
    """Yield a maker of copies of a selector that have decided nothing, and reach only the scripted LM."""

    def reply(request: Request) -> Scripted:
        text = text_of(request)
        marks = ((scene, scene.question.text.partition(" ")[0]) for scene in several)
        return next((scene for scene, mark in marks if mark in text), several[0]).reply(request)

    lm = scripted_lm(reply)
    with dspy.context(lm=lm, callbacks=[], trace=None, track_usage=False, usage_tracker=None, disable_history=True):
        yield lambda: with_lms(selector, lambda _: lm)


@st.composite
def scenes(draw: st.DrawFn, questions: st.SearchStrategy[Question]) -> Scene:
    """Draw one of the questions, with a reply of each role: typed in most cases, else raw or a failed call."""
    question = draw(questions)
    roles: tuple[Role, ...] = ("judge", question.type.repairer)
    replies: dict[Role, Scripted] = {}
    for role in roles:
        is_odd = draw(st.integers(0, 4)) == 4
        replies[role] = (
            draw(lm_replies() | _FAILURES) if is_odd else _fields_of(role, draw(VALID_REPLIES[role](question)))
        )
    return Scene(question, replies)


def scenes_of(trials: Iterable[Trial], kind: AnswerType) -> list[Scene]:
    """Return situations as scenes, with questions of a type; a role that is silent there abstains."""
    several = list[Scene]()
    for trial in typed(trials, kind):
        replies: dict[Role, Scripted] = {role: _fields_of(role, reply) for role, reply in trial.replies.items()}
        several.append(Scene(trial.question, replies))
    return several


def repeats(kind: AnswerType) -> list[Scene]:
    """Return one question repeated: with other evidence, with none, and with the same answers in other pools."""
    if kind.way == "derivation":
        pools = (("18", "9", "9"), ("9", "18", "18"), ("18", "18", "9"), ("9", "9", "18"), ("18", "9", "9"))
        return scenes_of((calculation(pool, None, derived_sum("18")[1]) for pool in pools), kind)
    lyon, rome = ("Lyon", "Rome", "Rome"), ("Lyon", "Lyon", "Rome")
    several = [(lyon, ("Lyon",)), (lyon, ("Rome",)), (lyon, ()), (lyon, ("Lyon",)), (lyon, None), (rome, ("Lyon",))]
    several += [(lyon, ("Lyon",)), (lyon[::-1], ("Lyon",)), (lyon, ("Doha", "Lyon")), (lyon, ("Lyon", "Doha"))]
    again = scenes_of((contest(pool, "Lyon", "Doha", texts=texts or ()) for pool, texts in several), kind)
    return [replace(scene, has_evidence=texts is not None) for scene, (_, texts) in zip(again, several, strict=False)]


def _fields_of(role: Role, reply: Reply) -> dict[str, Any]:
    """The fields in which an LM gives a reply; for an abstention, those that say nothing."""
    if role == "judge":
        preferred, scores = (reply.preferred, reply.scores) if isinstance(reply, Verdict) else (-1, None)
        assessments = [{**dict.fromkeys(_ASPECTS, 0.5), "scalar": score} for score in scores or ()]
        return {"judge_rationale": "", "assessments": assessments, "preferred": preferred}
    if role == "repairer":
        return {"repair_passage": -1, "repaired_answer": reply.answer if isinstance(reply, Repair) else ""}
    derived = reply if isinstance(reply, Derivation) else Derivation((), "")
    steps = [asdict(step) for step in derived.steps]
    return {"derivation_steps": steps, "derived_answer": derived.answer, "consistency_check": derived.check}
