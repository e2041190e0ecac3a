"""A vote counts candidates by class, a rank is lexicographic, and pairs never reject a right answer for a wrong one."""

from collections import Counter
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.rule.preferences import Preferences, preferences, taken_apart
from eldgr_dspy.rule.ranking import rank
from eldgr_dspy.rule.voting import majority
from tests.case_tables import each_case
from tests.rule.keys import cases


def test_candidates_vote_by_class_and_what_could_not_be_told_is_noted() -> None:
    vote = majority(["Lyon", "The Paris", None, "paris."], "retrieval")
    assert (vote.classes, vote.winner, vote.tie) == (("lyon", "paris", None, "paris"), "paris", False)
    answers = ["1/2", "0.5", "7"]
    assert majority(answers, "arithmetic").n_classes == 2
    assert majority(answers, "retrieval").n_classes == 3
    assert majority(["Lyon", None, "lyon", "Paris"], "retrieval").n_classes == 2
    vote = majority([None, "1,5", "1,5", "$5", "Paris", ""], "arithmetic")  # hazards 6, 16, 18
    expected = ("2 of 6 candidates have no answer", "'1,5': ambiguous decimal comma", "'$5': currency sign dropped")
    assert vote.notes == expected
    assert majority([None], "retrieval").notes == ("1 of 1 candidates have no answer",)
    assert majority(["Paris"], "retrieval").notes == ()
    (note,) = majority(["1,5 " + "x" * 100], "retrieval").notes
    assert note == f"'1,5 {'x' * 55}: ambiguous decimal comma"


# hazards 8, 9
@pytest.mark.parametrize(("answers", "winner", "tie"), cases("winners"))
def test_the_most_votes_win_and_of_as_many_the_earliest(answers: list[str | None], winner: str, tie: bool) -> None:
    vote = majority(answers, "retrieval")
    assert (vote.winner, vote.tie) == (winner, tie)


@pytest.mark.parametrize("answers", [[], [None], ["", " \u200b"]], ids=["empty", "none", "invisible"])
def test_nobody_wins_where_nobody_votes(answers: list[str | None]) -> None:  # hazards 1, 5
    vote = majority(answers, "retrieval")
    assert (vote.classes, vote.winner, vote.tie, vote.n_classes) == ((None,) * len(answers), None, False, 0)


Candidate = tuple[bool, bool, float | None]
candidates = st.lists(st.tuples(st.booleans(), st.booleans(), st.none() | st.floats(0, 1)), max_size=6)


def ranks(pool: list[Candidate]) -> tuple[int, ...]:
    return rank([one[0] for one in pool], [one[1] for one in pool], [one[2] for one in pool])


def test_without_scores_or_support_the_position_decides_last() -> None:
    assert rank([], []) == ()
    assert ranks([(False, False, 0.5), (False, True, 0.4)]) == (0, 1)
    assert rank([True, True, False, True], [False, True, False, False]) == (1, 0, 3, 2)


FIRST = {
    "a supported candidate comes before any other": [(False, False, 1.0), (True, False, 0.0)],
    "among the supported consensus comes before a better score": [(True, False, 1.0), (True, True, 0.0)],
    "the higher score comes first and zero is a score": [(True, False, 0.0), (True, False, 0.5)],
    "an undefined score comes after every defined one": [(True, False, None), (True, False, 0.0)],
}


@pytest.mark.parametrize("pool", FIRST.values(), ids=FIRST)
def test_the_second_comes_first_for(pool: list[Candidate]) -> None:
    assert ranks(pool) == (1, 0)


@given(candidates)
def test_a_score_moves_no_candidate_across_strata_and_equal_ones_keep_their_order(pool: list[Candidate]) -> None:
    order = ranks(pool)
    assert sorted(order) == list(range(len(pool)))
    strata = [(pool[index][0], pool[index][0] and pool[index][1]) for index in order]
    assert strata == sorted(strata, reverse=True)
    order = ranks(pool)
    for before, after in pairwise(order):
        assert pool[before] != pool[after] or before < after


class Draw(NamedTuple):
    """A pool of one question, an entry a candidate."""

    classes: list[str | None]
    texts: list[str]
    upper: list[bool | None]
    right: list[bool]


