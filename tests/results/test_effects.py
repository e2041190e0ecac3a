"""What order and length have to do with verdicts is counted from what is recorded, and is null where nothing was."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.figures.effects import (
    Showing,
    effect_marks,
    effects_of,
    first_shown_wins,
    flips,
    longer_wins,
    showings,
)
from eldgr_dspy.pools import write_pool
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.judges import (
    Comparer,
    PairwiseJudge,
    Panel,
    PlanThenCheck,
    PointwiseJudge,
    SliceJudge,
    SwapConsistent,
    UniversalConsistency,
)
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.questions import Question
from eldgr_dspy.rows import CandidateRow, PassageRow, Row
from tests.selecting import Returns
from tests.strategies import json_values

CLASSES = ("dubai", "dubai", "doha", None)
NONE = {"count": 0, "of": 0, "rate": None}


def showing(order: str, preferred: int | None, rationale: str = "") -> Showing:
    return Showing(tuple(map(int, order)), preferred, rationale)


# -- formulas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ([showing("012", 0), showing("210", 2)], [True]),
        ([showing("012", 0), showing("210", 1)], [False]),  # another candidate, the same class
        ([showing("012", 0)], []),  # one order says nothing
        ([showing("012", 0), showing("012", 2)], []),  # nor does the same order twice
        ([showing("012", 0), showing("210", None)], []),  # nor an order without a verdict
        ([showing("01", 0), showing("10", 1)], []),  # nor one class
        ([showing("02", 0), showing("20", 2), showing("23", 2), showing("32", 2)], [True, False]),  # pair by pair
        ([], []),
    ],
)
def test_a_flip_is_another_class_preferred_of_the_same_candidates(shown: list[Showing], expected: list[bool]) -> None:
    assert flips(shown, CLASSES) == expected


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (showing("012", 0), (True, 2 / 3)),
        (showing("102", 0), (True, 2 / 3)),  # the class that was shown first, not the candidate
        (showing("210", 0), (False, 2 / 3)),
        (showing("20", 2), (True, 1 / 2)),
        (showing("01", 0), None),
        (showing("012", None), None),
    ],
)
def test_the_first_shown_wins_against_the_share_of_the_preferred_class(shown: Showing, expected: Any) -> None:
    assert first_shown_wins(shown, CLASSES) == expected


@given(st.permutations(range(4)), st.integers(0, 2))
def test_a_judge_that_goes_by_the_answer_is_first_as_often_as_expected(order: list[int], preferred: int) -> None:
    """Over all rotations of any order, the rate is the expected one."""
    turned = [Showing(tuple(order[at:] + order[:at]), preferred) for at in range(4)]
    found = [first_shown_wins(one, CLASSES) for one in turned]
    assert sum(one[0] for one in found if one) == pytest.approx(sum(one[1] for one in found if one))


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ((9, 1, 5, 7), True),  # longer than the median of 5 and 7; its own class does not count
        ((6, 1, 5, 7), None),
        ((5, 90, 5, 7), False),
    ],
)
def test_the_longer_wins_against_the_median_of_the_others(lengths: tuple[int, ...], expected: bool | None) -> None:
    assert longer_wins(showing("0123", 0), CLASSES, lengths) is expected
    assert longer_wins(showing("01", 0), CLASSES, lengths) is None
    assert longer_wins(showing("0123", None), CLASSES, lengths) is None


# -- what is recorded -------------------------------------------------------------------------------------------------


def test_a_plain_judge_was_shown_the_pool_as_it_stands() -> None:
    assert showings({"preferred": 1, "judge_rationale": "why"}, ["a", "b"], 0) == (showing("01", 1, "why"),)
    assert showings({"preferred": 7}, ["a", "b"], 0) == ()


@given(
    st.lists(st.dictionaries(st.sampled_from(("order", "preferred", "rationale")), json_values)),
    st.dictionaries(st.sampled_from(("orders", "preferred", "judge_rationale")), json_values),
)
@example([{"order": [0, 1], "preferred": True}], {})
@example([{"order": [0, 2], "preferred": 0}], {})
@example([{"order": "01", "preferred": None}], {})
def test_whatever_a_recording_holds_is_measured_or_passed_over(entries: Any, content: Any) -> None:
    question = Question("q", "retrieval", ("a", "b"))
    for one in (content, {"orders": entries}):
        json.dumps(effects_of({effect_marks(question, ("a", "b"), one): 1}), allow_nan=False)
        assert all(set(shown.order) <= {0, 1} for shown in showings(one, ("a", "b"), 0))


def test_where_nothing_was_measured_rates_are_null() -> None:
    assert effects_of({}) == {
        "verdicts": 0,
        "position_flips": NONE,
        "first_shown_wins": {**NONE, "expected": None},
        "longer_wins": NONE,
    }


# -- a run ------------------------------------------------------------------------------------------------------------


def candidate(text: str, answer: str) -> CandidateRow:
    return CandidateRow(text=text, answer=answer, source=None)


def rows(n: int) -> list[Row]:
    pool = [candidate("It is Dubai.", "Dubai"), candidate("", "Doha")]
    evidence = [PassageRow(title="", text="Doha is the capital.")]
    return [
        Row(id=str(k), question=f"{k}?", task="retrieval", candidates=pool, evidence=evidence, gold=["Doha"])
        for k in range(n)
    ]


def run(tmp_path: Path, judge: dspy.Module) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The effects of a run with this judge, and the consultations of it that the journal holds."""
    tmp_path.mkdir(exist_ok=True)
    write_pool(tmp_path / "pool.jsonl", rows(4))
    selector = heuristic_selector()
    selector.judge = judge
    evaluate(selector, Plan([tmp_path / "pool.jsonl"], tmp_path / "run"))
    lines = map(json.loads, (tmp_path / "run" / "journal.jsonl").read_text("utf-8").splitlines())
    asked = [line for line in lines if line.get("role") == "judge"]
    record = json.loads((tmp_path / "run" / "record.json").read_text("utf-8"))
    effects: dict[str, Any] = record["judge_effects"]["pool"]
    return effects, asked


