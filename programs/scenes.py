"""Generated questions with an LM's replies: typed ones, raw ones, and calls that do not come through.

Strategies for `eldgr_dspy.programs.checking`, made of those of `eldgr_dspy.strategies`. Needs Hypothesis.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from dspy import lm15
from dspy.lm15 import Request
from hypothesis import strategies as st

from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.consultations import Derivation, Repair, Reply, Verdict
from eldgr_dspy.laws.making import SOUND, asked, counted
from eldgr_dspy.laws.trials import Trial
from eldgr_dspy.laws.typed import typed
from eldgr_dspy.programs.scripted import Scripted, role_of
from eldgr_dspy.questions import Question
from eldgr_dspy.strategies import derivations, lm_replies, raw_text, repairs, verdicts
from eldgr_dspy.words import Role

_ASPECTS = ("logic", "fact", "epist", "info", "triang", "adv", "min", "scalar")


@dataclass(frozen=True, slots=True)
class Scene:
    """A question, and the LM's replies to it.

    Attributes:
        question: The question with its pool and evidence.
        said: The reply to each role that may be asked.
        word, number: The value of a field that none of these is asked for.
        given: Whether evidence is given, even an empty list, and not None.
    """

    question: Question
    replies: Mapping[Role, Scripted]
    word: str = ""
    number: int = 0
    has_evidence: bool = True

    def inputs(self, answer_field: str) -> dict[str, Any]:
        """Return the question as a user gives it; with new lists each time."""
        question = self.question
        candidates = [{answer_field: answer} for answer in question.answers]
        evidence = [{"title": passage.title, "text": passage.text} for passage in question.passages]
        passages = evidence if self.has_evidence else None
        answer = question.type if question.type.is_own else question.type.name
        options = {"options": [*question.options]} if question.options else {}
        return {"question": question.text, "candidates": candidates, "evidence": passages, "answer": answer, **options}

    def reply(self, request: Request) -> Scripted:
        """Return the reply to a request; a typed one also has the further fields that a user's own module asks for."""
        response_format: Any = request.config.response_format
        properties = ((response_format or {}).get("schema") or {}).get("properties", {})
        role = role_of(request)
        fields = self.replies.get(role, "") if role else {}
        if not isinstance(fields, Mapping):
            return fields
        return {**fields, **{name: self._blank(kind) for name, kind in properties.items() if name not in fields}}

    def _blank(self, kind: Mapping[str, Any]) -> Any:
        blanks = {"string": self.word, "integer": self.number, "number": 0.5, "boolean": False, "array": []}
        return blanks.get(str(kind.get("type")))


@st.composite
def scenes(draw: st.DrawFn, strategy: st.SearchStrategy[Question]) -> Scene:
    """Draw one of the questions asked, with a reply of each role: typed in most cases, else raw or a failed call."""
    question = draw(strategy)
    usual: dict[Role, st.SearchStrategy[Any]] = (
        {"deriver": derivations(question)}
        if question.type.way == "derivation"
        else {"judge": verdicts(question), "repairer": repairs(question)}
    )
    replies: dict[Role, Scripted] = {}
    for role, typed_replies in usual.items():
        replies[role] = draw(_mostly(typed_replies.map(partial(_fields_of, role)), lm_replies() | _failures))
    return Scene(question, replies, draw(raw_text), draw(st.integers(-1, len(question.answers))))


def situated(trials: Iterable[Trial], kind: AnswerType | None = None) -> list[Scene]:
    """Return situations as scenes, with questions of a type; a role that is silent there abstains."""
    return [_situated(trial) for trial in typed(trials, kind)]


def repeats(kind: AnswerType) -> list[Scene]:
    """Return one question repeated: with other evidence, with none, and with the same answers in other pools."""
    if kind.way == "derivation":
        pools = (("18", "9", "9"), ("9", "18", "18"), ("18", "18", "9"), ("9", "9", "18"), ("18", "9", "9"))
        return situated((counted(pool, None, SOUND) for pool in pools), kind)
    lyon, rome = ("Lyon", "Rome", "Rome"), ("Lyon", "Lyon", "Rome")
    several = [(lyon, ("Lyon",)), (lyon, ("Rome",)), (lyon, ()), (lyon, ("Lyon",)), (lyon, None), (rome, ("Lyon",))]
    several += [(lyon, ("Lyon",)), (lyon[::-1], ("Lyon",)), (lyon, ("Doha", "Lyon")), (lyon, ("Lyon", "Doha"))]
    again = situated((asked(pool, "Lyon", "Doha", shown=texts or ()) for pool, texts in several), kind)
    return [replace(scene, has_evidence=texts is not None) for scene, (_, texts) in zip(again, several, strict=True)]


def _situated(trial: Trial) -> Scene:
    replies: dict[Role, Scripted] = {role: _fields_of(role, reply) for role, reply in trial.replies.items()}
    verdict = trial.reply("judge")
    return Scene(trial.question, replies, number=verdict.preferred if isinstance(verdict, Verdict) else -1)


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


def _mostly(usual: st.SearchStrategy[Any], other: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw the usual four times in five."""
    return st.integers(0, 4).flatmap(lambda number: other if number == 4 else usual)


_failures = st.sampled_from((lm15.ServerError("down"), lm15.RateLimitError("slow down"), lm15.TimeoutError("late")))
