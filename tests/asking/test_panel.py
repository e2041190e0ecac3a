"""A panel of judges: an absent judge stays in the denominator, and the others vote."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.formats.rows import CandidateRow, PassageRow, Row
from eldgr_dspy.pools import write_pool
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.judges import Panel, PointwiseJudge
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.testing import Line, scripted_lm, text_of
from eldgr_dspy.rule.voting import majority
from eldgr_dspy.signatures import JudgeCandidates
from tests.asking.judge_modules import each_call, judged
from tests.selecting import CONTESTED, Returns, in_style, verdict

POOL = ["Dubai", "Dubai", "Doha", "Manama"]


def member(preferred: Any, *scalars: float) -> Returns:
    scores = {"assessments": [{"scalar": scalar} for scalar in scalars]} if scalars else {}
    return Returns({"preferred": preferred, **scores})


JUDGE: Any = JudgeCandidates
ABSENT = Returns({"abstained": "no idea"})
BROKEN = Returns(dspy.AdapterParseError("StrictJSONAdapter", JUDGE, "?", "no JSON"))


@each_call
def test_the_vote_differs_from_consensus_and_from_one_of_the_judges(call: Any) -> None:
    judges = [member(2, 0.1, 0.1, 0.6, 0.5), member(2, 0.2, 0.2, 0.6, 0.5), member(3, 0.0, 0.0, 0.1, 0.9)]
    vote = judged(call(Panel(judges)), POOL)
    assert majority(POOL, "retrieval").winner == "dubai"
    assert (vote["preferred"], vote["judge_rationale"]) == (2, "2 of 3 judges prefer this answer")
    assert vote["members"] == [{"preferred": 2}, {"preferred": 2}, {"preferred": 3}]
    assert "assessments" not in vote
    assert vote["orders"] == []


@pytest.mark.parametrize("absent", [ABSENT, BROKEN, member(7), member(True), member(4, 0.1)])
@each_call
def test_an_absent_judge_stays_in_the_denominator(call: Any, absent: Any) -> None:
    """Two of three are a majority, two of four are not, however many of the four said anything."""
    assert judged(call(Panel([member(2), member(2), absent])), POOL)["preferred"] == 2
    result = judged(call(Panel([member(2), member(2), absent, absent])), POOL)
    assert result["abstained"] == "no majority of 4 judges: 2 for candidate 2, 2 absent"
    assert "preferred" not in result
    assert [one["preferred"] for one in result["members"]] == [2, 2, None, None]
    assert all(one["abstained"] for one in result["members"][2:])


def test_what_has_no_majority_is_an_abstention_with_the_counts() -> None:
    split = judged(Panel([member(0), member(2), member(3)]), POOL)
    assert split["abstained"] == (
        "no majority of 3 judges: 1 for candidate 0, 1 for candidate 2, 1 for candidate 3, 0 absent"
    )
    assert judged(Panel([ABSENT, BROKEN]), POOL)["abstained"] == "no majority of 2 judges: 2 absent"


def test_preferences_are_counted_by_answer_and_the_candidate_that_most_of_them_prefer_ships() -> None:
    pool = ["Doha", "Dubai", "doha.", "Doha!"]
    assert judged(Panel([member(0), member(2), member(1)]), pool)["preferred"] == 0  # one each: the earliest
    assert judged(Panel([member(0), member(2), member(2), member(1), member(1)]), pool)["preferred"] == 2
    assert judged(Panel([member(3), member(2), member(1)]), pool)["preferred"] == 2


@given(st.lists(st.sampled_from([0, 1, 2, 3, None]), min_size=1, max_size=7))
def test_a_vote_passes_only_with_more_than_half_of_all_judges(preferred: list[int | None]) -> None:
    result = judged(Panel([ABSENT if one is None else member(one) for one in preferred]), POOL)
    answers = [POOL[one] for one in preferred if one is not None]
    winners = [answer for answer in set(answers) if answers.count(answer) * 2 > len(preferred)]
    assert [POOL[index] for index in [result.get("preferred")] if index is not None] == winners
    assert ("abstained" in result) == (not winners)


@each_call
def test_each_member_asks_its_lm_and_the_calls_add_up(call: Any) -> None:
    panel, lm = Panel([Judge(), PointwiseJudge(), Judge()]), scripted_lm(answering)
    panel.set_lm(lm)
    assert judged(call(panel), POOL)["members"] == [{"preferred": 2}] * 3
    assert len(lm.requests) == panel.most_calls(POOL) == 1 + 3 + 1  # the pool, three texts, the pool again
    assert ["Manama" in text_of(one) for one in lm.requests].count(True) == 3
    assert Panel([Judge(), Returns({})]).most_calls(POOL) is None


def answering(request: Any) -> dict[str, Any]:
    return in_style(request, 2, 0.9 if "Doha\\n</" in repr(request.messages[-1].text) else 0.1, len(POOL))


@each_call
def test_a_cut_reply_is_an_absence_of_that_judge_alone(call: Any) -> None:
    cut = Line(json.dumps(verdict(2, 4))[:-1], cut=True)
    lms = [scripted_lm([said]) for said in (cut, verdict(3, 4), verdict(3, 4))]
    judges = [Judge(), Judge(), Judge()]
    for judge, lm in zip(judges, lms, strict=True):
        judge.set_lm(lm)
    result = judged(call(Panel(judges)), POOL)
    assert result["preferred"] == 3
    assert result["members"][0]["abstained"].startswith("cut off: ")


@pytest.mark.parametrize(
    ("judges", "message"),
    [
        ([], r"judges must be a list of at least one module; got \[\]. Give \[Judge\(\)\]."),
        (Judge(), "judges must be a list of at least one module; got "),
        ([len], r"judges must be a list of at least one module; got \[<built-in function len>\]. Give"),
        ("ab", "judges must be a list of at least one module; got 'ab'. Give"),
    ],
)
def test_bad_arguments_are_refused(judges: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Panel(judges)


def test_who_preferred_what_is_in_the_journal(tmp_path: Path) -> None:
    pool = [CandidateRow(text="", answer=answer, source=None) for answer in CONTESTED["candidates"]]
    evidence = [PassageRow(title="", text=text) for text in CONTESTED["evidence"]]
    about: Any = {"question": CONTESTED["question"], "task": "retrieval", "gold": ["Doha"]}
    write_pool(tmp_path / "pool.jsonl", [Row(id="0", candidates=pool, evidence=evidence, **about)])
    selector = heuristic_selector()
    selector.judge = Panel([member(2), member(2), ABSENT])
    evaluate(selector, Plan([tmp_path / "pool.jsonl"], tmp_path / "run"))
    lines = map(json.loads, (tmp_path / "run" / "journal.jsonl").read_text("utf-8").splitlines())
    (asked,) = (line for line in lines if line.get("role") == "judge" and "outcome" in line)
    absent = {"preferred": None, "abstained": "no idea"}
    assert asked["content"]["members"] == [{"preferred": 2}, {"preferred": 2}, absent]
    assert (asked["outcome"], asked["content"]["preferred"]) == ("ok", 2)