def test_a_judge_that_goes_by_place_is_seen_in_the_record(tmp_path: Path) -> None:
    effects, asked = run(tmp_path, SwapConsistent(Returns({"preferred": 0, "judge_rationale": "candidate 1 is right"})))
    assert effects == {
        "verdicts": 8,
        "position_flips": {"count": 4, "of": 4, "rate": 100.0},
        "first_shown_wins": {"count": 8, "of": 8, "rate": 100.0, "expected": 50.0},
        "longer_wins": {"count": 4, "of": 8, "rate": 50.0},
    }
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    row = page.partition("first shown preferred</th>")[2]
    assert row.startswith("<td>8</td><td>8</td><td>100.00</td><td>50.00</td>")
    assert {one["reason"] for one in asked} == {"inconsistent: the orders prefer candidates 0, 1"}
    assert asked[0]["content"]["orders"] == [
        {"order": [0, 1], "preferred": 0, "scores": None, "rationale": "candidate 1 is right"},
        {"order": [1, 0], "preferred": 1, "scores": None, "rationale": "candidate 1 is right"},
    ]


def test_a_plain_judge_s_order_is_measured_without_asking_again(tmp_path: Path) -> None:
    effects, asked = run(tmp_path, Returns({"preferred": 0}))
    assert len(asked) == 4
    assert effects["position_flips"] == NONE
    assert effects["first_shown_wins"] == {"count": 4, "of": 4, "rate": 100.0, "expected": 50.0}
    assert effects["longer_wins"] == {"count": 4, "of": 4, "rate": 100.0}


def test_a_pairwise_judge_is_measured_pair_by_pair(tmp_path: Path) -> None:
    effects, asked = run(tmp_path, PairwiseJudge(SwapConsistent(Returns({"preferred": 0}))))
    assert effects["position_flips"] == {"count": 4, "of": 4, "rate": 100.0}
    assert sorted(one["order"] for one in asked[0]["content"]["orders"]) == [[0, 1], [1, 0]]


def test_a_pointwise_judge_has_no_order_and_may_still_prefer_the_longer(tmp_path: Path) -> None:
    effects, _ = run(tmp_path, PointwiseJudge(Returns({"assessment": {"scalar": 0.5}})))
    assert (effects["verdicts"], effects["position_flips"]) == (0, NONE)
    assert effects["first_shown_wins"] == {**NONE, "expected": None}
    assert effects["longer_wins"] == {"count": 4, "of": 4, "rate": 100.0}  # of equal scores the earliest


def test_who_asks_about_one_slice_one_candidate_or_several_judges_showed_no_order(tmp_path: Path) -> None:
    slices, checks = SliceJudge(), PlanThenCheck()
    slices.reader = Returns({"sound": True})
    checks.navigator = Returns(dspy.Prediction(checks=["It is a city."]))
    checks.interactor = Returns({"passed": [True], "consistent": True})
    for number, judge in enumerate([slices, checks, Panel([Returns({"preferred": 0})])]):
        effects, asked = run(tmp_path / str(number), judge)
        assert [one["outcome"] for one in asked] == ["ok"] * 4
        assert (effects["verdicts"], effects["position_flips"]) == (0, NONE)
        assert effects["first_shown_wins"] == {**NONE, "expected": None}
        assert effects["longer_wins"] == {"count": 4, "of": 4, "rate": 100.0}  # the earliest


def test_who_names_the_most_consistent_was_shown_the_pool_as_it_stands(tmp_path: Path) -> None:
    from eldgr_dspy.programs.testing import scripted_lm

    judge = UniversalConsistency()
    judge.set_lm(scripted_lm(lambda _: {"consistency_rationale": "candidate 1 is right", "most_consistent": 0}))
    effects, asked = run(tmp_path, judge)
    assert [one["calls"] for one in asked] == [1] * 4
    assert effects["first_shown_wins"] == {"count": 4, "of": 4, "rate": 100.0, "expected": 50.0}


def test_the_orders_of_one_question_are_one_consultation_with_its_calls(tmp_path: Path) -> None:
    from eldgr_dspy.programs.testing import scripted_lm

    judge = PairwiseJudge(SwapConsistent(Comparer()))
    judge.set_lm(scripted_lm(lambda _: {"comparison_rationale": "", "better": 1}))
    _, asked = run(tmp_path, judge)
    assert [one["calls"] for one in asked] == [2] * 4
    assert {one["asked"] for one in asked} == {"scripted/lm"}
