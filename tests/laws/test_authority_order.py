"""The order of authority lists exactly the pairs that hold: proved for every question, and refuted on one where not."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, pairwise, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy import decision, strategies
from eldgr_dspy.authority_order import at_most, chains
from eldgr_dspy.cases import Case
from eldgr_dspy.consultations import Verdict
from eldgr_dspy.figures.bounds import outcomes
from eldgr_dspy.questions import Question, Settings
from tests.laws.patterns import Answer, Checked, Pattern, patterns
from tests.laws.proving import Rules, refute
from tests.strategies import quoting_questions

SHIPPED, PROVING = Checked(decision), Rules(decision)
BOUNDED = ("first", "majority", "certified", "eldgr", "eldgr_certified", "near(0)", "near(1)", "judge")

NEXT = [
    ("majority", "eldgr"), ("certified", "eldgr"), ("eldgr", "eldgr_certified"), ("eldgr_certified", "eldgr"),
    ("eldgr", "near(j)"), ("near(j)", "near(k)"), ("near(k)", "judge"),
]  # fmt: skip
"""The order without what reflexivity and transitivity add; j is any number and k any that is not smaller."""


@pytest.mark.parametrize(("narrow", "wide"), NEXT)
def test_a_pair_is_proved_for_every_question(narrow: str, wide: str) -> None:
    assert refute(PROVING.at_most(narrow, wide)) is None


def test_the_list_is_the_closure_of_the_pairs_that_are_proved() -> None:
    near = {"near(j)": "near(0)", "near(k)": "near(1)"}
    closure = {(near.get(one, one), near.get(other, other)) for one, other in NEXT} | {(rule, rule) for rule in BOUNDED}
    while found := {(a, d) for (a, b), (c, d) in product(closure, closure) if b == c} - closure:
        closure |= found
    assert {pair for pair in product(BOUNDED, BOUNDED) if at_most(*pair)} == closure


# --- on every pattern -------------------------------------------------------------------------------------------------

Reach = Mapping[str, frozenset[int | None]]
"""For each rule the classes that some judge makes it ship; None stands for shipping no answer."""


@cache
def reaches() -> Sequence[tuple[Pattern, Reach]]:
    """Each question without a reply of repairer or deriver, and how far a judge gets."""
    return tuple(_reaches())


def _reaches() -> Iterator[tuple[Pattern, Reach]]:
    silent = (pattern for pattern in patterns(2) if pattern.offer is None)
    for _, replied in groupby(silent, key=lambda pattern: pattern[:3]):
        judged = list(replied)
        yield judged[0], {rule: frozenset(_class(rule, pattern) for pattern in judged) for rule in BOUNDED}


def _class(rule: str, pattern: Pattern) -> int | None:
    answer: Answer | None = SHIPPED.drive(SHIPPED.rules[rule], pattern).answer
    return answer.group if answer else None


def beyond(narrow: str, wide: str) -> Iterator[Pattern]:
    """Questions on which a judge makes the narrow rule ship what none makes the wide one ship."""
    return (question for question, reach in reaches() if not reach[narrow] <= reach[wide])


@pytest.mark.parametrize(("narrow", "wide"), [*permutations(BOUNDED, 2)])
def test_a_pair_is_listed_exactly_where_it_holds_on_every_pattern(narrow: str, wide: str) -> None:
    exception = (narrow, wide) == ("first", "judge")  # the first candidate of a pattern votes
    assert at_most(narrow, wide) == (not any(beyond(narrow, wide)) and not exception)


def test_majority_is_not_at_most_certified_majority_where_another_class_is_certified() -> None:
    question = next(beyond("majority", "certified"))
    assert question.pool.marks[0] is False
    assert True in question.pool.marks[1:]


@pytest.mark.parametrize("refusal", [None, "I don't know"])
def test_the_first_candidate_ships_what_no_judge_can_where_it_does_not_vote(refusal: str | None) -> None:
    case = Case(Question("?", "retrieval", (refusal, "Doha", "Dubai")), Settings(refusal="no_answer"))
    assert reach(case, "first") == {refusal}
    assert reach(case, "judge") == {"Doha", "Dubai"}


# --- on text ----------------------------------------------------------------------------------------------------------


def reach(case: Case, rule: str) -> set[str | None]:
    """What some judge makes a rule ship; of a judge with scores, whoever it scores highest and whoever it prefers."""
    places = range(len(case.question.answers))
    scored = (tuple(float(place == best) for place in places) for best in places)
    verdicts = [Verdict(place, scores) for scores in (None, *scored) for place in places]
    return set(outcomes(case.rule(rule), case, {"judge": verdicts}))


LISTED = [pair for pair in permutations((*BOUNDED, "near(3)"), 2) if at_most(*pair)]


@given(st.data())
def test_a_judge_of_the_wide_rule_ships_all_that_one_of_the_narrow_rule_can(data: st.DataObject) -> None:
    question = data.draw(strategies.questions() | quoting_questions())
    case = Case(question, data.draw(strategies.rule_settings))
    reached = {rule: reach(case, rule) for pair in LISTED for rule in pair}
    for narrow, wide in LISTED:
        assert all(any(one == other or case.same(one, other) for other in reached[wide]) for one in reached[narrow])


# --- chains -----------------------------------------------------------------------------------------------------------

NAMES = (*BOUNDED, "near(7)", "near(10)", "own:one", "own:two")


@given(st.lists(st.sampled_from(NAMES)))
def test_chains_go_from_narrow_to_wide_and_have_each_rule_but_majority_once(rules: list[str]) -> None:
    found = chains(rules)
    assert sorted(rule for chain in found for rule in chain) == sorted(set(rules) - {"majority"})
    for chain in found:
        assert all(at_most(narrow, wide) for narrow, wide in pairwise(chain))
    assert found == chains(reversed(rules))


@given(st.lists(st.sampled_from(NAMES)))
def test_no_fewer_chains_cover_the_rules(rules: list[str]) -> None:
    """Of each chain one rule can be taken so that no two of them are comparable."""
    taken = [chain[0] for chain in chains(rules)]
    assert not any(at_most(one, other) for one, other in permutations(taken, 2))


def test_the_rules_that_a_judge_takes_part_in_are_one_chain() -> None:
    rules = [
        "judge",
        "own:cautious",
        "near(10)",
        "eldgr_certified",
        "near(2)",
        "first",
        "majority",
        "eldgr",
        "certified",
    ]
    line = ["certified", "eldgr", "eldgr_certified", "near(2)", "near(10)", "judge"]
    assert chains(rules) == [line, ["first"], ["own:cautious"]]


def test_of_a_rule_of_the_user_s_nothing_is_listed_but_itself() -> None:
    assert at_most("own:one", "own:one")
    assert not any(at_most("own:one", rule) or at_most(rule, "own:one") for rule in (*BOUNDED, "own:two"))
