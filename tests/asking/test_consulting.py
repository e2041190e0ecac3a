"""A role is asked once: a reply that cannot be read is an abstention, a failed call is a failure, a bug is a bug."""

import asyncio
import json
import logging
import re
import signal
import threading
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import dspy
import numpy
import pytest
from dspy import lm15
from dspy.lm15 import Message, RefusalPart, Response, TextPart, ThinkingPart, ToolCallPart, Usage
from dspy.utils import BaseCallback

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.engines.lenient import LENIENT
from eldgr_dspy.programs.lms.consulting import FAILURES, FATAL, FlawedReplyError, RoleOutput, aask, ask, is_fatal
from eldgr_dspy.programs.roles import Repairer
from eldgr_dspy.programs.testing import Line, scripted_lm, text_of
from eldgr_dspy.signatures import DeriveAnswer, RepairAnswer
from tests.caching import cached_by_dspy
from tests.case_tables import each_case
from tests.refusing import refuses

REPAIR = {"repair_passage": 0, "repaired_answer": "Doha"}
INPUTS = {"question": "q", "evidence": ["Doha is the capital."]}
SLOPPY = f"Sure! {json.dumps(REPAIR)}"
Consult = Callable[..., RoleOutput]
FOR_JUDGE = {**INPUTS, "candidates": ["Doha"]}
ERRORS = [lm15.AuthError("no such key"), TimeoutError("late"), KeyError("bug"), ValueError("bug")]
FINAL = [dspy.LMUnsupportedModelError("no such model"), dspy.LMProviderError("no such model", status=404)]
PASSING = [dspy.LMServerError("away", status=503), dspy.LMTransportError("reset"), ConnectionError("refused")]
ADAPTERS = [dspy.JSONAdapter(), dspy.ChatAdapter(), dspy.XMLAdapter()]
WHOLE = json.dumps(REPAIR)
CUT = Line(f"```json\n{WHOLE}\n```", cut=True)
CUT_OFF = "cut off: the LM reached its limit of output tokens; give it a larger max_tokens"


def aask_now(module: Any, inputs: Mapping[str, object], role: str | None = None) -> RoleOutput:
    return asyncio.run(aask(module, inputs, role))


each_way = pytest.mark.parametrize("consult", [ask, aask_now], ids=["sync", "async"])


class Does(dspy.Module):  # a role module, sync only, that returns or raises what it is given
    def __init__(self, outcome: Any) -> None:
        super().__init__()
        self.outcome = outcome

    def forward(self, **inputs: Any) -> Any:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome(**inputs) if callable(self.outcome) else self.outcome


@each_way
def test_content_is_plain_json_whatever_a_module_returns_and_typed_fields_become_objects(consult: Consult) -> None:
    """It is journaled as it is. What JSON has no word for becomes text, which no role may return in its place."""
    same = {"repaired_answer": "", "n": 10**400, "none": None}
    twos: dict[str, Any] = {"repair_passage": numpy.int64(2), "uint8": numpy.uint8(2), "enum": signal.SIGINT}
    halves = {"float32": numpy.float32(0.5), "float64": numpy.float64(0.5), "decimal": Decimal("0.5")}
    odd = {**twos, **halves, "scores": (1, 0.5), "nested": {1: {"a"}}, "blob": b"x"}
    consultation = consult(Does(dspy.Prediction(same | odd)), INPUTS)
    plain = same | dict.fromkeys(twos, 2) | dict.fromkeys(halves, 0.5)
    plain |= {"scores": [1, 0.5], "nested": {"1": "{'a'}"}, "blob": "b'x'"}
    assert consultation == RoleOutput(plain)
    assert json.loads(json.dumps(consultation.content, allow_nan=False)) == plain
    # A `dspy.Predict` put in a role's place returns pydantic models.
    step = {"expression": "3*12", "value": "36"}
    reply = {"derivation_steps": [step], "derived_answer": "36", "consistency_check": "36/12 = 3"}
    with dspy.context(lm=scripted_lm([reply])):
        assert consult(dspy.Predict(DeriveAnswer), {"question": "q"}) == RoleOutput(reply)


