"""A scorer asks an LM about the steps of a text, and makes of what it says the table that every scorer makes."""

import asyncio
import json
import re
from typing import Any

import dspy
import pytest
from dspy import lm15

from eldgr_dspy.channels.protocols import Reasoning, Scorer
from eldgr_dspy.channels.steps import LONGEST
from eldgr_dspy.channels.undefined import Undefined
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.scoring.channel_scorer import GROUNDED, MOST, ChannelScorer
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.words import CHANNELS
from tests.scoring.asking import (
    DOCUMENTS,
    INPUTS,
    PASSAGES,
    QUESTION,
    TEXT,
    awaited,
    channels_of,
    entry,
    fields,
    obliging,
    reasons_of,
    scored,
)


# --- what is asked, and what comes of it ------------------------------------------------------------------------------
def test_one_call_scores_all_channels_of_a_text_and_the_prediction_is_the_json_of_its_table() -> None:
    lm = obliging()
    with dspy.context(lm=lm):
        result = ChannelScorer()(**INPUTS).toDict()
        assert len(lm.requests) == 1
        [table] = ChannelScorer().score([Reasoning(TEXT, QUESTION, DOCUMENTS)])
    assert result == table.to_json() == json.loads(json.dumps(result))
    assert [step["channels"]["fact"] for step in result["steps"]] == [0.0, 0.1, 0.2]
    assert [step["text"] for step in result["steps"]] == [
        "Qatar lies on the Persian Gulf. ",
        "Its capital is Doha. ",
        "So the answer is Doha.\n",
    ]


def test_a_channel_s_score_is_that_channel_s() -> None:
    own = {name: at / 10 for at, name in enumerate(CHANNELS)}
    assert channels_of(scored(obliging(lambda _: own), ChannelScorer())) == own


def test_a_scorer_scores_many_texts_in_order_and_the_same_at_once() -> None:
    scorer: Scorer = ChannelScorer()
    assert isinstance(scorer, ChannelScorer)
    texts = [Reasoning(f"Over {number} times. {TEXT}", QUESTION, DOCUMENTS) for number in range(9)]
    lm = obliging(lambda step: 0.5 + step / 10)
    with dspy.context(lm=lm):
        tables = scorer.score(texts)
        before = list(lm.requests)
        assert len(before) == 9
        assert asyncio.run(scorer.ascore(texts)) == tables
    assert [table.text for table in tables] == [one.text for one in texts]
    assert before == lm.requests[len(before) :]


def test_texts_that_are_shown_alike_are_asked_about_once() -> None:
    scorer, lm = ChannelScorer(), obliging(lambda step: 0.5 + step / 10)
    texts = [Reasoning(f"{TEXT}{end}", QUESTION, DOCUMENTS) for end in ("", "", " 2", "\n")]
    with dspy.context(lm=lm):
        tables = scorer.score(texts)
        assert len(lm.requests) == 1
        assert asyncio.run(scorer.ascore(texts)) == tables
    assert [table.text for table in tables] == [one.text for one in texts]
    assert len({table.reward for table in tables}) == 1


def test_where_there_is_no_text_or_it_says_nothing_there_is_no_call() -> None:
    lm = obliging()
    with dspy.context(lm=lm):
        assert ChannelScorer().score([]) == asyncio.run(ChannelScorer().ascore([])) == []
    assert [scored(lm, reasoning=text)["reward"] for text in ("", "   ", "#### 5")] == [None] * 3
    assert lm.requests == []


def test_entries_are_placed_by_their_number_and_not_by_their_order() -> None:
    entries = [entry(step, step / 10) for step in (2, 0, 1)]
    result = scored(scripted_lm(lambda _: fields(entries)))
    assert [step["channels"]["logic"] for step in result["steps"]] == [0.0, 0.1, 0.2]


def test_steps_are_shown_without_marker_and_answer_line_and_passages_with_their_title() -> None:
    lm = obliging()
    with dspy.context(lm=lm):
        ChannelScorer()(question=QUESTION, reasoning="1. It is hot.\n2. It is dry.\n#### Doha", evidence=PASSAGES)
    shown = lm.requests[0].messages[-1].text or ""
    assert re.search(r"<step 0 (\w+)>\\nIt is hot\.\\n</step 0 \1>", shown)
    assert "Qatar\\nDoha is the capital of Qatar." in shown
    assert "####" not in shown


# --- what is undefined without asking ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Doha", "the step has one word"),
        ("```\nprint(1)\nprint(2)\n```", "the step is only code or LaTeX"),
        ("x" * (LONGEST + 1), "the step is longer than 2,000 characters"),
        ("It is hot.\n" * (MOST + 1), f"the text has {MOST + 1} steps, more than {MOST} to ask an LM about"),
    ],
    ids=["one word", "code", "too long", "too many"],
)
def test_a_text_without_a_measurable_step_is_not_asked_about(text: str, reason: str) -> None:
    lm = obliging()
    result = scored(lm, ChannelScorer(), reasoning=text)
    assert reasons_of(result) == dict.fromkeys(CHANNELS, reason)
    assert (result["reward"], result["undefined"], lm.requests) == (None, "no step was measured", [])


