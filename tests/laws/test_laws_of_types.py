"""Every built-in answer type keeps the laws on classes, certificates and scores; a type with a slip breaks one."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy import Selector
from eldgr_dspy.answer_types import BUILT_IN, load_type
from eldgr_dspy.answer_types.base import AnswerType
from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import RULES
from eldgr_dspy.figures.authority import pool_authority
from eldgr_dspy.formats.rows import validate
from eldgr_dspy.laws import LawBroken
from eldgr_dspy.laws.of_types import LAWS_OF_TYPES, laws_of_type
from eldgr_dspy.laws.trials import Subject, Trial, require_laws
from eldgr_dspy.programs.testing import check_selector
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.tables.plan_tables import authority_table
from eldgr_dspy.testing import check_answer_type, check_laws, consultations
from tests.dates import YEARS, Sums
from tests.laws.slips_of_types import SLIPS, Contradiction, Names, OneWay, Veto
from tests.refusing import refusal, says

KINDS = tuple({kind.name: kind for kind in BUILT_IN.values()}.values())
by_name = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def raw_trials(kind: AnswerType) -> st.SearchStrategy[Trial]:
    """Pools of any texts at all, with their answers in the evidence or not."""

    def trial(answers: list[str | None], passages: list[str]) -> Trial:
        texts = [*passages, *(f"It is {answer}." for answer in answers[:2])]
        evidence = tuple(Passage("", text) for text in texts)
        question = Question("?", kind.name, (*answers,), (), evidence[1:], kind.example_options, kind)
        return Trial(question, gold=answers[0] or "", more=evidence[:1])

    texts = st.lists(st.none() | st.text(), min_size=1, max_size=4)
    return st.builds(trial, texts, st.lists(st.text(), max_size=2))


of_any_type = st.sampled_from(KINDS).flatmap(lambda kind: consultations(kind) | raw_trials(kind))


@pytest.mark.law(
    "a_type_repeats_itself no_answer_has_no_class candidate_order_changes_no_class"
    " other_candidates_change_no_class a_candidate_is_of_its_class a_certificate_is_of_a_class"
    " a_spelling_changes_no_certificate evidence_order_and_duplicates_do_not_matter"
    " more_evidence_never_uncertifies a_gold_answer_is_right a_score_says_what_is_right",
    "property",
)
@settings(max_examples=2 * settings().max_examples)
@given(of_any_type)
def test_a_built_in_type_keeps_the_laws_that_it_does_not_give_up(trial: Trial) -> None:
    require_laws(laws_of_type(trial.question.type, LAWS_OF_TYPES), Subject(RULES["majority"]).settle(trial))


@by_name
def test_the_kit_tries_every_law_on_a_built_in_type_its_rule_and_its_selector(kind: AnswerType) -> None:
    counts = check_answer_type(kind, max_examples=30)
    by_derivation = {"more_evidence_never_uncertifies"} if kind.way == "derivation" else set[str]()
    of_pools = {"other_candidates_change_no_class"} if kind.pooled else set[str]()
    assert {law for law, n in counts.items() if not n} <= by_derivation | of_pools | {*kind.gives_up}
    assert check_laws(answer=kind, max_examples=5)["the_cases_partition"] > 100
    assert check_selector(Selector(answer=kind), max_examples=1)["override_needs_a_certificate"] > 0


@pytest.mark.parametrize("kind", [YEARS, Sums(), Names()], ids=lambda kind: type(kind).__name__)
def test_a_type_of_your_own_is_checked_with_its_examples(kind: AnswerType) -> None:
    without = ["a_spelling_changes_no_certificate"]  # of years the evidence certifies the text
    assert check_answer_type(kind, without=without, max_examples=10)["candidate_order_changes_no_class"] > 50
    counts = check_selector(Selector(answer=kind), max_examples=1)
    assert counts["override_needs_a_certificate"] > 0 or kind.way == "derivation"


@pytest.mark.parametrize("slip", SLIPS)
def test_a_type_with_a_slip_breaks_the_law_on_it(slip: str) -> None:
    law, kind = SLIPS[slip]
    with pytest.raises(LawBroken) as info:
        check_answer_type(kind, without=[other.name for other in LAWS_OF_TYPES if other.name != law])
    assert info.value.law.name == law


def test_a_law_that_is_given_up_is_not_tried_of_type_or_selector_and_counts_zero() -> None:
    (law,) = Contradiction.gives_up
    with pytest.raises(LawBroken):
        check_laws(answer=Veto(), laws=[law], max_examples=1)
    assert check_answer_type(Contradiction(), max_examples=1)[law] == 0
    assert check_laws(answer=Contradiction(), max_examples=1)[law] == 0
    free: Any = type("Free", (Names,), {"gives_up": ("override_needs_a_certificate",)})()
    assert check_selector(Selector(answer=free), max_examples=1)["override_needs_a_certificate"] == 0


@pytest.mark.parametrize("name", ["no_such_law", "a_type_repeats_itself"])
def test_a_type_cannot_give_up_everything_and_its_relation_must_be_symmetric(name: str) -> None:
    free: Any = type("Free", (Names,), {"gives_up": (name,)})()
    message = f"...names.gives_up: '{name}' is not a law that a type may give up; ..."
    assert says(message, refusal(lambda: check_answer_type(free)))
    assert says(message, refusal(lambda: check_laws(answer=free)))
    assert says(message, refusal(lambda: check_selector(Selector(answer=free))))
    one_way = "...forgets.alike must be symmetric; alike('Paris', 'Lyon') is False..."
    assert says(one_way, refusal(lambda: check_answer_type(OneWay(), max_examples=1)))


def test_what_a_type_gives_up_is_stated_of_it_and_with_its_bounds_and_no_span_is_bounded_without_spans() -> None:
    kind = load_type("tests.laws.slips_of_types:Contradiction")
    assert kind.to_json()["gives_up"] == ["more_evidence_never_uncertifies"]
    pool = pool_authority([], kind.name)
    assert pool.get("gives_up") == ["more_evidence_never_uncertifies"]
    assert "gives up more_evidence_never_uncertifies" in authority_table("pool", pool).notes[-1]
    assert pool_authority([], "short").get("gives_up") == []
    record = {"id": "q", "question": "?", "task": "choice", "options": ["Doha", "Dubai"], "gold": ["A"]}
    row = validate({**record, "candidates": [{"answer": "B"}, {"answer": "A"}], "evidence": [{"text": "Doha"}]}, "row")
    pool = pool_authority([row], "choice")
    assert (pool["bounds"]["eldgr"], pool["bounds_any_span"]["eldgr"]) == ([0.0, 100.0], None)