@each_way
@pytest.mark.parametrize("value", [None, "Doha", ["Doha"], 7])
def test_a_module_that_returns_no_fields_is_named(consult: Consult, value: Any) -> None:
    expected = f"The role module Does returned {value!r} ({type(value).__name__}); expected a dspy.Prediction"
    refuses(ArgumentError, re.escape(expected), consult, Does(value), INPUTS)
    assert consult(Does(REPAIR), INPUTS) == RoleOutput(REPAIR)  # a mapping has fields


@each_way
@each_case("asking", "misnamed fields")
def test_a_misnamed_field_is_a_bug(consult: Consult, role: str, inputs: Any, value: Any, message: str) -> None:
    """As an abstention it would let majority decide on every question without a word."""
    refuses(ArgumentError, f"^{re.escape(message)}", consult, Does(dspy.Prediction(**value)), inputs, role)


@each_way
@pytest.mark.parametrize("fields", [{"preferred": None}, {"preferred": "0"}, {"abstained": "tired", "choice": 0}, {}])
def test_a_bad_value_an_abstention_or_no_field_is_left_to_be_read(consult: Consult, fields: dict[str, Any]) -> None:
    """DSPy makes an empty prediction of a response without an answer."""
    assert consult(Does(dspy.Prediction(**fields)), FOR_JUDGE, "judge") == RoleOutput(fields)


@each_way
def test_what_cannot_be_read_is_an_abstention_with_its_reason_after_one_attempt_or_several(consult: Consult) -> None:
    lm = scripted_lm(["I don't know."])
    with dspy.context(lm=lm):
        consultation = consult(Repairer(), INPUTS)
    reason = "unparsable: The reply is not exactly one JSON object: Expecting value at character 0."
    assert consultation.content == {"abstained": reason, "kind": "unreadable"}
    assert isinstance(consultation.error, dspy.AdapterParseError) and len(lm.requests) == 1
    attempts = dspy.BestOfN(dspy.Predict(RepairAnswer), N=2, reward_fn=lambda inputs, reply: 1.0, threshold=0.5)
    with dspy.context(lm=scripted_lm(["neither this", "nor that"])):
        assert consult(attempts, INPUTS).content["abstained"].startswith("unparsable: ")


@each_way
def test_modules_are_read_strictly_unless_the_user_has_an_adapter_and_may_mend_an_error(consult: Consult) -> None:
    """The driver opens the strict adapter, so a module that knows nothing of it is read by it too."""
    with dspy.context(lm=scripted_lm(lambda _: SLOPPY)):
        for module in (Repairer(), dspy.Predict(RepairAnswer), Does(dspy.Predict(RepairAnswer))):
            assert isinstance(consult(module, INPUTS).error, dspy.AdapterParseError)
            with dspy.context(adapter=dspy.JSONAdapter()):
                assert consult(module, INPUTS) == RoleOutput(REPAIR)

    def second_try(**inputs: Any) -> dspy.Prediction:
        try:
            return dspy.Predict(RepairAnswer)(**inputs)
        except dspy.AdapterParseError:
            return dspy.Predict(RepairAnswer)(**inputs)

    for adapter in (None, dspy.JSONAdapter()):
        with dspy.context(lm=scripted_lm(["?", json.dumps(REPAIR)]), adapter=adapter):
            assert consult(Does(second_try), INPUTS) == RoleOutput(REPAIR)


@each_way
@pytest.mark.parametrize("adapter", [None, dspy.ChatAdapter()], ids=["strict", "the user's"])
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_what_a_call_or_a_module_raises_is_raised(consult: Consult, adapter: Any, error: Exception) -> None:
    of_lm = isinstance(error, lm15.AuthError)
    module = Repairer() if of_lm else Does(error)
    with dspy.context(lm=scripted_lm(lambda _: error), adapter=adapter), pytest.raises(Exception) as info:  # noqa: PT011
        consult(module, INPUTS)
    assert info.type is dspy.LMAuthError if of_lm else info.value is error


def test_every_fatal_failure_is_a_failure_and_what_may_come_through_another_time_is_not_fatal() -> None:
    assert all(issubclass(kind, FAILURES) for kind in FATAL)
    assert not issubclass(dspy.AdapterParseError, FAILURES)
    assert [is_fatal(error) for error in (*FINAL, *PASSING)] == [True, True, False, False, False]


