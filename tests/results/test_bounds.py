"""The authority bound is the range of a rule's outcome over every reply that there can be."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given

from eldgr_dspy.answers import exact_match, normalise
from eldgr_dspy.bounds import extreme_spans, interval
from eldgr_dspy.cases import Case
from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import Abstention, Repair, Reply, Verdict
from eldgr_dspy.decision import RULES, drive
from eldgr_dspy.questions import Question
from tests.strategies import questions


def bound(case: Case, gold: list[str], rule: str = "eldgr", *, any_span: bool = False) -> tuple[bool, bool]:
    def correct(answer: str | None) -> bool:
        return exact_match(answer, gold)

    return interval(case.rule(rule), case, correct, extreme_spans(case, gold, correct) if any_span else ())


def case(answers: list[str | None], text: str = "", title: str = "") -> Case:
    return Case(Question("Q", "retrieval", tuple(answers), (), (Passage(title, text),)))


def test_a_certified_consensus_is_a_point_and_an_open_one_an_interval() -> None:
    assert bound(case(["Doha", "Doha", "Oslo"], "Doha, Oslo"), ["Oslo"]) == (False, False)
    assert bound(case(["Rome", "Rome", "Oslo"], "Doha, Oslo"), ["Oslo"]) == (False, True)
    assert bound(case(["Rome", "Rome", "Oslo"], "Doha, Oslo"), ["Rome"]) == (False, True)
    assert bound(case(["Rome", "Rome", "Oslo"], "Doha"), ["Oslo"]) == (False, False)
    assert bound(case(["Rome", "Rome", "Oslo"], "Doha"), ["Oslo"], "judge") == (False, True)
    assert bound(case(["Rome", "Rome", "Oslo"], "Doha"), ["Rome"], "majority") == (True, True)


@pytest.mark.parametrize(
    ("gold", "text", "title"),
    [
        ("The Beatles", "Beatles were a band.", ""),
        ("1,000", "about 1000 people", ""),
        ("US", "made in the U.S. in 1990", ""),
        ("New York", "He saw New\nYork.", ""),
        ("Oslo", "", "Oslo"),
        ("Tower of London", "the Tower of the London people", ""),
    ],
)
def test_a_right_span_is_found_however_the_evidence_spells_it(gold: str, text: str, title: str) -> None:
    assert bound(case(["Rome", "Rome", "Lyon"], text, title), [gold], any_span=True) == (False, True)


def test_a_wrong_span_is_found_in_a_title_too() -> None:
    assert bound(case(["Rome", "Rome"], "", "Oslo"), ["Rome"], any_span=True) == (False, True)
    assert bound(case(["Rome", "Rome"], "", ""), ["Rome"], any_span=True) == (True, True)


@given(questions("retrieval"))
def test_the_bound_is_what_brute_force_over_judges_and_words_finds(question: Question) -> None:
    found = Case(question)
    gold = [answer for answer in question.answers if answer and normalise(answer)][:1] or ["Paris"]
    silent: Reply = Abstention("silent")
    judges: list[Reply] = [silent, *(Verdict(i) for i, key in enumerate(found.vote.classes) if key is not None)]
    words = [word for passage in question.passages for word in (*passage.text.split(), *passage.title.split())]
    for rule, spans in product(RULES, (False, True)):
        repairs: list[Reply] = [silent, *map(Repair, words * spans)]
        results = set()
        for judge, repair in product(judges, repairs):
            replies: dict[Any, Reply] = {"judge": judge, "repairer": repair}
            results.add(exact_match(drive(found.rule(rule)(found), replies.__getitem__).answer, gold))
        low, high = bound(found, gold, rule, any_span=spans)
        assert low <= min(results)
        assert high >= max(results)
        assert spans or (low, high) == (min(results), max(results))
