"""Every rule, and `decide`, does what Eq. 3 and Eq. 4 say on every pattern that it can tell apart."""

from collections import defaultdict
from itertools import product
from typing import Any

import pytest

from eldgr_dspy import decision
from tests.laws.patterns import EQ3, FARTHEST, MARKS, TARGETS, Pattern, Sweep, Target, patterns, pools, strings
from tests.laws.tried_counts import count

SWEEP = Sweep(decision)
N_PATTERNS = (35_428, 86_188, 154_228)
"""Where every class has as many votes as consensus, and where one may lack up to one or two."""


@pytest.mark.parametrize("farthest", [0, 1, 2])
def test_the_patterns_are_all_there_are(farthest: int) -> None:
    """By hand: of one, two and three candidates 3, 12 and 57 pools, and the pool in which nobody votes.

    One of two classes lacks 0 to f votes; of three, the third lacks at least what the second does. A judge of n
    candidates names two or none; a repair is missing, theirs, or new, three marks a class.
    """
    two, three = farthest + 1, (farthest + 1) * (farthest + 2) // 2
    sizes = [(0, 0, 1), (1, 1, 3), (2, 1, 3), (2, 2, 9 * two), (3, 1, 3), (3, 2, 27 * two), (3, 3, 27 * three)]
    assert len(set(pools(farthest))) == sum(number for _, _, number in sizes)
    by_hand = sum(number * (1 + n * n) * (1 + n + 3 * (k + 1)) for n, k, number in sizes)
    assert 4 * by_hand == N_PATTERNS[farthest] == len(patterns(farthest)) == len({*map(repr, patterns(farthest))})
    assert farthest or (len(set(pools())), sum(1 for _ in strings())) == (73, 296)


def test_every_pattern_of_the_three_certificates_is_among_them() -> None:
    """With m, s and r in classes of their own, and each of them in the class of each other."""

    def kinds(pattern: Pattern) -> tuple[Any, ...]:
        answers = (pattern.pool.consensus, pattern.preferred, pattern.proposal)
        groups = [answer.group if answer else None for answer in answers]
        return (len(set(groups)), *(pattern.mark(answer) for answer in answers))

    assert {(3, *marks) for marks in product(MARKS, repeat=3)} <= set(map(kinds, patterns()))
    assert set(EQ3) == set(product((0, 1), repeat=3))


@pytest.mark.parametrize("rule", [*TARGETS, "decide"])
def test_a_rule_does_what_its_table_says_lazily_and_always(rule: str) -> None:
    n_patterns = SWEEP.table() if rule == "decide" else SWEEP.rule(rule)
    assert n_patterns == (296 if rule == "decide" else N_PATTERNS[FARTHEST.get(rule, 0)])


@pytest.mark.law(
    "certified_consensus_is_final inapplicable_consensus_is_final override_needs_a_certificate"
    " certified_preference_outranks_repair repair_only_when_neither_is_certified default_is_consensus"
    " answer_is_consensus_preference_or_repair the_cases_partition lazy_equals_always"
    " failed_judge_equals_silent_judge unchecked_derivation_changes_nothing homogeneous_pools_consult_no_judge",
    "exhaustive",
)
def test_the_locked_rule_is_eq_3_and_eq_4_on_every_pattern() -> None:
    """These laws can be read off the tables, so that to be the tables is to keep them."""
    n_patterns = SWEEP.rule("eldgr")
    count(n_patterns)
    assert n_patterns == 35_428


@pytest.mark.parametrize("rule", list(TARGETS))
def test_a_role_is_asked_exactly_where_some_reply_of_it_changes_the_outcome(rule: str) -> None:
    """With the replies of the other role as they are: where the repair is what the judge prefers, the branch alone."""
    by_judge, by_offer = defaultdict[Any, list[Target]](list), defaultdict[Any, list[Target]](list)
    for pattern in patterns(FARTHEST.get(rule, 0)):
        outcome = SWEEP.drive(SWEEP.rules[rule], pattern)
        by_judge[pattern._replace(judge=None)].append(outcome)
        by_offer[pattern._replace(offer=None)].append(outcome)
    for several in by_judge.values():
        assert any("judge" in it.roles for it in several) == (len({it[:2] for it in several}) > 1)
    for several in by_offer.values():
        assert any({*it.roles} - {"judge"} for it in several) == (len({it[:2] for it in several}) > 1)
