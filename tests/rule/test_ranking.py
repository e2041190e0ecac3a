"""The rank of a pool is lexicographic: support, then consensus, then score, then position."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.rule.ranking import rank

Candidate = tuple[bool, bool, float | None]
candidates = st.lists(st.tuples(st.booleans(), st.booleans(), st.none() | st.floats(0, 1)), max_size=6)


def ranked(pool: list[Candidate]) -> tuple[int, ...]:
    return rank([one[0] for one in pool], [one[1] for one in pool], [one[2] for one in pool])


def test_an_empty_pool_has_an_empty_rank() -> None:
    assert rank([], []) == ()


FIRST = {
    "a supported candidate comes before any other": [(False, False, 1.0), (True, False, 0.0)],
    "among the supported consensus comes before a better score": [(True, False, 1.0), (True, True, 0.0)],
    "the higher score comes first and zero is a score": [(True, False, 0.0), (True, False, 0.5)],
    "an undefined score comes after every defined one": [(True, False, None), (True, False, 0.0)],
}


@pytest.mark.parametrize("pool", FIRST.values(), ids=FIRST)
def test_the_second_comes_first_for(pool: list[Candidate]) -> None:
    assert ranked(pool) == (1, 0)


def test_among_the_unsupported_consensus_counts_for_nothing() -> None:
    assert ranked([(False, False, 0.5), (False, True, 0.4)]) == (0, 1)


def test_without_scores_the_position_decides_last() -> None:
    assert rank([True, True, False, True], [False, True, False, False]) == (1, 0, 3, 2)


@given(candidates)
def test_a_score_never_moves_a_candidate_across_strata(pool: list[Candidate]) -> None:
    order = ranked(pool)
    assert sorted(order) == list(range(len(pool)))
    strata = [(pool[index][0], pool[index][0] and pool[index][1]) for index in order]
    assert strata == sorted(strata, reverse=True)


@given(candidates)
def test_equal_candidates_keep_their_order(pool: list[Candidate]) -> None:
    order = ranked(pool)
    for before, after in pairwise(order):
        assert pool[before] != pool[after] or before < after
