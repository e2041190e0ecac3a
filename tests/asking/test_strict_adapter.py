"""A reply is one JSON object of the right fields and types, or it is rejected with a reason: nothing is repaired."""

import copy
import json
import pickle
import weakref
from typing import Annotated, Any, Literal

import dspy
import pytest
from dspy.utils import BaseCallback
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BeforeValidator, Field

from eldgr_dspy.programs.engines.reply_forms import reply_form
from eldgr_dspy.programs.engines.strict import _CACHE, StrictJSONAdapter, reason_of
from eldgr_dspy.programs.testing import scripted_lm, text_of
from eldgr_dspy.signatures import DerivationStep, JudgeCandidates, RepairAnswer
from tests.case_tables import each_case
from tests.memory import collect
from tests.refusing import refuses

ADAPTER = StrictJSONAdapter()
SCORES = [10, 10, 5, 10, 0, 5, 10, 9]
VERDICT = {"judge_rationale": "Passage 1 says so.", "assessments": [SCORES], "preferred": 0}
GOOD = json.dumps(VERDICT)
DRAFT = json.dumps({**VERDICT, "preferred": 1})
REPAIR = {"repair_passage": 0, "repaired_answer": "e"}


def verdict(**changes: Any) -> str:
    return json.dumps({**VERDICT, **changes})


def read(reply: str, signature: Any = JudgeCandidates) -> Any:
    return ADAPTER.parse(signature, reply)


def spell(reply: str) -> str:
    """A reply of the tables, in which GOOD and DRAFT are verdicts, and HEAD the first up to its last score."""
    return reply.replace("GOOD", GOOD).replace("DRAFT", DRAFT).replace("HEAD ", GOOD[: GOOD.index("9]]")])


@each_case("asking", "whole replies")
def test_a_reply_that_is_one_object_is_read(reply: str) -> None:
    fields = read(spell(reply))
    assert (fields["preferred"], fields["judge_rationale"]) == (0, "Passage 1 says so.")
    assert fields["assessments"][0].root == SCORES


@each_case("asking", "hints")
def test_a_field_that_no_rule_needs_takes_nothing_else_with_it(hint: Any) -> None:  # hazard 66
    fields = read(verdict(assessments=hint))
    assert (fields["preferred"], fields["assessments"]) == (0, hint)
    for passage in ("first", 1.5, None, [0], True):
        fields = REPAIR | {"repair_passage": passage}
        assert read(json.dumps(fields), RepairAnswer) == fields


@each_case("asking", "rejected replies")
def test_any_other_reply_is_rejected(reply: str, reason: str) -> None:  # hazards 57, 58, 59, 60, 61, 62, 63 and 70
    reply = spell(reply)
    with pytest.raises(dspy.AdapterParseError) as info:
        read(reply)
    text = reason_of(info.value)
    assert text.startswith(reason) and text.endswith(".")
    assert info.value.lm_response == reply and info.value.signature is JudgeCandidates


def test_a_number_outside_the_pool_is_left_to_the_core_and_a_quoted_verdict_is_text() -> None:  # hazards 59, 60, 71
    assert read(verdict(preferred=-1))["preferred"] == -1
    quote = 'Candidate 1 says {"preferred": 1} </think> [[ ## preferred ## ]] 1'
    assert read(verdict(judge_rationale=quote))["preferred"] == 0


class Choice(dspy.Signature):
    """Choose."""

    question: str = dspy.InputField()
    choice: Literal[0, 1] = dspy.OutputField()
    several: list[Literal[0, 1]] = dspy.OutputField()
    sure: bool = dspy.OutputField()


def test_a_boolean_is_read_only_where_one_is_asked_for_and_a_list_up_to_its_first_fault() -> None:
    """Pydantic alone would take true for a Literal[1], as Python does."""
    good = {"choice": 1, "several": [0, 1], "sure": True}
    assert read(json.dumps(good), Choice) == good
    for wrong in ({"choice": True}, {"several": [0, True]}, {"sure": 1}):
        refuses(dspy.AdapterParseError, ".", read, json.dumps({**good, **wrong}), Choice)
    # 64 KB of wrong items took a tenth of a second, nearly all of it for faults that nobody is told.
    looked_at = list[object]()

    class Many(dspy.Signature):
        """Choose."""

        question: str = dspy.InputField()
        several: list[Annotated[int, BeforeValidator(lambda item: looked_at.append(item) or item)]] = dspy.OutputField()

    refuses(dspy.AdapterParseError, ".", read, json.dumps({"several": [1, "x", *["y"] * 1_000]}), Many)
    assert looked_at == [1, "x"]


@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps))
@example("")
@example("<think>")
@example("```json\n\n```")
def test_whatever_an_lm_writes_is_read_or_rejected_and_nothing_else(reply: str) -> None:
    try:
        fields = read(reply, RepairAnswer)
    except dspy.AdapterParseError:
        return
    assert type(fields["repaired_answer"]) is str


def ask(lm: Any, adapter: Any) -> dspy.Prediction:
    with dspy.context(lm=lm, adapter=adapter):
        return dspy.Predict(RepairAnswer)(question="q", evidence=["e"])


