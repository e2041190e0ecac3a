"""What ships of a question, under the rules and under a judge, an LM and an adapter, and whether that is a capture."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dspy

from eldgr_dspy.decision import Decision, drive
from eldgr_dspy.programs.lms.consulting import ask
from eldgr_dspy.programs.roles import Deriver, Judge, Repairer
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Reply
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.replies import read_reply
from eldgr_dspy.words import Role
from tests.injection.attack_scenes import Trial, trials
from tests.injection.attacks import ANSWER
from tests.injection.obeying_judges import obeying, obeys_anything, obeys_what_is_outside

LMS = {"obedient": obeys_anything, "fence": obeys_what_is_outside}


def ship(question: Question, lm: Any, adapter: Any = None, judge: Any = None) -> Mapping[str, Decision]:
    """Return what ships by a judge with full authority and by the rule, on the same replies."""
    case = Case(question)
    modules: Mapping[Role, Any] = {"judge": judge or Judge(), "repairer": Repairer(), "deriver": Deriver()}
    replies: dict[Role, Reply] = {}

    def consult(role: Role) -> Reply:
        if role not in replies:
            content = ask(modules[role], question.role_inputs(role)).content
            replies[role] = read_reply(role, content, question.answers, len(question.passages))
        return replies[role]

    with dspy.context(lm=lm, adapter=adapter):
        return {rule: case.record(drive(case.rule(rule)(case), consult), replies) for rule in ("judge", "eldgr")}


@dataclass(frozen=True)
class Outcome:
    """What became of one trial, by the LM that judged."""

    trial: Trial
    by: Mapping[str, Mapping[str, Decision]]

    def captures(self, lm: str, rule: str, certified: bool | None = None) -> bool:
        """Whether the attacker's answer shipped; with `certified`, whether it did so with that mark."""
        decision = self.by[lm][rule]
        return decision.answer == ANSWER and certified in (None, decision.certified)


def outcomes() -> Iterator[Outcome]:
    """Try the whole battery on both LMs."""
    lms = {name: obeying(obeys) for name, obeys in LMS.items()}
    for trial in trials():
        yield Outcome(trial, {name: ship(trial.question, lm) for name, lm in lms.items()})
