"""The order of authority lists exactly the pairs that hold: proved for every question, and refuted on one where not."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, pairwise, permutations, product
from typing import Any

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy import decision, testing
from eldgr_dspy.figures.bounds import outcomes
from eldgr_dspy.laws.trials import SILENT
from eldgr_dspy.rule.authority_order import at_most, chains
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Reply, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.words import TASKS, Task
from tests.case_tables import tables_of
from tests.laws.patterns import NEW, Answer, Mark, Pattern, Sweep, patterns
from tests.laws.proving import Rules, refute
from tests.laws.symbolic import ARITHMETIC
from tests.public_strategies import quoting_questions

SWEEP, PROVING = Sweep(decision), Rules(decision)
RULES = ("first majority certified support(0) support(1) support eldgr eldgr_certified near(0) near(1) judge").split()

NEXT: Mapping[Task, Sequence[tuple[str, str]]] = tables_of("laws")["authority order"]
"""The order without what reflexivity and transitivity add; j is any number and k any that is not smaller."""


@pytest.mark.parametrize(("task", "narrow", "wide"), [(task, *pair) for task, pairs in NEXT.items() for pair in pairs])
def test_a_pair_is_proved_for_every_question(task: Task, narrow: str, wide: str) -> None:
    assert refute(PROVING.at_most(narrow, wide, ARITHMETIC if task == "arithmetic" else z3.Not(ARITHMETIC))) is None


@pytest.mark.parametrize("task", TASKS)
def test_the_list_is_the_closure_of_the_pairs_that_are_proved(task: Task) -> None:
    def number(rule: str) -> str:
        return rule.replace("(j)", "(0)").replace("(k)", "(1)")

    closure = {(number(one), number(other)) for one, other in NEXT[task]} | {(rule, rule) for rule in RULES}
    while new := {(a, d) for (a, b), (c, d) in product(closure, closure) if b == c} - closure:
        closure |= new
    assert {pair for pair in product(RULES, RULES) if at_most(*pair, task)} == closure


Reach = Mapping[str, frozenset[int | None]]
"""For each rule the classes that some judge and deriver make it ship; None stands for shipping no answer."""


@cache
def reaches() -> Sequence[tuple[Pattern, Reach]]:
    """Each question with one derivation that passes, or none, and without a repair; and how far LMs get."""
    results = list[tuple[Pattern, Reach]]()
    several = (one for one in patterns(2) if one.offer is None or (one.task == "arithmetic" and is_typical(*one.offer)))
    for _, group in groupby(several, key=lambda pattern: pattern[:3]):
        answers = defaultdict[Any, dict[str, set[int | None]]](lambda: defaultdict(set))
        members = list(group)
        for pattern, rule in product(members, RULES):
            answer: Answer | None = SWEEP.drive(SWEEP.rules[rule], pattern).answer
            answers[pattern.offer][rule].add(answer.group if answer else None)
        for offer, reach in answers.items():
            reached_by = {rule: frozenset(reach[rule] | answers[None][rule]) for rule in RULES}
            results.append((members[0]._replace(offer=offer), reached_by))
    return results


def is_typical(answer: Answer, mark: Mark) -> bool:
    """Whether it stands for all derivations whose answer is of the same class."""
    return answer.spelling == NEW and mark is True


def beyond(narrow: str, wide: str, task: Task) -> Iterator[Pattern]:
    """Questions on which LMs make the narrow rule ship what none make the wide one ship."""
    return (question for question, reach in reaches() if question.task == task and not reach[narrow] <= reach[wide])


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("narrow", "wide"), [*permutations(RULES, 2)])
def test_a_pair_is_listed_exactly_where_it_holds_on_every_pattern(narrow: str, wide: str, task: Task) -> None:
    exception = (narrow, wide) == ("first", "judge")  # the first candidate of a pattern votes
    assert at_most(narrow, wide, task) == (not any(beyond(narrow, wide, task)) and not exception)


def test_a_certified_class_and_a_first_candidate_that_does_not_vote_set_rules_apart() -> None:
    question = next(beyond("majority", "certified", "retrieval"))
    assert question.pool.marks[0] is False and True in question.pool.marks[1:]
    for refusal in (None, "I don't know"):
        case = Case(Question("?", "retrieval", (refusal, "Doha", "Dubai")), Settings(refusal="no_answer"))
        assert (reach(case, "first"), reach(case, "judge")) == ({refusal}, {"Doha", "Dubai"})


def reach(case: Case, rule: str, derivations: Sequence[Reply] = ()) -> set[str | None]:
    """What LMs make a rule ship; of a judge with scores, whoever it scores highest and whoever it prefers."""
    places = range(len(case.question.answers))
    extremes = (tuple(float(place == best) for place in places) for best in places)
    verdicts = [Verdict(place, scores) for scores in (None, *extremes) for place in places]
    return set(outcomes(case.rule(rule), case, {"judge": verdicts, "deriver": [SILENT, *derivations]}))


PAIRS = {task: [one for one in permutations((*RULES, "near(3)"), 2) if at_most(*one, task)] for task in TASKS}


@given(st.data())
def test_lms_of_the_wide_rule_ship_all_that_those_of_the_narrow_rule_can(data: st.DataObject) -> None:
    question = data.draw(testing.questions() | quoting_questions())
    case = Case(question, data.draw(testing.rule_settings))
    derivations = data.draw(st.lists(testing.derivations(question), max_size=2))
    pairs = PAIRS[case.task]
    ends = {rule: reach(case, rule, derivations) for pair in pairs for rule in pair}
    for narrow, wide in pairs:
        assert all(any(one == other or case.same(one, other) for other in ends[wide]) for one in ends[narrow])


NAMES = (*RULES, "near(7)", "near(10)", "support(7)", "own:one", "own:two")


@given(st.lists(st.sampled_from(NAMES)), st.sampled_from(TASKS))
def test_the_fewest_chains_go_from_narrow_to_wide_and_have_each_rule_but_majority_once(
    rules: list[str], task: Task
) -> None:
    lines = chains(rules, task)
    assert sorted(rule for chain in lines for rule in chain) == sorted(set(rules) - {"majority"})
    for chain in lines:
        assert all(at_most(narrow, wide, task) for narrow, wide in pairwise(chain))
    assert lines == chains(reversed(rules), task)
    widest = [chain[-1] for chain in lines]  # they are not comparable, so that no fewer cover the rules
    assert not any(at_most(one, other, task) for one, other in permutations(widest, 2))


def test_the_rules_that_a_judge_takes_part_in_are_one_chain_and_one_of_the_user_s_stands_alone() -> None:
    rules = "judge own:cautious near(10) eldgr_certified near(2) first majority eldgr certified".split()
    line = ["certified", "eldgr", "eldgr_certified", "near(2)", "near(10)", "judge"]
    assert chains(rules) == [line, ["first"], ["own:cautious"]]
    assert chains(rules, "arithmetic") == [line[:-1], ["first"], ["judge"], ["own:cautious"]]
    assert at_most("own:one", "own:one")
    assert not any(at_most("own:one", rule) or at_most(rule, "own:one") for rule in (*RULES, "own:two"))
