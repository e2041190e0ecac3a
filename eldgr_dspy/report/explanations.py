"""How a rule decided a question, in words: what it found, which roles it asked, their replies, and what shipped.

It is derived from the question and the decision in `decisions.jsonl`; nothing is decided here.
"""

from collections.abc import Iterator

from eldgr_dspy.cases import Case
from eldgr_dspy.figures.abstention_kinds import FAILED
from eldgr_dspy.figures.results.decision import Decided
from eldgr_dspy.named_judges import unlabelled
from eldgr_dspy.report.templates import clip
from eldgr_dspy.rules import is_own
from eldgr_dspy.words import Role

_LONGEST = 200  # characters of an answer or a reason in a sentence
_NOT_ACCEPTED = "the derivation is not accepted: "


def path(case: Case | None, decided: Decided) -> Iterator[str]:
    """Yield how a rule reached its decision, a sentence or two a step.

    Args:
        case: The question; None if only what was recorded of it is known.
        decided: A line of `decisions.jsonl` about it.
    """
    rule = unlabelled(decided["rule"])
    if rule == "first":
        yield f"The first candidate ships: {_quoted(decided['answer'])}."
        return
    if case is None:
        yield f"Consensus is {_quoted(decided['consensus'])}."
        yield from _own(decided)
        return
    yield _consensus(case)
    if rule == "majority":
        yield "Consensus ships."
    elif rule == "judge":
        yield from _judge(case, decided)
    elif rule == "certified":
        yield from _certified(case, decided)
    elif is_own(rule):
        yield from _own(decided)
    elif case.type.way == "derivation":
        yield from _arithmetic(case, decided)
    else:
        yield from _retrieval(case, decided)


def _consensus(case: Case) -> str:
    if case.vote.winner is None:
        return "No candidate has an answer, so there is no consensus."
    votes, n = case.vote.classes.count(case.vote.winner), len(case.vote.classes)
    tie = "; others have as many, and its first vote comes earliest" if case.vote.tie else ""
    return f"Consensus is {_quoted(case.consensus)} with {votes} of {n} votes{tie}."


def _judge(case: Case, decided: Decided) -> Iterator[str]:
    if not case.contested:
        yield "There is nothing to choose between, so the judge is not asked. Consensus ships."
        return
    yield "The candidates differ, so the judge is asked, with full authority."
    yield _said_by("judge", decided) or f"It prefers {_candidate(case, decided)}."
    yield "That ships." if decided["branch"] == "judge" else "Consensus ships."


def _certified(case: Case, decided: Decided) -> Iterator[str]:
    if case.type.way == "derivation":
        yield "The evidence certifies no answers of this type. Consensus ships."
    elif decided["reason"] == "certified_majority":
        yield f"It is uncertified: {_ended(case.certificate(case.consensus).reason)}"
        yield f"Of the certified answers, {_quoted(decided['answer'])} has most votes: that ships."
    elif case.certified(case.consensus) is False:
        yield "No answer of the pool is certified. Consensus ships." if case.contested else "Consensus ships."
    else:
        yield f"It {_final(case)}. Consensus ships."


def _own(decided: Decided) -> Iterator[str]:
    for role in decided["consulted"]:
        yield _said_by(role, decided) or f"The {role} was asked and answered."
    yield f"What decides is {decided['branch']}: {_quoted(decided['answer'])} ships."


def _retrieval(case: Case, decided: Decided) -> Iterator[str]:
    certificate = case.certificate(case.consensus)
    if case.settings.consult == "always" and unlabelled(decided["rule"]) == "eldgr" and decided["consulted"]:
        yield f"Every role is asked, as consult=always says: {' and '.join(decided['consulted'])}."
    if certificate.certified is not False:
        yield f"It {_final(case)}, so it is final: nothing that a role says can replace it."
        return
    yield f"It is uncertified: {_ended(certificate.reason)}"
    if not case.rival():
        so = "" if _is_near(decided) else ", so no preference of a judge could ship"
        yield f"No other answer of the pool is certified{so}."
    else:
        yield "Another answer is certified, so the judge is asked."
        yield _preference(case, decided)
    if decided["reason"] != "preference_certified":
        yield from _repair(case, decided)


def _final(case: Case) -> str:
    """Why a consensus that is not uncertified is final."""
    if case.certified(case.consensus):
        return "is certified"
    if case.settings.own and not case.refuses(case.consensus):
        return "is an answer to which the certificate does not apply"
    return f"is a {'refusal' if case.refuses(case.consensus) else 'yes or no'}, to which a certificate does not apply"


