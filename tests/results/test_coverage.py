"""A risk–coverage curve is the share of errors among the most trusted, and ends at what accuracy lacks of 100."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.figures.coverage import MOST_POINTS, Confidence, risk_coverage
from tests.results.audited import RETRIEVAL, Asked, figures, retrieval

decided = st.lists(st.tuples(st.tuples(st.booleans(), st.sampled_from((0.0, 0.25, 0.5, 1.0))), st.booleans()))


def test_the_certified_come_first_and_among_them_those_with_more_votes() -> None:
    questions: list[tuple[Confidence, bool]] = [
        ((False, 1.0), False),
        ((True, 0.5), True),
        ((True, 0.75), False),
        ((True, 0.5), False),
        ((False, 1.0), True),
    ]
    assert risk_coverage(questions) == [[20.0, 100.0], [60.0, pytest.approx(200 / 3)], [100.0, 60.0]]


def test_without_questions_there_is_no_curve() -> None:
    assert risk_coverage([]) == []


@given(decided)
@example([((True, 1.0), True)])
def test_a_curve_rises_to_all_questions_and_ends_at_the_error_of_all(
    questions: list[tuple[Confidence, bool]],
) -> None:
    points = risk_coverage(questions)
    assert len(points) == len({confidence for confidence, _ in questions})
    assert [point[0] for point in points] == sorted({point[0] for point in points})
    if questions:
        right = sum(right for _, right in questions)
        assert points[-1] == [100.0, pytest.approx(100.0 - 100.0 * right / len(questions))]
    assert points == risk_coverage(questions[::-1])


@given(decided)
def test_a_point_is_the_error_of_the_questions_trusted_at_least_so_much(
    questions: list[tuple[Confidence, bool]],
) -> None:
    for (coverage, risk), confidence in zip(
        risk_coverage(questions), sorted({one for one, _ in questions}, reverse=True), strict=True
    ):
        trusted = [right for one, right in questions if one >= confidence]
        assert coverage == pytest.approx(100 * len(trusted) / len(questions))
        assert risk == pytest.approx(100 * trusted.count(False) / len(trusted))


@pytest.mark.parametrize("n", [1, 99, 100, 101, 250, 1_000])
def test_a_curve_has_at_most_a_hundred_points_and_never_lacks_its_end(n: int) -> None:
    points = risk_coverage(((True, number / n), number % 4 == 0) for number in range(n))
    assert min(n, MOST_POINTS // 2) <= len(points) <= min(n, MOST_POINTS)
    assert points[-1][0] == 100.0


def test_every_rule_has_a_curve_that_ends_at_its_own_error() -> None:
    found = figures("retrieval", RETRIEVAL)
    for rule, points in found["risk_coverage"].items():
        assert points[-1] == [100.0, pytest.approx(100.0 - found["rules"][rule]["em"])]


def curve(*asked: tuple[list[str | None], list[str]]) -> list[list[float]]:
    questions: list[Asked] = [(retrieval(answers), gold, {}, ()) for answers, gold in asked]
    found: list[list[float]] = figures("retrieval", questions)["risk_coverage"]["majority"]
    return found


def test_an_inapplicable_certificate_counts_as_one_and_candidates_without_an_answer_as_against() -> None:
    assert curve((["yes", None], ["yes"]), (["Rome", "Rome"], ["Oslo"])) == [[50.0, 0.0], [100.0, 50.0]]
    assert curve((["Rome", None], ["Oslo"]), (["Rome", "Rome"], ["Rome"])) == [[50.0, 0.0], [100.0, 50.0]]
    assert curve(([None, None], ["Oslo"]), (["Rome", "Bern"], ["Rome"])) == [[50.0, 0.0], [100.0, 50.0]]


def test_a_share_is_of_the_candidates_of_its_own_question() -> None:
    two_of_three, three_of_five = ["Rome", "Rome", "Bern"], ["Rome", "Rome", "Rome", "Bern", "Oslo"]
    assert curve(([*three_of_five], ["Bern"]), ([*two_of_three], ["Rome"])) == [[50.0, 0.0], [100.0, 50.0]]


def test_a_curve_is_over_the_questions_that_have_a_gold_answer() -> None:
    assert curve((["Rome", "Rome"], []), (["Rome", "Bern"], ["Bern"])) == [[100.0, 100.0]]


def test_a_rule_is_trusted_by_what_it_ships_and_by_the_votes_for_consensus() -> None:
    """Of these the first is certified with two of three votes, the second open with all, the third open with half."""
    found = figures("retrieval", [RETRIEVAL[0], RETRIEVAL[11], RETRIEVAL[4]])
    assert found["risk_coverage"]["majority"] == [
        [pytest.approx(100 / 3), 0.0],
        [pytest.approx(200 / 3), 50.0],
        [100.0, pytest.approx(200 / 3)],
    ]
    assert found["risk_coverage"]["eldgr"] == [  # it ships a certified answer on the third, which is less certain
        [pytest.approx(100 / 3), 0.0],
        [pytest.approx(200 / 3), 0.0],
        [100.0, pytest.approx(100 / 3)],
    ]