@pytest.mark.slow  # imports LiteLLM
@pytest.mark.parametrize("model", ["nosuchprovider/x", "bogus"])
def test_an_unknown_provider_is_fatal(model: str) -> None:  # hazard 80
    with dspy.context(lm=dspy.LM(model, cache=False, num_retries=0)), pytest.raises(FAILURES) as info:
        ask(Repairer(), INPUTS)
    assert is_fatal(info.value)


@each_way
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: type(adapter).__name__)
@pytest.mark.parametrize("reply", ["[" * 100_000, '{"a":' * 100_000], ids=["arrays", "objects"])
def test_an_error_of_another_adapter_is_a_parse_error(consult: Consult, adapter: Any, reply: str) -> None:  # hazard 63
    """DSPy's adapters raise RecursionError here, and an LM that repeats itself writes just this."""
    with dspy.context(lm=scripted_lm(lambda _: reply), adapter=adapter):
        consultation = consult(Repairer(), INPUTS)
    assert consultation.content["abstained"].startswith("unparsable: RecursionError: ")
    error: Any = consultation.error
    assert isinstance(consultation.error, dspy.AdapterParseError) and error.lm_response == reply
    assert error.signature.output_fields.keys() == REPAIR.keys()


@each_way
def test_a_subclass_of_an_adapter_of_dspy_logs_nothing(consult: Consult, caplog: pytest.LogCaptureFixture) -> None:
    """DSPy calls back twice for a method that is inherited, once without names."""

    class Mine(dspy.JSONAdapter): ...

    logging.getLogger("dspy").addHandler(caplog.handler)
    try:
        with dspy.context(lm=scripted_lm(lambda _: json.dumps(REPAIR)), adapter=Mine()):
            assert consult(Repairer(), INPUTS).content == REPAIR
        with dspy.context(lm=scripted_lm(lambda _: "?"), adapter=Mine()):
            assert consult(Repairer(), INPUTS).content["abstained"].startswith("unparsable: ")
    finally:
        logging.getLogger("dspy").removeHandler(caplog.handler)
    assert caplog.text == ""


class Log(BaseCallback):
    def __init__(self) -> None:
        self.outputs: list[Any] = []

    def on_adapter_parse_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        self.outputs.append(outputs)


@each_way
@pytest.mark.parametrize("adapter", [None, dspy.JSONAdapter()], ids=["strict", "the user's"])
def test_the_user_s_callbacks_are_kept_and_asking_leaves_no_setting_behind(consult: Consult, adapter: Any) -> None:
    replies = iter([REPAIR])
    with dspy.context(lm=scripted_lm(lambda _: next(replies, "?")), adapter=adapter, callbacks=[log := Log()]):
        before = (dspy.settings.adapter, dspy.settings.callbacks)
        consult(Repairer(), INPUTS)
        assert log.outputs == [REPAIR]
        consult(Repairer(), INPUTS)
        refuses(KeyError, "a bug", consult, Does(KeyError("a bug")), INPUTS)
        assert (dspy.settings.adapter, dspy.settings.callbacks) == before


@each_way
@pytest.mark.parametrize("adapter", [None, *ADAPTERS[:1]], ids=["strict", "the user's"])
@each_case("asking", "replies that were cut")
def test_a_reply_that_was_cut_does_not_count_even_if_it_can_be_read(consult: Consult, adapter: Any, text: Any) -> None:
    with dspy.context(lm=scripted_lm([Line(text, cut=True)]), adapter=adapter):
        consultation = consult(Repairer(), INPUTS)
    assert (consultation.content["abstained"], type(consultation.error)) == (CUT_OFF, FlawedReplyError)
    assert str(consultation.error) == f"The LM's reply cannot be used: {CUT_OFF}."


@each_way
@pytest.mark.parametrize("adapter", [None, *ADAPTERS[:1], LENIENT], ids=["strict", "the user's", "lenient"])
@pytest.mark.parametrize("end", ["", "\n" * 999, " \t\r\n" * 99])
@pytest.mark.parametrize("thought", ["", "<think>It is Doha.</think>\n"])
def test_a_whole_reply_with_endless_white_space_counts(consult: Consult, adapter: Any, end: str, thought: str) -> None:
    with dspy.context(lm=scripted_lm([Line(f"{thought}{WHOLE}{end}", cut=True)]), adapter=adapter):
        assert consult(Repairer(), INPUTS) == RoleOutput(REPAIR)


