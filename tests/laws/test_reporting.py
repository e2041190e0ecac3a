"""A failure is reported with the example that causes it."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Steps, evidence_locked, first_candidate
from eldgr_dspy.errors import ArgumentError, CertificateError
from eldgr_dspy.laws import LawBroken
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector
from eldgr_dspy.testing import check_laws
from tests.selecting import Returns

Passages = tuple[Passage, ...]

# -- rules and certificates that misbehave -----------------------------------------------------------------------------


def raises(case: Any) -> Steps:
    if len(case.question.answers) > 2:
        raise LookupError("no such thing")
    return (yield from evidence_locked(case))


def raises_at_once(case: Any) -> Steps:
    """A plain function, as others are generators."""
    raise LookupError("no such thing")


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
    "a rule raises": (
        {"rule": raises},
        ArgumentError,
        r"^The rule '.*:raises' has failed: LookupError: no such thing \(",
    ),
    "a plain function raises": (
        {"rule": raises_at_once},
        ArgumentError,
        r"^The rule '.*:raises_at_once' has failed: LookupError: no such thing \(",
    ),
    "a rule raises late": (
        {"rule": raises_in_arithmetic_with_a_verdict},
        ArgumentError,
        r"^The rule '.*:raises_in_arithmetic_with_a_verdict' has failed: ZeroDivisionError: by a verdict \(",
    ),
    "a rule changes the vote": (
        {"rule": recounts},
        ArgumentError,
        r"^The rule '.*:recounts', its certificate and its answer type must only read .*; the vote was first ",
    ),
    "a rule changes the question": (
        {"rule": rewrites},
        ArgumentError,
        r"^The rule '.*:rewrites', .* must only read .*; the question or a reply was first ",
    ),
    "a rule differs between two calls": (
        {"rule": tires()},
        ArgumentError,
        r"^The rule '.*:tires\.<locals>\.rule', .* repeat themselves; the decision was first .* Keep nothing ",
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
        r"^The rule 'eldgr_dspy.decision:evidence_locked', its certificate .*; the question or a reply was first ",
    ),
    "a certificate differs between two calls": (
        {"certificate": doubts()},
        ArgumentError,
        r"^The rule '.*:evidence_locked', its certificate .*; the (certificates|decision) was first .*\. Keep ",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("values", "kind", "message"), MISBEHAVING.values(), ids=MISBEHAVING)
def test_what_misbehaves_is_named_with_a_small_example(
    values: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=f"(?m){message}") as caught:  # with the note, which begins another line
        check_laws(**values, max_examples=1)
    assert caught.value.__notes__[0].startswith("Falsifying example: ")


def test_the_example_of_an_exception_is_small() -> None:
    with pytest.raises(ArgumentError) as caught:
        check_laws(raises)
    assert isinstance(caught.value.__cause__, LookupError)
    assert "Question(text='Which?', task='retrieval', answers=('Lyon', 'Rome', 'Rome')" in caught.value.__notes__[0]


def test_the_cause_of_a_broken_law_is_what_the_selector_raised() -> None:
    select = Selector()
    select.judge = Returns(KeyError("a bug"))
    with pytest.raises(LawBroken, match="Law 19") as caught:
        check_selector(select)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("rule", [raises, raises_at_once])
def test_a_rule_that_raises_is_named_whether_it_is_a_generator_or_a_plain_function(rule: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"The rule '.*:{rule.__name__}' has failed: .*no such thing") as caught:
        check_laws(rule, max_examples=0)
    assert isinstance(caught.value.__cause__, LookupError)
