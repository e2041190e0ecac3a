"""Every rule, and `decide`, does what Eq. 3 and Eq. 4 say on every pattern that it can tell apart."""

from collections import defaultdict
from collections.abc import Hashable, Mapping
from itertools import product
from typing import Any

import pytest

from eldgr_dspy import decision
from eldgr_dspy.words import Role
from tests.laws.patterns import EQ3, EXPECTED, FARTHEST, MARKS, Checked, Pattern, patterns, pools, strings
from tests.laws.tried_counts import tried

SHIPPED = Checked(decision)


def test_the_patterns_are_all_there_are() -> None:
    """Counted by hand: of one, two and three candidates 3, 12 and 57 pools, and the pool in which nobody votes."""
    assert len(set(pools())) == 1 + 3 + (3 + 9) + (3 + 3 * 9 + 27) == 73
    # n candidates of k classes: a judge names two or none; a repair is missing, theirs, or new, three marks a class.
    sizes = [(0, 0, 1), (1, 1, 3), (2, 1, 3), (2, 2, 9), (3, 1, 3), (3, 2, 27), (3, 3, 27)]
    by_hand = sum(number * (1 + n * n) * (1 + n + 3 * (k + 1)) for n, k, number in sizes)
    assert len({repr(pattern) for pattern in patterns()}) == 4 * by_hand == 35_428
    assert sum(1 for _ in strings()) == 296


N_PATTERNS = (35_428, 86_188, 154_228)
"""Where every class has as many votes as consensus, and where one may lack up to one or two."""


@pytest.mark.parametrize("farthest", [0, 1, 2])
def test_the_patterns_of_votes_are_all_there_are(farthest: int) -> None:
    """One of two classes lacks 0 to f votes; of three, the third lacks at least what the second does."""
    two, three = farthest + 1, (farthest + 1) * (farthest + 2) // 2
    sizes = [(0, 0, 1), (1, 1, 3), (2, 1, 3), (2, 2, 9 * two), (3, 1, 3), (3, 2, 27 * two), (3, 3, 27 * three)]
    by_hand = sum(number * (1 + n * n) * (1 + n + 3 * (k + 1)) for n, k, number in sizes)
    assert 4 * by_hand == N_PATTERNS[farthest] == len(patterns(farthest))


def test_every_pattern_of_the_three_certificates_is_among_them() -> None:
    """With m, s and r in classes of their own, and each of them in the class of each other."""

    def kinds(pattern: Pattern) -> tuple[Any, ...]:
        answers = (pattern.pool.consensus, pattern.preferred, pattern.offered)
        groups = [answer.group if answer else None for answer in answers]
        return (len(set(groups)), *(pattern.mark(answer) for answer in answers))

    assert {(3, *marks) for marks in product(MARKS, repeat=3)} <= set(map(kinds, patterns()))
    assert set(EQ3) == set(product((0, 1), repeat=3))


@pytest.mark.parametrize("rule", list(EXPECTED))
def test_a_rule_does_what_its_table_says_lazily_and_always(rule: str) -> None:
    assert SHIPPED.rule(rule) == N_PATTERNS[FARTHEST.get(rule, 0)]


@pytest.mark.law(
    "certified_consensus_is_final inapplicable_consensus_is_final override_needs_a_certificate"
    " certified_preference_outranks_repair repair_only_when_neither_is_certified default_is_consensus"
    " answer_is_consensus_preference_or_repair the_cases_partition lazy_equals_always"
    " failed_judge_equals_silent_judge unchecked_derivation_changes_nothing homogeneous_pools_consult_no_judge",
    "exhaustive",
)
def test_the_locked_rule_is_eq_3_and_eq_4_on_every_pattern() -> None:
    """These laws can be read off the tables, so that to be the tables is to keep them."""
    n_patterns = SHIPPED.rule("eldgr")
    tried(n_patterns)
    assert n_patterns == 35_428


def test_decide_is_eq_3_on_every_pattern_of_three_strings() -> None:
    assert SHIPPED.table() == 296


Outcomes = Mapping[tuple[Hashable, Hashable], Any]


def by_question(rule: str) -> Mapping[Hashable, Outcomes]:
    """For each question, what the rule does on each pair of replies of the judge and of the other role."""
    outcomes_of: dict[Hashable, dict[tuple[Hashable, Hashable], Any]] = defaultdict(dict)
    for pattern in patterns(FARTHEST.get(rule, 0)):
        question = (pattern.task, pattern.repairable, pattern.pool)
        outcomes_of[question][pattern.judge, pattern.offer] = SHIPPED.drive(SHIPPED.rules[rule], pattern)
    return outcomes_of


def outcomes(outcomes: Outcomes, *, judge: Any = ..., offer: Any = ...) -> set[Any]:
    """The branches and answers that replies lead to, where one of them is given."""
    return {it[:2] for (j, o), it in outcomes.items() if judge in (..., j) and offer in (..., o)}


@pytest.mark.parametrize("rule", list(EXPECTED))
def test_a_role_is_asked_exactly_where_some_reply_of_it_changes_the_outcome(rule: str) -> None:
    """With the replies of the other role as they are: where the repair is what the judge prefers, the branch alone."""
    for outcomes_of in by_question(rule).values():
        judges, offers = {judge for judge, _ in outcomes_of}, {offer for _, offer in outcomes_of}
        for offer in offers:
            roles: set[Role] = {role for (_, o), it in outcomes_of.items() if o == offer for role in it.asked}
            assert ("judge" in roles) == (len(outcomes(outcomes_of, offer=offer)) > 1)
        for judge in judges:
            roles = {role for (j, _), it in outcomes_of.items() if j == judge for role in it.asked}
            assert bool(roles - {"judge"}) == (len(outcomes(outcomes_of, judge=judge)) > 1)