@each_way
@pytest.mark.parametrize("text", ['{"repair_passage": 0,' + "\n" * 99, " " * 200, f"{WHOLE[:-1]}{' ' * 400}"])
def test_a_reply_that_was_cut_in_endless_white_space_says_so(consult: Consult, text: str) -> None:
    with dspy.context(lm=scripted_lm([Line(text, cut=True)])):
        reason = consult(Repairer(), INPUTS).content["abstained"]
    assert reason.startswith("cut off: the LM wrote endless white space up to its limit of output tokens")


PARTS: list[tuple[Any, str]] = [(ThinkingPart(f"Let me see, {{so}}. {WHOLE}"), "reasoning_content")]
PARTS += [(ToolCallPart("1", "reply", REPAIR), "tool_calls"), (RefusalPart(f"```json\n{WHOLE}\n```"), "refusal")]
PARTS += [(ThinkingPart('A set {1, 2}, and {"a'), ""), (RefusalPart("I cannot."), "")]


@each_way
@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize("text", ["", "I am sure."])
@pytest.mark.parametrize(("part", "name"), PARTS)
def test_json_elsewhere_is_named_and_not_read(consult: Consult, finish: Any, text: str, part: Any, name: str) -> None:
    message = Message.assistant([TextPart(text), part])
    reply = Response(id=None, model="m", message=message, finish_reason=finish, usage=Usage())
    with dspy.context(lm=scripted_lm([reply])):
        reason = consult(Repairer(), INPUTS).content["abstained"]
    assert reason.startswith("unparsable: " if finish == "stop" else "cut off: ")
    advice = f"; there is JSON in {name}, which is not read: have the server put it in content"
    assert reason.endswith(advice) if name else "there is JSON" not in reason


@each_way
def test_a_cut_reply_of_the_cache_is_not_a_reply_either_and_the_last_reply_counts(consult: Consult) -> None:
    with cached_by_dspy(), dspy.context(lm=scripted_lm(lambda _: CUT, cache=True)):
        assert [consult(Repairer(), INPUTS).content["abstained"] for _ in range(2)] == [CUT_OFF] * 2

    def twice(**inputs: Any) -> dspy.Prediction:
        dspy.Predict(RepairAnswer)(**inputs)
        return dspy.Predict(RepairAnswer)(**inputs)

    for script, abstains in (([CUT, REPAIR], False), ([REPAIR, CUT], True)):
        with dspy.context(lm=scripted_lm(script)):
            assert ("abstained" in consult(Does(twice), INPUTS).content) is abstains


@each_way
def test_a_cut_reply_of_one_consultation_is_not_held_against_another(consult: Consult) -> None:
    """One LM answers both at once, so that its own history would say nothing of whose reply was the last."""
    barrier = threading.Barrier(2, timeout=30)

    def reply(request: Any) -> Any:
        barrier.wait()
        return CUT if "zebra" in text_of(request) else REPAIR

    def once(question: str) -> RoleOutput:
        return consult(Repairer(), {**INPUTS, "question": question})

    with dspy.context(lm=scripted_lm(reply)):
        parallel: Any = dspy.Parallel(num_threads=2, disable_progress_bar=True)
        response = parallel([(once, {"question": one}) for one in ("zebra", "yak")])
    assert ["abstained" in one.content for one in response] == [True, False]


@each_way
@pytest.mark.parametrize(("of_lm", "of_call"), [({"n": 2}, {}), ({}, {"n": 2})], ids=["the LM's", "the call's"])
def test_as_many_answers_as_were_asked_for_are_not_several(consult: Consult, of_lm: Any, of_call: Any) -> None:
    with dspy.context(lm=(lm := scripted_lm(lambda _: REPAIR, temperature=1.0, **of_lm))):
        assert consult(dspy.Predict(RepairAnswer, **of_call), INPUTS).error is None
    assert len(lm.requests) == 2


def test_modules_without_async_are_asked_beside_each_other() -> None:
    """Each waits for the other, which would never come if one of them held up the event loop."""
    both_there = threading.Barrier(2, timeout=30)

    def meet(**_: Any) -> dict[str, str]:
        both_there.wait()
        return {"abstained": "met"}

    async def ask_both() -> Any:
        return await asyncio.gather(aask(Does(meet), INPUTS), aask(Does(meet), INPUTS))

    assert asyncio.run(ask_both()) == [RoleOutput({"abstained": "met"})] * 2
