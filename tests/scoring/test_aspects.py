"""What a judge states of candidates has the record that the channels have: a number from 0 to 1, or undefined."""

import json
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.consultations import Abstention, Verdict
from eldgr_dspy.programs.consulting import ask
from eldgr_dspy.programs.judges import SwapConsistent
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.scoring.aspects import judged_aspects
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.replies import read_reply
from eldgr_dspy.strategies import json_values
from eldgr_dspy.words import CHANNELS

ASPECTS = {"logic": 1.0, "fact": 0.5, "epist": 0.25, "info": 1.0, "triang": 0.0, "adv": 0.5, "min": 1.0}
POOL = ["It lies in Qatar.\nFinal answer: Dubai", "Doha"]


def judged(*assessments: Any, **more: Any) -> dict[str, Any]:
    return {"judge_rationale": "So.", "assessments": list(assessments), "preferred": 0, **more}


def reasons(content: dict[str, Any]) -> list[set[str]]:
    """For each candidate why aspects are undefined; empty where all are stated."""
    tables = judged_aspects(content, POOL)
    steps = [table.scores[0] for table in tables]
    return [{one.reason for one in step.channels.values() if isinstance(one, Undefined)} for step in steps]


def test_a_judge_s_aspects_are_a_table_of_one_step_for_each_candidate() -> None:
    with dspy.context(lm=scripted_lm([judged({**ASPECTS, "scalar": 0.9}, {**ASPECTS, "scalar": 0.1, "fact": 1.0})])):
        content = ask(Judge(), {"question": "q", "evidence": [], "candidates": POOL}).content
    first, second = judged_aspects(content, POOL)
    assert first.to_json()["steps"] == [
        {"start": 0, "end": len(POOL[0]), "text": POOL[0], **first.scores[0].to_json()},
    ]
    assert dict(first.scores[0].channels) == ASPECTS
    assert second.scores[0].channels["fact"] == 1.0
    assert first.reward == pytest.approx(0.2 + 0.1 + 0.025 + 0.15 + 0.0 + 0.075 + 0.1)


def test_an_aspect_that_was_not_stated_is_undefined_alone() -> None:
    without = {name: score for name, score in ASPECTS.items() if name != "min"}
    tables = judged_aspects(judged({**without, "fact": None}, ASPECTS), POOL)
    assert tables[0].to_json()["steps"][0]["undefined"]["fact"] == "the LM gave no score"  # type: ignore[index]
    assert tables[0].scores[0].channels["min"] == Undefined("the LM gave no score")
    assert tables[0].scores[0].channels["logic"] == 1.0
    assert dict(tables[1].scores[0].channels) == ASPECTS


@pytest.mark.parametrize("content", [{}, {"preferred": 1}, {"assessments": []}, {"assessments": None}], ids=str)
def test_a_judge_that_gave_no_scores_leaves_all_undefined(content: dict[str, Any]) -> None:
    assert reasons(content) == [{"the LM gave no score"}] * 2


WRONG: dict[str, Any] = {  # hazards 57, 59, 62 and 66
    "an abstention": ({"abstained": "unparsable: no"}, "unparsable: no"),
    "an abstention beside scores": (judged(ASPECTS, ASPECTS, abstained="cut off"), "cut off"),
    "one too few": (judged(ASPECTS), "assessments has 1 entries, not 2"),
    "one too many": (judged(*[ASPECTS] * 3), "assessments has 3 entries, not 2"),
    "no list": ({"assessments": "good"}, "assessments is str, not a list"),
    "no object": (judged(ASPECTS, 0.5), "assessments[1] is 0.5, not an object"),
    "150": (judged(ASPECTS, {**ASPECTS, "fact": 150}), "fact of entry 1 is 150, not a number from 0 to 1"),
    "NaN": (judged(ASPECTS, {**ASPECTS, "fact": float("nan")}), "fact of entry 1 is float, not a number from 0 to 1"),
    "a text": (judged(ASPECTS, {**ASPECTS, "fact": "90%"}), "fact of entry 1 is str, not a number from 0 to 1"),
    "a truth value": (judged({**ASPECTS, "fact": True}, ASPECTS), "fact of entry 0 is bool, not a number from 0 to 1"),
    "a scalar": (judged({**ASPECTS, "scalar": 2}, ASPECTS), "scalar of entry 0 is 2, not a number from 0 to 1"),
}


@pytest.mark.parametrize(("content", "reason"), WRONG.values(), ids=WRONG)
def test_what_is_an_abstention_of_a_judge_leaves_all_undefined(content: dict[str, Any], reason: str) -> None:
    assert reasons(content) == [{f"the LM abstained: {reason}"}] * 2
    reply = read_reply("judge", {"preferred": 0, **content}, ["Dubai", "Doha"], 0)
    assert isinstance(reply, Abstention) or (isinstance(reply, Verdict) and reply.scores is None and reply.remark)


def test_the_means_of_several_orders_are_read_likewise() -> None:
    with dspy.context(lm=scripted_lm(lambda _: judged({**ASPECTS, "scalar": 0.9}, {**ASPECTS, "scalar": 0.9}))):
        content = ask(
            SwapConsistent(Judge(), on_inconsistent="average"), {"question": "q", "evidence": [], "candidates": POOL}
        ).content
    assert [dict(table.scores[0].channels) for table in judged_aspects(content, POOL)] == [ASPECTS] * 2


def test_without_candidates_there_is_no_table() -> None:
    assert judged_aspects(judged(), []) == []


def test_a_candidate_without_a_text_has_the_table_that_its_judge_gave() -> None:
    [table] = judged_aspects(judged(ASPECTS), [""])
    assert table.spans == ((0, 0),)
    assert dict(table.scores[0].channels) == ASPECTS


_entries = st.dictionaries(st.sampled_from([*CHANNELS, "scalar"]), st.none() | st.floats(0, 1) | json_values)


@given(st.dictionaries(st.sampled_from(["assessments", "abstained"]), st.lists(_entries, max_size=3) | json_values))
def test_whatever_a_judge_returns_an_aspect_is_in_the_unit_interval_or_undefined(content: dict[str, Any]) -> None:
    for table in judged_aspects(content, POOL):
        for score in table.scores[0].channels.values():
            assert isinstance(score, Undefined) or (type(score) is float and 0 <= score <= 1)
        json.dumps(table.to_json(), allow_nan=False)
