"""A failure is reported with the example that causes it."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from eldgr_dspy import errors
from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Choice, Steps, evidence_locked, first_candidate
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.laws import LawBroken
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector
from eldgr_dspy.testing import check_laws
from tests.case_tables import each_case
from tests.refusing import says
from tests.selecting import Returns

Passages = tuple[Passage, ...]


def calls_instead_of_yielding(case: Any) -> Choice:
    return Choice("consensus", case.consensus)


def returns_text(case: Any) -> Any:
    yield from ()
    return case.consensus


def asks_a_stranger(case: Any) -> Any:
    yield "oracle"
    return Choice("consensus", case.consensus)


def never_stops(case: Any) -> Any:
    while True:
        yield "judge"


def raises(case: Any) -> Steps:
    if len(case.question.answers) > 2:
        raise LookupError("no such thing")
    return (yield from evidence_locked(case))


def raises_at_once(case: Any) -> Steps:
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


CALLS = itertools.count()


def tires(case: Any) -> Steps:
    return (yield from (first_candidate if next(CALLS) % 2 else evidence_locked)(case))


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


@pytest.mark.slow
@each_case("laws", "misbehaving", named=globals().__getitem__, made=lambda name: globals()[name]())
def test_what_misbehaves_is_named_with_a_small_example(options: dict[str, Any], kind: str, messages: list[str]) -> None:
    with pytest.raises(getattr(errors, kind)) as info:
        check_laws(**options, max_examples=1)
    assert any(says(message, str(info.value)) for message in messages)
    assert info.value.__notes__[0].startswith("Falsifying example: ")


@pytest.mark.slow
@each_case("laws", "refused", named=globals().__getitem__)
def test_what_cannot_be_held_to_the_laws_is_told(options: dict[str, Any], kind: str, messages: list[str]) -> None:
    with pytest.raises(getattr(errors, kind)) as info:
        check_laws(**options)
    assert any(says(message, str(info.value)) for message in messages)


@pytest.mark.parametrize("rule", [raises, raises_at_once])
def test_the_example_of_an_exception_is_small_and_the_rule_named_be_it_a_generator_or_a_plain_function(
    rule: Any,
) -> None:
    with pytest.raises(ArgumentError, match=rf"The rule '.*:{rule.__name__}' has failed: .*no such thing") as info:
        check_laws(rule, max_examples=0)
    assert isinstance(info.value.__cause__, LookupError)
    with pytest.raises(ArgumentError) as info:
        check_laws(raises)
    assert isinstance(info.value.__cause__, LookupError)
    assert "Question(text='Which?', task='retrieval', answers=('Lyon', 'Rome', 'Rome')" in info.value.__notes__[0]


def test_the_cause_of_a_broken_law_is_what_the_selector_raised() -> None:
    select = Selector()
    select.judge = Returns(KeyError("a bug"))
    with pytest.raises(LawBroken, match="Law 19") as info:
        check_selector(select)
    assert isinstance(info.value.__cause__, KeyError)
