"""Whatever an LM says of steps, a channel is a number from 0 to 1 or undefined, and what is wrong is decided once."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import dspy
import pytest
from dspy import lm15
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.channels.protocols import Reasoning
from eldgr_dspy.channels.step_table import StepTable
from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.programs.scoring.channel_scorer import ChannelScorer
from eldgr_dspy.programs.testing import Line, scripted_lm
from eldgr_dspy.testing import json_values, lm_replies, raw_text
from eldgr_dspy.words import CHANNELS
from tests.case_tables import TEXTS, build, each_case, tables_of
from tests.scoring.asking import DOCUMENTS, QUESTION, TEXT, entry, fields, obliging, reasons_of, scores_of
from tests.selecting import Returns

WHOLE = [entry(step, 0.5) for step in range(3)]
LENIENT = [dspy.JSONAdapter(), dspy.ChatAdapter(use_json_adapter_fallback=True)]
_scores = st.none() | st.floats(0, 1) | st.sampled_from([0, 1, -1, 2, True, "0.5"]) | json_values
_numbers = st.integers(-1, 3) | st.sampled_from([True, "0", 0.0, None, 10**30])
_entries = st.fixed_dictionaries({"step": _numbers}, optional=dict.fromkeys((*CHANNELS, "score"), _scores))
_sound = st.fixed_dictionaries(
    {"step": st.integers(0, 2)} | dict.fromkeys(map(str, CHANNELS), st.none() | st.floats(0, 1))
)
_lists = st.lists(_sound, max_size=3) | st.lists(_entries | json_values, max_size=4) | json_values
_replies = st.fixed_dictionaries({"step_rationale": raw_text, "step_scores": _lists}).map(json.dumps) | lm_replies()


def whole(**changes: Any) -> dict[str, Any]:
    return fields([{**WHOLE[0], **changes}, *WHOLE[1:]])


WORDS: dict[str, Callable[..., Any]] = {**TEXTS, "text": json.dumps, "whole": whole, "steps": fields, "float": float}
WORDS |= {"entries": lambda *further: fields([*WHOLE, *further]), "entry": lambda **changes: {**WHOLE[0], **changes}}
# hazards 57, 59, 60, 61, 62, 63 and 66
FAULTS: dict[str, Any] = build(tables_of("scoring")["wrong replies"]["cases"], WORDS)


@pytest.mark.parametrize("reply", FAULTS.values(), ids=FAULTS)
def test_a_reply_that_is_wrong_in_one_place_is_an_abstention_on_the_whole(reply: Any) -> None:
    result = scores_of(scripted_lm(lambda _: reply))
    for at in range(3):
        reason = reasons_of(result, at)["fact"]
        assert reasons_of(result, at) == dict.fromkeys(CHANNELS, reason) and reason.startswith("the LM abstained: ")
    assert (result["reward"], result["undefined"]) == (None, "no step was measured")


def test_a_reply_that_was_cut_and_a_prompt_that_is_too_long_are_abstentions_that_say_so() -> None:  # hazards 58 and 82
    error = lm15.ContextLengthError("too long: 9,000 tokens")
    for reply, why in ((Line(json.dumps(whole())[:-1], cut=True), "cut off"), (error, "prompt too long")):
        assert reasons_of(scores_of(scripted_lm([reply] * 2)))["logic"].startswith(f"the LM abstained: {why}")


def test_a_step_that_is_left_out_or_scored_null_is_undefined_alone() -> None:
    result = scores_of(scripted_lm(lambda _: fields(WHOLE[:2])))
    assert reasons_of(result, 2) == dict.fromkeys(CHANNELS, "the LM left the step out")
    assert reasons_of(result, 0) == {}
    result = scores_of(
        obliging(lambda step: {"fact": None if step == 1 else 1, **dict.fromkeys({*CHANNELS} - {"fact"}, 1)})
    )
    assert [reasons_of(result, at) for at in range(3)] == [{}, {"fact": "the LM gave no score"}, {}]


@pytest.mark.parametrize("adapter", LENIENT, ids=["JSON", "chat"])
@pytest.mark.parametrize("name", ["a score of 150", "a number as text", "a truth value", "a step as text", "NaN"])
def test_another_adapter_lets_nothing_more_through(adapter: Any, name: str) -> None:
    with dspy.context(adapter=adapter):
        result = scores_of(scripted_lm(lambda _: FAULTS[name]))
    assert set(reasons_of(result)) == set(CHANNELS)


def saying(**fields: Any) -> ChannelScorer:
    scorer = ChannelScorer()
    scorer.steps = Returns(dspy.Prediction(**fields))
    return scorer


@each_case("scoring", "replies of a role of one's own", pow=pow)
def test_a_role_of_one_s_own_is_held_to_the_same(fields: dict[str, Any], reason: str) -> None:
    assert reasons_of(scores_of(obliging(), saying(**fields)))["fact"] == f"the LM abstained: {reason}"


def lawful(table: StepTable, text: str) -> None:
    assert all(0 <= start < end <= len(text) for start, end in table.spans)
    for step in table.scores:
        assert tuple(step.channels) == CHANNELS
        for score in step.channels.values():
            assert isinstance(score, Undefined) or (type(score) is float and 0 <= score <= 1)
    json.dumps(table.to_json(), allow_nan=False)


@given(_replies, st.sampled_from([TEXT, "", "Doha", "It is hot.\nSo.\nIt is dry."]) | st.text(max_size=80))
@example(json.dumps(fields([{"step": 0, "fact": 10**400}])), TEXT)
@example(json.dumps(fields(WHOLE)), "Half \ud800 a pair. \udfff Two halves.")
def test_whatever_an_lm_returns_a_channel_is_in_the_unit_interval_or_undefined(reply: str, text: str) -> None:
    reasonings = [Reasoning(text, QUESTION, DOCUMENTS)]
    with dspy.context(lm=scripted_lm(lambda _: reply)):
        [table] = ChannelScorer().score(reasonings)
        assert asyncio.run(ChannelScorer().ascore(reasonings)) == [table]
    lawful(table, text)


@given(st.dictionaries(st.sampled_from(["step_scores", "abstained"]), _lists))
def test_whatever_a_role_of_one_s_own_returns_so_it_is(reply: dict[str, Any]) -> None:
    scorer = saying(**reply)
    reasonings = [Reasoning(TEXT, QUESTION, DOCUMENTS)]
    [table] = scorer.score(reasonings)
    assert asyncio.run(scorer.ascore(reasonings)) == [table]
    lawful(table, TEXT)
