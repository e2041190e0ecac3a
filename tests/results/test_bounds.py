"""The authority bound is the range of a rule's outcome over every reply that there can be."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy import testing
from eldgr_dspy.answer_types.answers import exact_match, numeric_equal
from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Choice, Steps
from eldgr_dspy.figures.bounds import answers_over_any, derivable, ends_of, extreme_spans, outcomes, sways
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Reply, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.words import PREFERENCE, Role, Strictness
from tests.case_tables import each_case


def bound(case: Case, gold: list[str], rule: str = "eldgr", *, any_span: bool = False) -> tuple[bool, bool]:
    def correct(answer: str | None) -> bool:
        return exact_match(answer, gold)

    spans = extreme_spans(case, gold, correct) if any_span else ()
    return ends_of(answers_over_any(case.rule(rule), case, spans=spans), correct)


def case(answers: list[str | None], text: str = "", title: str = "", **settings: Any) -> Case:
    return Case(Question("Q", "retrieval", tuple(answers), (), (Passage(title, text),)), Settings(**settings))


@each_case("results", "bounds", case=case)
def test_a_certified_consensus_is_a_point_and_an_open_one_an_interval_over_every_span(
    case: Case, gold: list[str], how: dict[str, Any], expected: list[bool]
) -> None:
    assert [*bound(case, gold, **how)] == expected


@each_case("results", "right spans")
def test_a_right_span_is_found_however_the_evidence_spells_it(gold: str, text: str, title: str) -> None:
    assert bound(case(["Rome", "Rome", "Lyon"], text, title), [gold], any_span=True) == (False, True)


def test_roles_are_played_only_where_a_rule_asks_them_and_scores_where_they_matter() -> None:
    def only_where_the_two_readings_differ(one: Any) -> Steps:
        reply = yield "judge"
        choice, preferred = one.stated(reply), one.preferred(reply)
        return Choice("judge", preferred) if not one.same(choice, preferred) else Choice("consensus", one.consensus)

    question = Question("Q", "retrieval", ("Rome", "Rome", "Oslo"), (), (Passage("", "Oslo"),))
    for reading in PREFERENCE:
        answers = answers_over_any(only_where_the_two_readings_differ, Case(question, Settings(preference=reading)))
        assert ("Oslo" in answers) is (reading == "stratum")
    calls = list[tuple[Reply, ...]]()

    def stubborn(case: Case) -> Steps:
        first = yield "judge"
        repair = (yield "repairer") if isinstance(first, Abstention) else None
        again = yield "judge"
        assert again is first
        calls.append((first, *([] if repair is None else [repair])))
        return Choice("judge", str(len(calls)))

    none, zero, one, span = Abstention("none"), Verdict(0), Verdict(1), Repair("Oslo")
    replies: dict[Role, list[Reply]] = {"deriver": [none, span], "judge": [none, zero, one], "repairer": [none, span]}
    assert len([*outcomes(stubborn, case(["Doha"]), replies)]) == 4
    assert {*calls} == {(none, none), (none, span), (zero,), (one,)}


ARITHMETIC_RULES = ("support", "support(0)", "support(1)", "eldgr", "eldgr_certified", "near(1)", "judge", "majority")


def over_derivers(case: Case, rule: str, gold: str) -> tuple[bool, bool]:
    answers = answers_over_any(case.rule(rule), case, derivations=derivable(case, [gold]))
    return ends_of(answers, lambda answer: numeric_equal(answer, [gold]))


def pens(*answers: str | None, level: Strictness = "bounded") -> Case:
    """A question that reaches 5, 10 and 15."""
    return Case(Question("A box holds 5 pens. How many?", "arithmetic", answers), Settings(derivation=level))


@each_case("results", "what a deriver gives")
def test_a_deriver_gives_what_the_level_cannot_exclude(
    answers: list[str], level: Strictness, eldgr: object, support: object, near: object
) -> None:
    case = pens(*answers, level=level)
    results = [[*over_derivers(case, rule, "5")] for rule in ("eldgr", "support", "support(1)")]
    assert results == [eldgr, support, near]


def test_a_deriver_sways_what_is_within_reach_of_another_class() -> None:
    assert over_derivers(pens("15%", "15%", "7"), "eldgr", "15%") == (False, True)
    assert over_derivers(pens("5", "5"), "eldgr", "5") == (True, True)
    own = Case(pens("5", "5").question, Settings(homogeneous="repair"))
    assert over_derivers(own, "eldgr", "5") == (False, True)
    assert over_derivers(own, "support", "5") == (True, True)
    sways_ = [sways(case.rule("support"), case, "deriver") for case in (pens("5", "7"), pens("7", "5"), pens("5"))]
    assert sways_ == [False, True, False]


NUMBERS = st.sampled_from(("35", "36", "36%", "$36.00", "0.36", "12", "3,600", None))


@given(st.lists(NUMBERS, max_size=5), st.sampled_from(("36", "36%", "12")), st.data())
def test_the_papers_bound_is_the_range_over_all(answers: list[str | None], gold: str, data: st.DataObject) -> None:
    """There every number with a check passes, so that all derivations can be tried."""
    case = Case(Question("?", "arithmetic", tuple(answers)), Settings(derivation="stated"))
    texts = ["35", "36", "36%", "0.36", "12", "3600", "35%", "77", "1200%"]
    real: list[Reply] = [Abstention("silent"), *(Derivation((), answer, "given") for answer in texts)]
    verdicts: list[Reply] = [Abstention("no"), *(Verdict(i) for i, answer in enumerate(answers) if answer is not None)]
    for rule in ARITHMETIC_RULES:
        results = outcomes(case.rule(rule), case, {"judge": verdicts, "deriver": real})
        expected = ends_of(results, lambda answer: numeric_equal(answer, [gold]))
        assert over_derivers(case, rule, gold) == expected, rule


@given(st.data())
def test_no_derivation_that_passes_leaves_the_bound(data: st.DataObject) -> None:
    question = data.draw(testing.questions("arithmetic"))
    case = Case(question, data.draw(testing.rule_settings))
    derivation = data.draw(testing.derivations(question))
    gold = data.draw(st.sampled_from([derivation.answer, *filter(None, question.answers)]))
    for rule in ARITHMETIC_RULES:
        low, high = over_derivers(case, rule, gold)
        for answer in outcomes(case.rule(rule), case, {"deriver": [derivation]}):
            assert low <= numeric_equal(answer, [gold]) <= high, rule