@st.composite
def draws(draw: st.DrawFn, texts: str = "pqr") -> Draw:
    """Candidates whose part and rightness are those of their class, as certificates and scores are."""
    classes = draw(st.lists(st.sampled_from([None, "a", "b", "c", "d"]), max_size=8))
    part = {key: draw(st.sampled_from([True, False, None])) for key in (None, *"abcd")}
    right = {key: draw(st.booleans()) for key in (None, *"abcd")}
    replies = [draw(st.sampled_from(texts)) for _ in classes]
    return Draw(classes, replies, [part[key] for key in classes], [right[key] for key in classes])


def distinct(pool: Draw) -> Draw:
    """The same pool with a text of its own for each candidate."""
    return pool._replace(texts=[f"text {number}" for number in range(len(pool.classes))])


@given(draws(), st.integers(1, 20))
def test_pairs_are_of_two_parts_none_rejects_a_right_answer_and_more_begin_with_fewer(pool: Draw, most: int) -> None:
    result = preferences(*pool, most=most)
    assert len(result.pairs) == len(set(result.pairs)) <= most
    for winner, loser in result.pairs:
        assert pool.upper[winner] is True and pool.upper[loser] is False
        assert pool.classes[winner] is not None and pool.classes[loser] is not None
        assert pool.texts[winner] != pool.texts[loser]
        assert pool.right[winner] or not pool.right[loser]
    result = preferences(*pool, most=most)
    apart = taken_apart(result, pool.right)
    assert apart.outcome == result.outcome and apart.pairs[:1] == result.pairs[:1]
    assert set(apart.pairs) <= set(result.pairs)
    assert apart.dropped - result.dropped == len(result.pairs) - len(apart.pairs)
    assert all(pool.right[winner] or not pool.right[other] for winner, _ in apart.pairs for _, other in apart.pairs)
    fewer, more = (preferences(*pool, most=n).pairs for n in (most, most + 1))
    assert more[:most] == fewer


@given(draws())
def test_without_a_limit_every_pair_of_the_parts_is_written_or_dropped(pool: Draw) -> None:
    pool = distinct(pool)
    voters = [index for index, key in enumerate(pool.classes) if key is not None]
    of_parts = {(i, j) for i in voters for j in voters if pool.upper[i] is True and pool.upper[j] is False}
    pairs = {(i, j) for i, j in of_parts if pool.right[i] or not pool.right[j]}
    result = preferences(*pool, most=100)
    assert set(result.pairs) == pairs and result.dropped == len(of_parts) - len(pairs)


@given(draws().map(distinct).flatmap(lambda pool: st.tuples(st.just(pool), st.permutations(range(len(pool.classes))))))
def test_the_order_of_candidates_changes_which_answers_are_paired_only_in_ties(values: tuple[Draw, list[int]]) -> None:
    pool, order = values
    columns: Any = pool
    other = Draw(*([column[at] for at in order] for column in columns))
    result, again = preferences(*pool), preferences(*other)
    assert result.outcome == again.outcome
    votes = Counter(key for key in pool.classes if key is not None)
    if len(set(votes.values())) == len(votes):
        assert (answers(pool, result), result.dropped) == (answers(other, again), again.dropped)


def answers(pool: Draw, result: Preferences) -> list[tuple[str | None, str | None]]:
    return [(pool.classes[winner], pool.classes[loser]) for winner, loser in result.pairs]


@each_case("rule", "preferences of one question")
def test_one_question(
    classes: list[str | None], upper: list[bool | None], right: list[bool] | None, expected: Any
) -> None:
    pairs = tuple(map(tuple, expected.get("pairs", ())))
    result = preferences(classes, [f"text {n}" for n in range(len(classes))], upper, right)
    assert result == Preferences(expected["outcome"], pairs, expected.get("dropped", 0))


def test_further_pairs_follow_by_their_places_and_contradictions_are_dropped() -> None:
    classes, upper = ["a", "a", "a", "b", "b"], [True] * 3 + [False] * 2
    result = preferences(classes, list("vwxyz"), upper, most=5)
    assert result.pairs == ((0, 3), (0, 4), (1, 3), (1, 4), (2, 3))
    result = preferences(["a", "a", "b", "b", "b"], list("ppqpq"), [True, True, False, False, False], most=10)
    assert result == Preferences("paired", ((0, 2),))
    assert preferences(["a", "b"], ["same", "same"], [True, False]) == Preferences("no_rejected")
    result = Preferences("paired", ((0, 1), (2, 3), (0, 3)))
    assert taken_apart(result, [True, True, False, False]) == Preferences("paired", ((0, 1), (0, 3)), 1)
    assert taken_apart(result, [True, False, False, False]) == result
