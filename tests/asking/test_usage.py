"""A reply whose server counts its tokens wrongly is used, and the count is unknown."""

import json
import math
from typing import Any

import dspy
import pytest
from dspy import lm15

from eldgr_dspy.programs.engines.ollama import ollama
from eldgr_dspy.programs.engines.usage import ANY_USAGE
from eldgr_dspy.programs.sampled import Sampled
from eldgr_dspy.programs.selector import Selector
from tests.asking.judge_modules import each_call
from tests.asking.transport import lm_at, selector_at
from tests.lm_server import Answer, Behaviour, Request, serving
from tests.ollama_server import Reply, ollama_server
from tests.refusing import refuses

IMPOSSIBLE = (-5, 3.5, math.nan, math.inf, -math.inf, "x", True, [3], {"a": 1})
VERDICT = json.dumps({"judge_rationale": "seen", "assessments": [], "preferred": 2})
QUESTION = {"question": "Which?", "candidates": ["Paris", "Paris", "Lyon"], "evidence": ["It is Lyon."]}


def counting(count: Any, text: str = VERDICT) -> Behaviour:
    """A server that reports this count for what was written."""

    def answer(request: Request) -> Answer:
        return Answer(text, changes={"usage": {"prompt_tokens": 7, "completion_tokens": count, "total_tokens": count}})

    return answer


@each_call
@pytest.mark.parametrize("count", [*IMPOSSIBLE, 10**30, None], ids=str)
def test_a_selector_uses_a_reply_whatever_tokens_its_server_counts(count: Any, call: Any) -> None:  # hazard 116
    with serving(counting(count)) as server, dspy.context(track_usage=True):
        reply = call(selector_at(server))(**QUESTION)
    assert (reply.answer, reply.branch) == ("Lyon", "judge")
    usage = reply.get_lm_usage()["openai/gpt-4o-mini"]
    assert usage.get("completion_tokens") == (10**30 if count == 10**30 else None)


@pytest.mark.parametrize("count", [*IMPOSSIBLE, 10**30], ids=str)
def test_ollama_may_count_as_wrongly(count: Any) -> None:
    with ollama_server(lambda _: Reply(VERDICT, output=count)) as server, dspy.context(track_usage=True):
        select = Selector()
        select.set_lm(ollama("deepseek-r1:7b", host=server.address))
        reply = select(**QUESTION)
    assert (reply.answer, reply.branch) == ("Lyon", "judge")
    assert "completion_tokens" not in (reply.get_lm_usage() or {})["ollama/deepseek-r1:7b"]


def test_a_sample_may_have_such_a_count_and_elsewhere_dspy_refuses_it_as_before() -> None:
    program = Sampled(dspy.Predict("question -> answer"), n=2, select=Selector(rule="majority"))
    lyon = counting(math.nan, '{"answer": "Lyon"}')
    with serving(lyon) as server, dspy.context(lm=lm_at(server.address), adapter=dspy.JSONAdapter()):
        assert program(question="Which?").answer == "Lyon"
    for count in (-5, 3.5):
        refuses((TypeError, ValueError), "output_tokens", lm15.Usage, output_tokens=count)
    body: dict[str, Any] = {"usage": {"completion_tokens": math.nan}}
    refuses(TypeError, "JSON", lm15.StreamEndEvent, provider_data=body)
    with dspy.context(**ANY_USAGE):
        assert lm15.StreamEndEvent(provider_data=body).provider_data == {"usage": {"completion_tokens": "NaN"}}