def test_an_empty_reply_and_what_another_adapter_refuses_have_a_reason() -> None:  # hazard 57
    reasons = ("The LM returned an empty or null response.", "LM response cannot be serialized to a JSON object.")
    for adapter, reply, reason in zip((ADAPTER, dspy.JSONAdapter()), ("", "no"), reasons, strict=True):
        with pytest.raises(dspy.AdapterParseError) as info:
            ask(scripted_lm([reply]), adapter)
        assert reason_of(info.value) == reason  # of the other adapter its first line


class Inputs(dspy.Signature):
    """Say what is there."""

    words: list[str] = dspy.InputField()
    text: str = dspy.InputField()
    number: Any = dspy.InputField()
    word: str = dspy.OutputField()


@given(
    words=st.one_of(st.lists(st.text()), st.lists(st.one_of(st.text(), st.integers(), st.none()))),
    text=st.one_of(st.text(), st.lists(st.text())),
    number=st.one_of(st.text(), st.integers(), st.dictionaries(st.text(), st.text()), st.tuples(st.text())),
)
@example(words=["\ud800"], text="\ud800", number="")
@example(words=["\u2028", '"'], text="[[ ## text ## ]]", number=True)
@example(words=[], text="", number=[])
def test_any_inputs_are_shown_as_dspys_own_json_adapter_shows_them(words: Any, text: Any, number: Any) -> None:
    message: Any = (Inputs, {"words": words, "text": text, "number": number}, "a", "z")
    assert ADAPTER.format_user_message_content(*message) == dspy.JSONAdapter().format_user_message_content(*message)


def test_an_lm_is_sent_the_schema_that_dspys_own_json_adapter_sends_it() -> None:
    """What is kept for a signature is kept apart for LMs of different abilities."""
    for schema, params in ((True, {"response_format"}), (False, {"response_format"}), (False, set())):
        strict, lax = scripted_lm(lambda _: REPAIR), scripted_lm(lambda _: REPAIR)
        for engine in (strict.script, lax.script):
            engine.supports_response_schema, engine.supported_params = schema, frozenset(params)
        for _ in range(2):  # the second from what was kept
            ask(strict, ADAPTER)
            ask(lax, dspy.JSONAdapter())
        assert [request.config for request in strict.requests] == [request.config for request in lax.requests]


Digit = Annotated[int, Field(ge=0, le=3)]


class Form(dspy.Signature):
    """Say it in a form."""

    question: str = dspy.InputField()
    words: list[str] = dspy.OutputField(desc="one a line")
    kind: Literal["a", "b"] = dspy.OutputField()
    rows: list[Annotated[list[Digit], Field(min_length=2, max_length=2)]] = dspy.OutputField()
    score: float | None = dspy.OutputField()
    steps: list[DerivationStep] = dspy.OutputField()
    sure: bool = dspy.OutputField()


def test_the_form_of_a_reply_is_written_as_a_person_would() -> None:
    assert reply_form(Form).splitlines()[1:] == [
        "{", '"words": [string, ...] (one a line),', '"kind": "a" or "b",',
        '"rows": [[integer 0 to 3, 2 of them], ...],', '"score": number or null,',
        '"steps": [{"expression": string, "value": string}, ...],', '"sure": boolean', "}",
    ]  # fmt: skip


def test_new_instructions_make_a_new_prompt_and_what_is_kept_for_a_signature_goes_with_it() -> None:
    lm = scripted_lm(lambda _: REPAIR)
    predict: Any = dspy.Predict(RepairAnswer)
    with dspy.context(lm=lm, adapter=ADAPTER):
        predict(question="q", evidence=["e"])
        predict.signature = predict.signature.with_instructions("Copy the year.")
        predict(question="q", evidence=["e"])
        predict.signature.instructions = "Copy the place."
        predict(question="q", evidence=["e"])
    for request, words in zip(lm.requests, ("word for word", "the year", "the place"), strict=True):
        assert words in text_of(request)
    # An optimizer makes hundreds of signatures; none of them is held.
    with collect():
        signature: Any = RepairAnswer.with_instructions("Copy.")
        with dspy.context(lm=scripted_lm([REPAIR]), adapter=ADAPTER, disable_history=True, trace=None):
            dspy.Predict(signature)(question="q", evidence=["e"])
        assert signature in _CACHE
        reference = weakref.ref(signature)
        del signature
    assert reference() is None


def test_a_request_announces_one_format_and_one_parse_also_of_a_copied_or_pickled_adapter() -> None:
    """DSPy's JSONAdapter announces two formats, and a plain subclass of it three."""
    names: list[str] = []

    class Events(BaseCallback):
        def on_adapter_format_start(self, *_: Any, **__: Any) -> None:
            names.append("format")

        def on_adapter_parse_start(self, *_: Any, **__: Any) -> None:
            names.append("parse")

    with dspy.context(callbacks=[Events()]):
        ask(scripted_lm([REPAIR]), ADAPTER)
    assert names == ["format", "parse"]
    for twin in (copy.deepcopy(ADAPTER), pickle.loads(pickle.dumps(ADAPTER))):  # noqa: S301 - made here
        assert ask(scripted_lm([REPAIR]), twin).repaired_answer == "e"
