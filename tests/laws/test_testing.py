"""The scripted LM says what it was told to say, through DSPy's own machinery, and remembers what it was asked."""

import asyncio
import copy
import re
from functools import partial
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.propose import GroundedProposer

from eldgr_dspy.programs.roles import Deriver, Judge, Repairer
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import Line, role_of, scripted_lm, text_of
from tests.case_tables import tables_of
from tests.refusing import refusal, says
from tests.selecting import CONTESTED, example_of

ADAPTERS = [None, dspy.JSONAdapter(), dspy.ChatAdapter(), dspy.XMLAdapter(), dspy.TwoStepAdapter(scripted_lm([]))]


def test_replies_are_used_in_order_of_arrival_a_mapping_as_json_and_a_response_as_it_is() -> None:
    lm = scripted_lm(["one", {"a": 1}])
    assert [lm("a"), lm("b")] == [["one"], ['{"a": 1}']]
    assert [request.messages[0].text for request in lm.requests] == ["a", "b"]
    assert scripted_lm(lambda request: (request.messages[0].text or "").upper())("echo") == ["ECHO"]
    message = lm15.Message.assistant([lm15.TextPart("cut o")])
    response = lm15.Response(id=None, model="m", message=message, finish_reason="stop", usage=lm15.Usage())
    assert scripted_lm([response])("x") == ["cut o"]


def test_a_line_that_is_cut_says_so() -> None:
    lm = scripted_lm([Line('{"answer": "Do', cut=True)] * 2)
    for reply in (lm("x"), asyncio.run(lm.acall("x"))):
        assert reply == ['{"answer": "Do']
        assert lm.history[-1]["response"].finish_reason == "length"


def test_the_end_of_a_script_is_an_error_that_says_so_and_a_single_reply_is_no_script() -> None:
    with pytest.raises(dspy.LMError, match="The script has 0 replies and this is request 1"):
        scripted_lm([])("x")
    replies: list[Any] = ["one", {"a": 1}]
    for message in (refusal(partial(scripted_lm, reply)) for reply in replies):
        assert says("...reply must be a callable or a sequence; got ...Wrap one reply in a list...", message)


def test_async_and_copies_of_the_lm_share_its_script_and_its_memory() -> None:
    lm = scripted_lm(["one", "two", "three", "four"], delay=0.001)
    assert [twin("a") for twin in (lm, copy.deepcopy(lm), lm.copy(temperature=1.0))] == [["one"], ["two"], ["three"]]
    assert asyncio.run(lm.acall("b")) == ["four"]
    assert len(lm.requests) == 4


def test_threads_lose_no_request_and_share_no_reply() -> None:
    program = dspy.Predict("question -> answer")
    script = scripted_lm([{"answer": str(number)} for number in range(40)], delay=0.001)
    with dspy.context(lm=script, adapter=dspy.JSONAdapter()):
        examples = [dspy.Example(question=str(number)).with_inputs("question") for number in range(40)]
        predictions: Any = program.batch(examples, num_threads=8, disable_progress_bar=True)
    assert sorted(int(prediction.answer) for prediction in predictions) == list(range(40))
    assert len(script.requests) == 40


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_role_that_is_asked_is_known_under_every_adapter(adapter: Any) -> None:
    lm = scripted_lm(lambda _: lm15.AuthError("enough"))
    calls: dict[Any, Any] = {Judge: {"evidence": [], "candidates": []}, Deriver: {}, Repairer: {"evidence": []}}
    with dspy.context(lm=lm, adapter=adapter):
        for role, inputs in calls.items():
            with pytest.raises(dspy.LMAuthError):
                role()(question="q", **inputs)
    assert [role_of(request) for request in lm.requests] == ["judge", "deriver", "repairer"]


QUOTES = "\n".join(tables_of("laws")["quoted"])


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.XMLAdapter(), dspy.TwoStepAdapter(scripted_lm([]))])
@pytest.mark.parametrize("instructions", ["Say what is meant.", f"Say what is meant by:\n{QUOTES}"])
def test_a_prompt_that_quotes_the_outputs_of_a_role_is_not_that_role_s(adapter: Any, instructions: str) -> None:
    lm, signature = scripted_lm(lambda _: lm15.AuthError("enough")), dspy.make_signature("text -> said", instructions)
    with dspy.context(lm=lm, adapter=adapter), pytest.raises(dspy.LMAuthError):
        dspy.Predict(signature)(text=QUOTES)
    assert role_of(lm.requests[0]) is None
    assert "`preferred`" in text_of(lm.requests[0])


def test_the_prompts_in_which_an_optimizer_writes_instructions_are_no_role_s() -> None:
    """Those of MIPROv2: a data summary, then for each role a description of program and module, and an instruction."""

    def reply_to(request: Any) -> str:
        names = re.findall(r"`\[\[ ## (\w+) ## ]]`", request.messages[-1].text or "")
        return "\n\n".join(f"[[ ## {name} ## ]]\nFollow the passages." for name in names)

    lm, select = scripted_lm(reply_to), Selector()
    examples = [example_of(CONTESTED, gold=["Doha"])] * 2
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        proposer = GroundedProposer(lm, select, examples, set_tip_randomly=False, set_history_randomly=False)
        proposals: Any = proposer.propose_instructions_for_program(examples, select, {}, {}, 1)
    assert {text for texts in proposals.values() for text in texts} == {"Follow the passages."}
    assert [role_of(request) for request in lm.requests] == [None] * len(lm.requests)
    assert any("`preferred`" in text_of(request) for request in lm.requests)


def test_a_request_for_anything_else_or_without_an_adapter_s_instructions_is_not_a_role() -> None:
    lm = scripted_lm([{"answer": "x"}, "x"])
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        dspy.Predict("question -> answer")(question="What do `repaired_answer` and `repair_passage` mean?")
    lm(f"What is this?\n{QUOTES}")
    assert [role_of(request) for request in lm.requests] == [None, None]
    assert "What do" in text_of(lm.requests[0])