def _preference(case: Case, decided: Decided) -> str:
    silent = _said_by("judge", decided)
    if silent:
        return silent
    preferred, answer = _candidate(case, decided), _preferred(case, decided)
    if decided["reason"] == "preference_certified":
        return f"It prefers {preferred}, which is certified: that ships."
    if case.same(answer, case.consensus):
        return f"It prefers {preferred}, which is consensus."
    if _is_near(decided):
        if case.certified(answer) is None:
            return f"It prefers {preferred}, to which a certificate does not apply, so it cannot override."
        return f"It prefers {preferred}, which is uncertified and has {_votes(case, answer)}."
    return f"It prefers {preferred}, which is uncertified and cannot override."


def _votes(case: Case, answer: str | None) -> str:
    lacks = case.standings[0][1] - next(votes for class_, votes in case.standings if case.same(class_, answer))
    return f"{lacks} vote{'' if lacks == 1 else 's'} fewer than consensus" if lacks else "as many votes as consensus"


def _repair(case: Case, decided: Decided) -> Iterator[str]:
    if not case.repairable:
        yield "All candidates agree, and homogeneous=skip leaves it at that. Consensus ships."
        return
    yield "It is still open, so the repairer is asked for a span of the evidence."
    if decided["branch"] == "repair":
        yield f"It gives {_quoted(decided['repair'])}, which is certified: that ships."
        return
    span = decided["repair"]
    silent = _said_by("repairer", decided)
    if silent or span is None:
        yield silent or "It gives no span."
    elif case.same(span, case.consensus):
        yield f"It gives {_quoted(span)}, which is consensus."
    else:
        yield f"It gives {_quoted(span)}, which is uncertified and cannot override."
    yield from _at_last(case, decided, asked=case.rival())


def _at_last(case: Case, decided: Decided, *, asked: bool) -> Iterator[str]:
    """What ships where nothing certified does; `asked` says whether the judge has been asked already."""
    if _is_near(decided) and "judge" in decided["consulted"] and not asked:
        yield "Another answer nearly won the vote, so the judge is asked."
        yield _preference(case, decided)
    if decided["branch"] == "judge":
        rule = unlabelled(decided["rule"])
        yield f"Under {rule} that is enough to override an uncertified consensus: the preference ships."
    elif decided["branch"] == "certified":
        yield f"The judge is silent, so the certified answer with most votes ships: {_quoted(decided['answer'])}."
    else:
        yield "Consensus ships." if case.consensus is not None else "Nothing ships."


def _is_near(decided: Decided) -> bool:
    return decided["rule"].startswith("near(")


def _arithmetic(case: Case, decided: Decided) -> Iterator[str]:
    if not case.repairable:
        yield "All candidates agree, so no derivation is asked for, as homogeneous=skip says. Consensus ships."
        return
    if "deriver" not in decided["consulted"]:
        yield "No candidate of another class may be supported here, so the deriver is not asked. Consensus ships."
        return
    judge = "" if _is_near(decided) else ", and the judge never decides"
    yield f"The deriver is asked: a derivation certifies answers of this type{judge}."
    silent = _said_by("deriver", decided)
    reasons = [note.removeprefix(_NOT_ACCEPTED) for note in decided["notes"] if note.startswith(_NOT_ACCEPTED)]
    derived, level = _quoted(decided["repair"]), case.settings.derivation
    if silent:
        yield silent
    elif reasons:
        why = clip(reasons[0], _LONGEST).removesuffix(".")
        yield f"Its derivation of {derived} does not pass the check “{level}”: {why}."
    else:
        yield f"Its derivation of {derived} passes the check “{level}”."
    if decided["branch"] == "repair":
        yield "It differs from consensus and ships."
    elif decided["reason"] == "derivation_agrees":
        yield "It says what consensus says. Consensus ships."
    elif not silent and not reasons:
        yield "It is not the answer of a candidate that may be supported. Consensus ships."
    else:
        yield from _at_last(case, decided, asked=False)


def _said_by(role: Role, decided: Decided) -> str | None:
    """The sentence for a role without an answer; None if it gave one."""
    reason = decided["abstentions"].get(role)
    if reason is None:
        return None
    if reason.startswith(FAILED):
        return f"The {role}'s call failed: {_ended(reason.removeprefix(FAILED))}"
    return f"The {role} abstains: {_ended(reason)}"


def _candidate(case: Case, decided: Decided) -> str:
    return f"candidate [{decided['preference']}], {_quoted(_preferred(case, decided))}"


def _preferred(case: Case, decided: Decided) -> str | None:
    index = decided["preference"]
    return None if index is None else case.question.answers[index]


def _quoted(answer: str | None) -> str:
    return "no answer" if answer is None else f"“{clip(answer, _LONGEST)}”"


def _ended(reason: str) -> str:
    """A reason as the end of a sentence; some are sentences themselves."""
    return f"{clip(reason, _LONGEST).removesuffix('.')}."
