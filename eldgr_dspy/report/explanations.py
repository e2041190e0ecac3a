"""How a rule decided a question, in words: the votes, the roles that it asked with their replies, and the reason.

It is read off the question and the decision in `decisions.jsonl`; nothing is decided here.
"""

from collections.abc import Iterator

from eldgr_dspy.figures.results.decision_fields import Decided
from eldgr_dspy.report.templates import clip
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import FAILED
from eldgr_dspy.rule.reasons import REASONS, refusal_of_derivation
from eldgr_dspy.words import Role

_LONGEST = 200  # characters of an answer or a reason in a sentence


def path(case: Case | None, decided: Decided) -> Iterator[str]:
    """Yield how a rule reached its decision, a sentence or two a step.

    Args:
        case: The question; None if only what was recorded of it is known.
        decided: A line of `decisions.jsonl` about it.
    """
    yield f"Consensus is {_quoted(decided['consensus'])}{_votes(case)}."
    if case is not None and case.type.way == "evidence" and case.consensus is not None:
        yield f"Its certificate: {_ended(case.certificate(case.consensus).reason)}"
    for role in decided["consulted"]:
        yield _said_by(role, case, decided)
    if refusal := refusal_of_derivation(decided["notes"]):
        yield f"The derivation is not accepted: {_ended(refusal)}"
    yield REASONS.get(decided["reason"], f"What decides is {decided['branch']}.")
    yield f"{_quoted(decided['answer'])} ships." if decided["answer"] is not None else "Nothing ships."


def _votes(case: Case | None) -> str:
    if case is None or case.vote.winner is None:
        return ""
    votes, n = case.vote.classes.count(case.vote.winner), len(case.vote.classes)
    tie = "; others have as many, and its first vote comes earliest" if case.vote.tie else ""
    return f" with {votes} of {n} votes{tie}"


def _said_by(role: Role, case: Case | None, decided: Decided) -> str:
    reason, preferred = decided["abstentions"].get(role), decided["preference"]
    if reason is not None:
        if reason.startswith(FAILED):  # all that a decision states
            return f"The {role}'s call failed: {_ended(reason.removeprefix(FAILED))}"
        return f"The {role} abstains: {_ended(reason)}"
    if role != "judge":
        return f"The {role} gives {_quoted(decided['repair'])}."
    if case is None or preferred is None:
        return f"The judge prefers candidate [{preferred}]."
    answer = case.question.answers[preferred]
    if case.type.way == "derivation":
        return f"The judge prefers candidate [{preferred}], {_quoted(answer)}."
    support = {True: "certified", False: "uncertified", None: "a certificate does not apply to it"}
    return f"The judge prefers candidate [{preferred}], {_quoted(answer)}: {support[case.certified(answer)]}."


def _quoted(answer: str | None) -> str:
    return "no answer" if answer is None else f"“{clip(answer, _LONGEST)}”"


def _ended(reason: str) -> str:
    """A reason as the end of a sentence; some are sentences themselves."""
    return f"{clip(reason, _LONGEST).removesuffix('.')}."
