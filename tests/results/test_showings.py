"""The orders in which a judge saw the candidates are journaled, whatever it states of them."""

import json
from pathlib import Path
from typing import Any

import dspy
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.formats.rows import CandidateRow, Row
from eldgr_dspy.pools import write_pool
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.judges import Comparer, PairwiseJudge, SwapConsistent
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from tests.public_strategies import json_values
from tests.selecting import Returns

ORDERS = st.lists(st.dictionaries(st.sampled_from(("order", "preferred", "rationale")), json_values))


@given(ORDERS | json_values)
@example([{"order": [0, 1], "preferred": True}])
@example([{"order": [0, 2], "preferred": 0}])
@example([{"order": "01", "preferred": None}])
@example([{"order": [1, 0], "preferred": 1, "rationale": 7}])
def test_whatever_orders_a_judge_of_pairs_states_the_pool_is_what_is_journaled(stated: Any) -> None:
    judge = PairwiseJudge(Returns({"preferred": 1, "orders": stated}))
    result = judge(question="Q?", candidates=["Dubai", "Doha"], evidence=[])
    for one in result.orders:
        assert {*one["order"]} <= {0, 1} and one["preferred"] in (*one["order"], None)


# -- a run ------------------------------------------------------------------------------------------------------------


def asked(tmp_path: Path, judge: dspy.Module) -> list[dict[str, Any]]:
    """The consultations of a judge that the journal of its run holds."""
    pool = [CandidateRow(text=text, answer=text, source=None) for text in ("Dubai", "Doha")]
    rows = [Row(id=str(k), question=f"{k}?", task="retrieval", candidates=pool, evidence=[], gold=[]) for k in range(2)]
    write_pool(tmp_path / "pool.jsonl", rows)
    selector = heuristic_selector()
    selector.judge = judge
    evaluate(selector, Plan([tmp_path / "pool.jsonl"], tmp_path / "run"))
    lines = map(json.loads, (tmp_path / "run" / "journal.jsonl").read_text("utf-8").splitlines())
    return [line for line in lines if line.get("role") == "judge"]


def test_a_judge_that_goes_by_place_is_seen_in_the_journal(tmp_path: Path) -> None:
    result = asked(tmp_path, SwapConsistent(Returns({"preferred": 0, "judge_rationale": "candidate 1 is right"})))
    assert {one["reason"] for one in result} == {"inconsistent: the orders prefer candidates 0, 1"}
    assert result[0]["content"]["orders"] == [
        {"order": [0, 1], "preferred": 0, "scores": None, "rationale": "candidate 1 is right"},
        {"order": [1, 0], "preferred": 1, "scores": None, "rationale": "candidate 1 is right"},
    ]


def test_the_orders_of_one_question_are_one_consultation_with_its_calls(tmp_path: Path) -> None:
    from eldgr_dspy.programs.testing import scripted_lm

    judge = PairwiseJudge(SwapConsistent(Comparer()))
    judge.set_lm(scripted_lm(lambda _: {"comparison_rationale": "", "better": 1}))
    result = asked(tmp_path, judge)
    assert [one["calls"] for one in result] == [2] * 2
    assert {one["asked"] for one in result} == {"scripted/lm"}
    assert sorted(one["order"] for one in result[0]["content"]["orders"]) == [[0, 1], [1, 0]]