def test_a_step_that_can_t_be_measured_stays_undefined_whatever_the_lm_says() -> None:
    result = scored(obliging(), ChannelScorer(), reasoning="It is hot.\nHence.\nIt is dry.")
    assert reasons_of(result, 1) == dict.fromkeys(CHANNELS, "the step has one word")
    assert [channels_of(result, at)["logic"] for at in (0, 2)] == [0.0, 0.2]


def test_a_step_that_is_too_long_is_shown_in_part() -> None:
    lm = obliging()
    result = scored(lm, reasoning=f"It is hot.\n{'x' * 9_000}\nIt is dry.")
    assert reasons_of(result, 1)["logic"] == "the step is longer than 2,000 characters"
    assert channels_of(result, 2)["logic"] == 0.2
    assert len(lm.requests[0].messages[-1].text or "") < 2 * LONGEST


def test_without_a_corpus_nothing_is_held_against_passages() -> None:
    result = scored(obliging(), ChannelScorer(), evidence=None)
    assert reasons_of(result) == dict.fromkeys(GROUNDED, "there is no corpus")
    assert channels_of(result, 2)["logic"] == channels_of(result, 2)["info"] == 0.2


def test_a_corpus_without_a_passage_is_neutral_as_the_formulas_say() -> None:
    result = scored(obliging(lambda _: 0.9), ChannelScorer(), evidence=[])
    settled: dict[str, float | None] = {"fact": 0.5, "epist": None, "triang": 0.0, "adv": 0.5, "min": None}
    assert channels_of(result) == {"logic": 0.9, "info": 0.9, **settled}
    assert reasons_of(result) == dict.fromkeys(("epist", "min"), "the corpus has no passage")


def test_with_token_confidences_epist_is_computed_from_them_and_from_the_lm_s_fact() -> None:
    result = scored(obliging(lambda _: 0.75), confidences=[0.75, 0.25, Undefined("the step has no token")])
    assert [channels_of(result, at)["epist"] for at in range(3)] == [1.0, 0.5, None]
    assert reasons_of(result, 2) == {"epist": "the step has no token"}
    result = scored(scripted_lm(lambda _: "I'd rather not."), confidences=[0.75] * 3)  # and undefined without fact
    assert reasons_of(result)["epist"] == reasons_of(result)["fact"]
    assert reasons_of(scored(obliging(), evidence=None, confidences=[0.75] * 3))["epist"] == "there is no corpus"
    assert channels_of(scored(obliging(), evidence=[], confidences=[0.75] * 3))["epist"] == 0.75


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"confidences": [0.5]}, "confidences has 1 entries, but the text has 3 steps"),
        ({"confidences": [0.5, 0.5, 1.5]}, r"confidences\[2\] must be .*; got 1.5"),
        ({"reasoning": None}, r"reasoning must be text; got None \(NoneType\)\."),
        ({"question": 5}, r"question must be text; got 5 \(int\)\."),
        ({"evidence": 5}, "evidence must be a list of strings or passages; got 5"),
    ],
    ids=["too few confidences", "a confidence of 1.5", "no text", "no question", "no evidence"],
)
def test_what_cannot_be_scored_is_refused_before_anything_is_asked(inputs: dict[str, Any], message: str) -> None:
    lm = obliging()
    with dspy.context(lm=lm), pytest.raises(ArgumentError, match=message):
        ChannelScorer()(**{**INPUTS, **inputs})
    assert lm.requests == []


# --- what is raised ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (lm15.AuthError("no key"), dspy.LMAuthError),
        (lm15.RateLimitError("slow"), dspy.LMRateLimitError),
        (lm15.ServerError("down"), dspy.LMError),
        (lm15.TimeoutError("late"), dspy.LMError),
    ],
    ids=["no key", "busy", "down", "late"],
)
def test_a_call_that_does_not_come_through_is_raised(error: Any, raised: Any) -> None:  # hazard 79
    scorer = ChannelScorer()
    with dspy.context(lm=scripted_lm(lambda _: error)):
        with pytest.raises(raised):
            scorer(**INPUTS)
        with pytest.raises(raised):
            asyncio.run(awaited(scorer, **INPUTS))


def test_a_role_that_breaks_is_raised() -> None:
    class Broken(dspy.Module):
        def forward(self, **inputs: Any) -> Any:
            raise ZeroDivisionError("a bug")

    scorer = ChannelScorer()
    scorer.steps = Broken()
    with pytest.raises(ZeroDivisionError):
        scorer(**INPUTS)
