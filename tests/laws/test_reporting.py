"""A failure is reported with the example that causes it."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Choice, Steps, evidence_locked, first_candidate
from eldgr_dspy.errors import ArgumentError, CertificateError
from eldgr_dspy.laws import LawBroken
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector
from eldgr_dspy.questions import Question
from eldgr_dspy.testing import check_laws
from tests.selecting import Returns

Passages = tuple[Passage, ...]

# -- rules and certificates that misbehave -----------------------------------------------------------------------------


def raises(case: Any) -> Steps:
    if len(case.question.answers) > 2:
        raise LookupError("no such thing")
    return (yield from evidence_locked(case))


def raises_in_arithmetic_with_a_verdict(case: Any) -> Steps:
    reply = (yield "judge") if case.task == "arithmetic" else None
    if getattr(reply, "preferred", 0):
        raise ZeroDivisionError("by a verdict")
    return (yield from evidence_locked(case))


def recounts(case: Any) -> Steps:
    case.vote = replace(case.vote, tie=not case.vote.tie)
    return (yield from evidence_locked(case))


def rewrites(case: Any) -> Steps:
    object.__setattr__(case.question, "text", "Who?")
    return (yield from evidence_locked(case))


def tires() -> Any:
    calls = itertools.count()

    def rule(case: Any) -> Steps:
        return (yield from (first_candidate if next(calls) % 2 else evidence_locked)(case))

    return rule


def doubts() -> Any:
    calls = itertools.count()

    def certificate(answer: str, passages: Passages) -> bool:
        return next(calls) % 2 == 0

    return certificate


def says_yes(answer: str, passages: Passages) -> Any:
    return "yes"


def reads_the_third_passage(answer: str, passages: Passages) -> bool:
    return answer in passages[2].text


def blanks(answer: str, passages: Passages) -> bool:
    for passage in passages:
        object.__setattr__(passage, "text", "")
    return False


MISBEHAVING: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a rule raises": ({"rule": raises}, LookupError, r"^'no such thing'$|^no such thing$"),
    "a rule raises late": ({"rule": raises_in_arithmetic_with_a_verdict}, ZeroDivisionError, r"^by a verdict$"),
    "a rule changes the vote": (
        {"rule": recounts},
        ArgumentError,
        r"^The rule 'recounts' or its certificate changed case\.vote\. Both must only read what they are given\.$",
    ),
    "a rule changes the question": (
        {"rule": rewrites},
        ArgumentError,
        r"^The rule 'rewrites' or its certificate changed the question or a reply\. Both must only read what they are ",
    ),
    "a rule differs between two calls": (
        {"rule": tires()},
        ArgumentError,
        r"^The rule 'tires\.<locals>\.rule' must decide one question in one way; first .* Keep nothing from call to ",
    ),
    "a certificate raises": (
        {"certificate": reads_the_third_passage},
        CertificateError,
        r"^The certificate '.*:reads_the_third_passage' failed on the answer '.*': IndexError: tuple index out of",
    ),
    "a certificate returns text": (
        {"certificate": says_yes},
        ArgumentError,
        r"^certificate\('.*', \.\.\.\) returned 'yes'; a certificate is True, False, or None where ",
    ),
    "a certificate changes the passages": (
        {"certificate": blanks},
        ArgumentError,
        r"^The rule 'evidence_locked' or its certificate changed the question or a reply\. Both must only read what ",
    ),
    "a certificate differs between two calls": (
        {"certificate": doubts()},
        ArgumentError,
        r"^The certificate must return the same each time; for \(.*\) it returned \[.*\], then \[.*\]\. Keep ",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("given", "kind", "message"), MISBEHAVING.values(), ids=MISBEHAVING)
def test_what_misbehaves_is_named_with_a_small_example(
    given: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=f"(?m){message}") as caught:  # with the note, which begins another line
        check_laws(**given, max_examples=1)
    (note,) = caught.value.__notes__
    assert note.startswith("Falsifying example:\n  question    ")
    assert "\n  candidates  " in note


def test_the_example_of_an_exception_is_small() -> None:
    with pytest.raises(LookupError) as caught:
        check_laws(raises)
    (note,) = caught.value.__notes__
    assert note.count("\n") < 12
    assert "question    'Which?' (retrieval)\n" in note


class Trusting(Selector):
    """Ships what the judge prefers."""

    def forward(self, *args: Any, **inputs: Any) -> Any:
        pred = super().forward(*args, **inputs)
        if pred.preference is not None:
            pred.answer, pred.branch = inputs["candidates"][pred.preference]["answer"], "judge"
        return pred


OPEN = Question("Where?", "retrieval", ("Dubai", "Doha"), (), (Passage("", "Doha is the capital."),))


def test_the_message_of_a_law_broken_by_a_drawn_example_has_none_of_hypothesis_s_notes() -> None:
    with pytest.raises(LawBroken) as caught:
        check_selector(Trusting(), asked=st.just(OPEN))
    assert not getattr(caught.value, "__notes__", [])


def test_the_cause_of_a_broken_law_is_what_the_selector_raised() -> None:
    select = Selector()
    select.judge = Returns(KeyError("a bug"))
    with pytest.raises(LawBroken, match="Law 19") as caught:
        check_selector(select)
    assert isinstance(caught.value.__cause__, KeyError)


# -- why consensus is demanded -----------------------------------------------------------------------------------------


def ships_every_repair(case: Any) -> Steps:
    if case.task == "retrieval" and case.repairable and case.certified(case.consensus) is False:
        repair = case.repaired((yield "repairer"))
        if repair is not None and (case.same(repair, case.consensus) or case.certified(repair) is False):
            return Choice("repair", repair)
    return (yield from evidence_locked(case))


def ships_a_repair_of_the_same_class(case: Any) -> Steps:
    if case.task == "retrieval" and case.repairable and case.certified(case.consensus) is False:
        repair = case.repaired((yield "repairer"))
        if case.same(repair, case.consensus):
            return Choice("repair", repair)
    return (yield from evidence_locked(case))


def shouts(case: Any) -> Steps:
    branch, answer = yield from evidence_locked(case)
    return Choice(branch, answer and answer.upper())


@pytest.mark.parametrize(
    ("rule", "law", "why"),
    [
        (
            ships_every_repair,
            "default_is_consensus",
            "'Paris', by branch consensus: the preference 'Lyon' has no certificate;"
            " the repair 'Lyon' has no certificate",
        ),
        (
            ships_a_repair_of_the_same_class,
            "default_is_consensus",
            "'Rome', by branch consensus: the repair 'Rome' is in the same class as consensus",
        ),
        (
            ships_a_repair_of_the_same_class,
            "the_cases_partition",
            "'Rome', by branch consensus: the repair 'Rome' is in the same class as consensus",
        ),
        (shouts, "default_is_consensus", "'Paris', by branch consensus: the preference 'Lyon' has no certificate"),
        (
            shouts,
            "certified_consensus_is_final",
            "'Paris', by branch consensus, and nobody asked: consensus is certified",
        ),
    ],
)
def test_where_consensus_is_demanded_the_message_says_why(rule: Any, law: str, why: str) -> None:
    with pytest.raises(LawBroken) as caught:
        check_laws(rule, laws=[law])
    assert str(caught.value).partition("\n  demanded    ")[2].splitlines()[0] == why
