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
from eldgr_dspy.programs.scoring.channel_scorer import CORPUS_CHANNELS, ChannelScorer
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.words import CHANNELS
from tests.case_tables import each_case
from tests.refusing import refuses
from tests.scoring.asking import DOCUMENTS, INPUTS, QUESTION, TEXT, channels_of, fields, obliging, reasons_of, scores_of
from tests.selecting import Returns, awaiting


def test_one_call_scores_all_channels_of_a_text_each_its_own() -> None:
    lm = obliging()
    with dspy.context(lm=lm):
        result = ChannelScorer()(**INPUTS).toDict()
        assert len(lm.requests) == 1
        [table] = ChannelScorer().score([Reasoning(TEXT, QUESTION, DOCUMENTS)])
    assert result == table.to_json() == json.loads(json.dumps(result))
    expected = [("Qatar lies on the Persian Gulf. ", 0.0), ("Its capital is Doha. ", 0.1)]
    expected += [("So the answer is Doha.\n", 0.2)]
    assert [(step["text"], step["channels"]["fact"]) for step in result["steps"]] == expected
    own = {name: at / 10 for at, name in enumerate(CHANNELS)}
    assert channels_of(scores_of(obliging(lambda _: own), ChannelScorer())) == own
    entries = [{"step": step, **dict.fromkeys(CHANNELS, step / 10)} for step in (2, 0, 1)]
    result = scores_of(scripted_lm(lambda _: fields(entries)))
    assert [step["channels"]["logic"] for step in result["steps"]] == [0.0, 0.1, 0.2]


def test_many_texts_are_scored_in_order_the_same_at_once_and_those_that_are_shown_alike_once() -> None:
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
    scorer, lm = ChannelScorer(), obliging(lambda step: 0.5 + step / 10)
    texts = [Reasoning(f"{TEXT}{end}", QUESTION, DOCUMENTS) for end in ("", "", " 2", "\n")]
    with dspy.context(lm=lm):
        tables = scorer.score(texts)
        assert len(lm.requests) == 1
        assert asyncio.run(scorer.ascore(texts)) == tables
    assert [table.text for table in tables] == [one.text for one in texts]
    assert len({table.reward for table in tables}) == 1


def test_steps_are_shown_without_marker_and_answer_line_and_a_text_that_says_nothing_not_at_all() -> None:
    lm = obliging()
    with dspy.context(lm=lm):
        assert ChannelScorer().score([]) == asyncio.run(ChannelScorer().ascore([])) == []
    assert [scores_of(lm, reasoning=text)["reward"] for text in ("", "   ", "#### 5")] == [None] * 3
    assert lm.requests == []
    lm = obliging()
    with dspy.context(lm=lm):
        ChannelScorer()(**{**INPUTS, "reasoning": "1. It is hot.\n2. It is dry.\n#### Doha"})
    view = lm.requests[0].messages[-1].text or ""
    assert re.search(r"<step 0 (\w+)>\\nIt is hot\.\\n</step 0 \1>", view)
    assert "Qatar\\nDoha is the capital of Qatar." in view
    assert "####" not in view


@each_case("scoring", "texts without a measurable step")
def test_a_text_without_a_measurable_step_is_not_asked_about(text: str, reason: str) -> None:
    lm = obliging()
    result = scores_of(lm, ChannelScorer(), reasoning=text)
    assert reasons_of(result) == dict.fromkeys(CHANNELS, reason)
    assert (result["reward"], result["undefined"], lm.requests) == (None, "no step was measured", [])


def test_a_step_that_can_t_be_measured_stays_undefined_and_one_too_long_is_shown_in_part() -> None:
    result = scores_of(obliging(), ChannelScorer(), reasoning="It is hot.\nHence.\nIt is dry.")
    assert reasons_of(result, 1) == dict.fromkeys(CHANNELS, "the step has one word")
    assert [channels_of(result, at)["logic"] for at in (0, 2)] == [0.0, 0.2]
    lm = obliging()
    result = scores_of(lm, reasoning=f"It is hot.\n{'x' * 9_000}\nIt is dry.")
    assert reasons_of(result, 1)["logic"] == "the step is longer than 2,000 characters"
    assert channels_of(result, 2)["logic"] == 0.2
    assert len(lm.requests[0].messages[-1].text or "") < 2 * LONGEST


def test_without_a_corpus_channels_are_undefined_and_with_an_empty_one_neutral() -> None:
    result = scores_of(obliging(), ChannelScorer(), evidence=None)
    assert reasons_of(result) == dict.fromkeys(CORPUS_CHANNELS, "there is no corpus")
    assert channels_of(result, 2)["logic"] == channels_of(result, 2)["info"] == 0.2
    result = scores_of(obliging(lambda _: 0.9), ChannelScorer(), evidence=[])
    rest: dict[str, float | None] = {"fact": 0.5, "epist": None, "triang": 0.0, "adv": 0.5, "min": None}
    assert channels_of(result) == {"logic": 0.9, "info": 0.9, **rest}
    assert reasons_of(result) == dict.fromkeys(("epist", "min"), "the corpus has no passage")


def test_with_token_confidences_epist_is_computed_from_them_and_from_the_lm_s_fact() -> None:
    result = scores_of(obliging(lambda _: 0.75), confidences=[0.75, 0.25, Undefined("the step has no token")])
    assert [channels_of(result, at)["epist"] for at in range(3)] == [1.0, 0.5, None]
    assert reasons_of(result, 2) == {"epist": "the step has no token"}
    result = scores_of(scripted_lm(lambda _: "I'd rather not."), confidences=[0.75] * 3)  # and undefined without fact
    assert reasons_of(result)["epist"] == reasons_of(result)["fact"]
    assert reasons_of(scores_of(obliging(), evidence=None, confidences=[0.75] * 3))["epist"] == "there is no corpus"
    assert channels_of(scores_of(obliging(), evidence=[], confidences=[0.75] * 3))["epist"] == 0.75


ERRORS: list[Any] = [(lm15.AuthError("no key"), dspy.LMAuthError), (lm15.RateLimitError("slow"), dspy.LMRateLimitError)]
ERRORS += [(lm15.ServerError("down"), dspy.LMError), (lm15.TimeoutError("late"), dspy.LMError)]


@pytest.mark.parametrize(("error", "kind"), ERRORS, ids=["no key", "busy", "down", "late"])
def test_a_call_that_fails_and_a_role_that_breaks_are_raised(error: Any, kind: Any) -> None:  # hazard 79
    scorer = ChannelScorer()
    with dspy.context(lm=scripted_lm(lambda _: error)):
        for call in (scorer, awaiting(scorer.acall)):
            refuses(kind, "no key|slow|down|late", call, **INPUTS)
    scorer.steps = Returns(ZeroDivisionError("a bug"))
    refuses(ZeroDivisionError, "a bug", scorer, **INPUTS)
