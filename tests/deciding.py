"""A rule is driven over a case with replies that are given: what is decided, and who was asked."""

from collections.abc import Mapping
from typing import Any

from eldgr_dspy.decision import Decision, drive
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Reply
from eldgr_dspy.words import ROLES, Role

SILENT: Mapping[Any, Reply] = dict.fromkeys(ROLES, Abstention("silent"))


def decide_case(case: Case, replies: Mapping[Any, Reply], rule: str = "eldgr") -> tuple[Decision, dict[Any, Reply]]:
    """Return the decision, and the replies that were asked for; a role without a reply may not be asked."""
    answers: dict[Any, Reply] = {}

    def ask(role: Role) -> Reply:
        answers[role] = replies[role]
        return answers[role]

    return case.record(drive(case.rule(rule)(case), ask), answers), answers
