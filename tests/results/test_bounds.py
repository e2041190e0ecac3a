"""The authority bound is the range of a rule's outcome over every reply that there can be."""

from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eldgr_dspy.answers import exact_match, normalise
from eldgr_dspy.cases import Case
from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import Abstention, Repair, Reply, Verdict
from eldgr_dspy.decision import RULES, Choice, Steps, drive
from eldgr_dspy.figures.bounds import extreme_spans, interval, outcomes
from eldgr_dspy.questions import Question, Settings
from eldgr_dspy.words import POLICIES, PREFERENCE, Policy, Role
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
        ("Paris", "A Paris-based firm", ""),
        ("1967", "from 1967\u20131970", ""),
        ("London", "Paris/London", ""),
        ("Paris", "Paris\u2014the city", ""),
        ("Paris", "Paris's mayor", ""),
        ("\u201cA Day\u201d", "sang \u201cA Day\u201d twice", ""),
        ("\u0130zmir", "in \u0130zmir.", ""),
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


def test_under_substring_any_part_of_a_word_repairs() -> None:
    question = Question("Q", "retrieval", ("Rome", "Rome", "Lyon"), (), (Passage("", "Parisians"),))
    assert bound(Case(question), ["Paris"], any_span=True) == (False, False)
    assert bound(Case(question, Settings(certificate="substring")), ["Paris"], any_span=True) == (False, True)


def test_a_wrong_span_may_be_a_part_of_the_right_one() -> None:
    # consensus is right and has no certificate, "Paris" has one and is wrong
    assert bound(case(["Paris based", "Paris based"], "Paris-based"), ["Paris based"], any_span=True) == (False, True)
    assert bound(case(["Rome", "Rome"], "Oslo " * 600), ["Rome", "Oslo"], any_span=True) == (False, True)


def test_the_scores_of_a_judge_are_played_too_where_they_can_matter() -> None:
    def only_where_the_two_readings_differ(one: Any) -> Steps:
        reply = yield "judge"
        stated, preferred = one.stated(reply), one.preferred(reply)
        return Choice("judge", preferred) if not one.same(stated, preferred) else Choice("consensus", one.consensus)

    question = Question("Q", "retrieval", ("Rome", "Rome", "Oslo"), (), (Passage("", "Oslo"),))
    found = {
        reading: interval(
            only_where_the_two_readings_differ,
            Case(question, Settings(preference=reading)),
            lambda answer: answer == "Oslo",
        )
        for reading in PREFERENCE
    }
    assert found == {"global": (False, False), "stratum": (False, True)}


plain = ["Oslo", "the", "no", "Paris,", "7", "-", "1,000", "a", "U.S.", "-7", "/Paris", "'s", "C++", "T.H.E", "A-"]
foreign = ["\u201cA Day\u201d", "\u00bd", "\u6771\u4eac", "\u0130", "\u2013the"]
pieces = st.sampled_from([*plain, *foreign])
sources = st.lists(st.tuples(pieces, st.sampled_from(["", " "])).map("".join), max_size=4).map("".join)
answers_given = [
    "Oslo",
    "no",
    "Paris",
    "7",
    "US",
    "1000",
    "-",
    "C",
    "A",
    "-7",
    "\u201cA Day\u201d",
    "\u6771\u4eac",
    "\u0130",
]


@settings(max_examples=60)
@given(
    st.lists(st.none() | st.sampled_from(answers_given), min_size=1, max_size=3),
    sources,
    st.sampled_from(POLICIES),
    st.lists(st.sampled_from([*answers_given, "Oslo Paris", "The"]), min_size=1, max_size=2),
)
@example(["Rome"], "A Paris-based firm", "folded", ["Paris"])
@example(["Oslo"], "1967\u20131970", "token", ["1970"])
@example([None], "T.H.E", "token", ["A"])
@example(["7"], "a - 7", "folded", ["-7"])
def test_the_bound_is_what_brute_force_over_judges_and_every_run_of_characters_finds(
    answers: list[str | None], text: str, policy: Policy, gold: list[str]
) -> None:
    found = Case(Question("Q", "retrieval", tuple(answers), (), (Passage("", text),)), Settings(certificate=policy))
    spans = {text[start:end] for start in range(len(text)) for end in range(start + 1, len(text) + 1)}
    silent: Reply = Abstention("silent")
    judges: list[Reply] = [silent, *(Verdict(i) for i, key in enumerate(found.vote.classes) if key is not None)]
    results = set()
    for judge, repair in product(judges, [silent, *map(Repair, sorted(spans))]):
        replies: dict[Any, Reply] = {"judge": judge, "repairer": repair}
        results.add(exact_match(drive(found.rule("eldgr")(found), replies.__getitem__).answer, gold))
    assert bound(found, gold, any_span=True) == (min(results), max(results))


def test_the_replies_of_a_role_are_tried_only_where_the_rule_asks_it() -> None:
    heard = list[tuple[Reply, ...]]()

    def stubborn(case: Case) -> Steps:
        judged = yield "judge"
        repaired = (yield "repairer") if isinstance(judged, Abstention) else None
        again = yield "judge"
        assert again is judged
        heard.append((judged, *([] if repaired is None else [repaired])))
        return Choice("judge", str(len(heard)))

    silent, zero, one, span = Abstention("silent"), Verdict(0), Verdict(1), Repair("Oslo")
    replies: dict[Role, list[Reply]] = {
        "deriver": [silent, span],
        "judge": [silent, zero, one],
        "repairer": [silent, span],
    }
    assert len([*outcomes(stubborn, case(["Doha"]), replies)]) == 4
    assert {*heard} == {(silent, silent), (silent, span), (zero,), (one,)}
