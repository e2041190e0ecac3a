"""A vote counts candidates by class: who votes together, which class wins, and what could not be told for certain."""

import pytest

from eldgr_dspy.rule.voting import majority


def test_candidates_vote_together_by_class_in_pool_order() -> None:
    vote = majority(["Lyon", "The Paris", None, "paris."], "retrieval")
    assert (vote.classes, vote.winner, vote.tie) == (("lyon", "paris", None, "paris"), "paris", False)


def test_the_task_says_what_votes_together() -> None:
    answers = ["1/2", "0.5", "7"]
    assert majority(answers, "arithmetic").n_classes == 2
    assert majority(answers, "retrieval").n_classes == 3


@pytest.mark.parametrize(
    ("answers", "winner", "tie"),
    [
        (["Lyon", "Paris", "paris", "lyon"], "lyon", True),  # hazard 8
        ([None, "d", "c", "b", "a"], "d", True),  # hazard 9
        (["Lyon", "Paris", "paris"], "paris", False),
        (["Lyon", "Paris", "Bonn", "paris"], "paris", False),
        (["Lyon"], "lyon", False),
        (["Lyon", None, None, None], "lyon", False),
    ],
)
def test_the_most_votes_win_and_of_as_many_the_earliest(answers: list[str | None], winner: str, tie: bool) -> None:
    vote = majority(answers, "retrieval")
    assert (vote.winner, vote.tie) == (winner, tie)


@pytest.mark.parametrize("answers", [[], [None], ["", " \u200b"]], ids=["empty", "none", "invisible"])
def test_nobody_wins_where_nobody_votes(answers: list[str | None]) -> None:  # hazards 1, 5
    vote = majority(answers, "retrieval")
    assert (vote.classes, vote.winner, vote.tie, vote.n_classes) == ((None,) * len(answers), None, False, 0)


def test_candidates_without_an_answer_form_no_class() -> None:
    assert majority(["Lyon", None, "lyon", "Paris"], "retrieval").n_classes == 2


def test_what_could_not_be_told_is_noted_once_a_spelling_beside_who_has_no_answer() -> None:  # hazards 6, 16, 18
    vote = majority([None, "1,5", "1,5", "$5", "Paris", ""], "arithmetic")
    assert vote.notes == (
        "2 of 6 candidates have no answer",
        "'1,5': ambiguous decimal comma",
        "'$5': currency sign dropped",
    )
    assert majority([None], "retrieval").notes == ("1 of 1 candidates have no answer",)
    assert majority(["Paris"], "retrieval").notes == ()


def test_a_noted_answer_is_cut_at_sixty_characters() -> None:
    (note,) = majority(["1,5 " + "x" * 100], "retrieval").notes
    assert note == f"'1,5 {'x' * 55}: ambiguous decimal comma"
