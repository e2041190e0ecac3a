"""The selector is a DSPy module like any other: streamed, observed, saved, copied, rebuilt and compiled."""

import asyncio
import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import BaseCallback

from eldgr_dspy.programs.engines.strict import StrictJSONAdapter, StrictStreamListener
from eldgr_dspy.programs.heuristics import heuristic_selector
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import text_of
from eldgr_dspy.signatures import JudgeCandidates
from tests.selecting import (
    CONTESTED,
    PENS,
    SETTLED,
    SILENT,
    asked,
    compiled_program,
    each_way,
    repair,
    saying,
    select_acall,
    select_asyncify,
    select_sync,
    selector_of,
    streamed,
    verdict,
)

# -- streams ----------------------------------------------------------------------------------------------------------


class Announce(dspy.streaming.StatusMessageProvider):
    def module_start_status_message(self, instance: Any, inputs: dict[str, Any]) -> str:
        return type(instance).__name__


@pytest.mark.parametrize("is_async", [False, True])
def test_a_stream_tells_which_role_is_asked(is_async: bool) -> None:
    with dspy.context(lm=saying(verdict(0))):
        stream = dspy.streamify(Selector(), status_message_provider=Announce(), is_async_program=is_async)
        pieces = asyncio.run(streamed(stream, CONTESTED))
    messages = [piece.message for piece in pieces if isinstance(piece, dspy.streaming.StatusMessage)]
    # A program that streamify calls in a thread begins before it can be announced.
    assert [message for message in messages if message != "Selector"] == ["Judge", "Predict", "Repairer", "Predict"]
    assert pieces[-1].answer == "Dubai"


def listen(listener: Any, is_async: bool, adapter: Any) -> tuple[str, Any]:
    with dspy.context(lm=saying(verdict(0), repair("Persian Gulf", 1)), adapter=adapter):
        stream = dspy.streamify(Selector(), stream_listeners=[listener], is_async_program=is_async)
        *pieces, pred = asyncio.run(streamed(stream, CONTESTED))
    assert all(piece.predict_name == "repairer.predict" for piece in pieces)
    return "".join(piece.chunk for piece in pieces).strip(), pred


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("adapter", [None, StrictJSONAdapter(), dspy.JSONAdapter()])
def test_a_role_s_field_streams_as_it_is_written(is_async: bool, adapter: Any) -> None:
    text, pred = listen(StrictStreamListener("repaired_answer"), is_async, adapter)
    assert text == '"Persian Gulf"'
    assert (pred.answer, pred.branch) == ("Persian Gulf", "repair")


def test_a_listener_of_ours_reads_the_user_s_chat_adapter_too() -> None:
    reply = "[[ ## repair_passage ## ]]\n0\n\n[[ ## repaired_answer ## ]]\nDoha\n\n[[ ## completed ## ]]"
    with dspy.context(lm=saying("?", reply), adapter=dspy.ChatAdapter(use_json_adapter_fallback=False)):
        stream = dspy.streamify(Selector(), stream_listeners=[StrictStreamListener("repaired_answer")])
        *pieces, pred = asyncio.run(streamed(stream, CONTESTED))
    assert "".join(piece.chunk for piece in pieces) == pred.answer == "Doha"


def test_dspy_s_own_listener_hears_nothing_of_strict_replies() -> None:
    """Pinned, for it is why `StrictStreamListener` exists: it knows three adapters, by the names of their classes."""
    text, pred = listen(dspy.streaming.StreamListener("repaired_answer"), False, None)
    assert (text, pred.answer) == ("", "Persian Gulf")
    with pytest.raises(ValueError, match="Unsupported adapter for streaming: StrictJSONAdapter"):
        # Async, for a stream that breaks off may leave a sync program's thread waiting for its reader.
        listen(dspy.streaming.StreamListener("repaired_answer"), True, StrictJSONAdapter())


# -- what observers see -----------------------------------------------------------------------------------------------


class Spans(BaseCallback):
    def __init__(self) -> None:
        self.opened: dict[str, str] = {}
        self.closed: list[str] = []

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.opened[call_id] = type(instance).__name__

    def on_module_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        self.closed.append(self.opened[call_id])


@pytest.mark.parametrize("call", [select_sync, select_acall])
def test_a_trace_has_one_span_a_role_under_its_name(call: Callable[..., Any]) -> None:
    spans = Spans()
    with dspy.context(lm=saying(verdict(0)), callbacks=[spans]):
        call(Selector(), CONTESTED)
        call(Selector(), PENS)
    asked = ["Selector", "Judge", "Predict", "Repairer", "Predict", "Selector", "Deriver", "Predict"]
    assert list(spans.opened.values()) == asked
    assert spans.closed == ["Predict", "Judge", "Predict", "Repairer", "Selector", "Predict", "Deriver", "Selector"]


@pytest.mark.parametrize("call", [select_sync, select_acall, select_asyncify])
def test_usage_is_counted_for_all_roles(call: Callable[..., Any]) -> None:
    select = Selector()
    select.judge.set_lm(saying(verdict(0), model="scripted/judge"))
    select.repairer.set_lm(saying(model="scripted/repairer"))
    with dspy.context(track_usage=True):
        usage = call(select, CONTESTED).get_lm_usage()
    assert set(usage) == {"scripted/judge", "scripted/repairer"}
    assert all(count["total_tokens"] > 0 for count in usage.values())


def test_where_nobody_is_asked_nothing_is_used() -> None:
    with dspy.context(lm=saying(), track_usage=True):
        assert Selector()(**SETTLED).get_lm_usage() == {}


# -- copies and files -------------------------------------------------------------------------------------------------


def taught() -> Selector:
    """A selector whose judge has other instructions and a demonstration, and that asks every role."""
    select = Selector(consult="always")
    predict: Any = select.judge.predict
    predict.signature = predict.signature.with_instructions("Prefer the shortest.")
    predict.demos = [dspy.Example(question="q", evidence=["e"], candidates=["a"], **verdict(0, 1))]
    return select


def demos_of(select: Selector) -> list[Any]:
    predict: Any = select.judge.predict
    demos: list[Any] = predict.demos
    return demos


def test_a_selector_is_saved_and_loaded(tmp_path: Path) -> None:
    select, loaded = taught(), Selector(consult="always")
    select.save(tmp_path / "select.json")
    loaded.load(tmp_path / "select.json")
    lm, reference = saying(verdict(2)), saying(verdict(2))
    with dspy.context(lm=lm):
        pred = loaded(**CONTESTED)
    with dspy.context(lm=reference):
        assert select(**CONTESTED).answer == pred.answer == "Doha"
    assert lm.requests == reference.requests
    assert "Prefer the shortest." in text_of(lm.requests[0])


def test_a_whole_program_is_saved_and_loaded(tmp_path: Path) -> None:
    taught().save(tmp_path / "program", save_program=True)
    loaded: Any = dspy.load(str(tmp_path / "program"), allow_pickle=True)
    lm = saying(verdict(2))
    with dspy.context(lm=lm):
        assert loaded(**CONTESTED).answer == "Doha"
    assert asked(lm) == ["judge", "repairer"]
    assert "Prefer the shortest." in text_of(lm.requests[0])


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda select: select.deepcopy()])
def test_a_copy_is_as_the_original_and_apart_from_it(duplicate: Callable[[Selector], Selector]) -> None:
    select = taught()
    select.set_lm(saying(verdict(2)))
    twin = duplicate(select)
    assert twin(**CONTESTED).toDict() == select(**CONTESTED).toDict()
    demos_of(twin).clear()
    assert len(demos_of(select)) == 1


def test_a_reset_copy_has_no_demonstrations_and_decides_alike() -> None:
    select = taught()
    twin = select.reset_copy()
    assert demos_of(twin) == []
    with dspy.context(lm=saying(verdict(2))):
        assert twin(**CONTESTED).toDict() == select(**CONTESTED).toDict()


# -- other modules in a role ------------------------------------------------------------------------------------------


class FirstOfAll(dspy.Module):
    """A judge of one's own: the candidate whose words stand earliest in the evidence. Sync only."""

    def forward(self, question: str, evidence: list[str], candidates: list[str]) -> dspy.Prediction:
        places = [" ".join(evidence).find(candidate) for candidate in candidates]
        found = [place for place in places if place >= 0]
        if not found:
            return dspy.Prediction(abstained="none stands there")
        return dspy.Prediction(assessments=None, preferred=places.index(min(found)), judge_rationale="by place")


@each_way
def test_a_module_of_one_s_own_may_judge(call: Callable[..., Any]) -> None:
    select = Selector()
    select.judge = FirstOfAll()
    pred = call(select, CONTESTED)
    assert (pred.answer, pred.branch, pred.preference) == ("Doha", "judge", 2)


@each_way
def test_a_chain_of_thought_may_judge_and_is_read_strictly(call: Callable[..., Any]) -> None:
    select = Selector()
    select.judge = dspy.ChainOfThought(JudgeCandidates)
    good = {"reasoning": "Let me see.", **verdict(2)}
    with dspy.context(lm=saying(good)):
        assert call(select, CONTESTED).answer == "Doha"
    with dspy.context(lm=saying(f"Sure: {json.dumps(good)}")):
        pred = call(select, CONTESTED)
    assert pred.answer == "Dubai"
    assert pred.abstentions["judge"].startswith("unparsable: The reply is not exactly one JSON object")


@each_way
def test_roles_without_an_lm_fit_in_the_same_places(call: Callable[..., Any]) -> None:
    select = heuristic_selector()
    assert call(select, CONTESTED).toDict() == select(**CONTESTED).toDict()
    assert call(select, PENS).abstentions == {"deriver": "the heuristic deriver derives nothing"}


@pytest.mark.parametrize("call", [select_sync, select_acall])
@pytest.mark.parametrize("error", [KeyError("a bug"), ConnectionError("refused"), TimeoutError("late")])
@pytest.mark.parametrize("on_error", ["abstain", "raise"])
def test_a_bug_or_a_failed_call_is_never_an_abstention(call: Any, error: Exception, on_error: Any) -> None:
    with pytest.raises(type(error)):
        call(selector_of(error, on_error=on_error), CONTESTED)


# -- compiled (law 20) ------------------------------------------------------------------------------------------------


def test_compiling_teaches_the_roles_that_were_asked() -> None:
    select: Any = compiled_program().select
    taught = {
        "preferred": select.judge.predict.demos,
        "repaired_answer": select.repairer.predict.demos,
        "derived_answer": select.deriver.predict.demos,
    }
    assert [sum(output in demo for demo in demos) for output, demos in taught.items()] == [2, 2, 0]


@pytest.mark.parametrize("call", [select_sync, select_acall])
def test_no_optimizer_breaks_a_law(call: Any, tmp_path: Path) -> None:
    program = compiled_program()
    program.select.save(tmp_path / "compiled.json")
    loaded = Selector(consult="always")
    loaded.load(tmp_path / "compiled.json")
    for select in (program.select, loaded):
        for said, answer in (((verdict(0), repair("Manama")), "Dubai"), ((verdict(2), SILENT), "Doha")):
            lm = saying(*said)
            with dspy.context(lm=lm):
                assert call(select, CONTESTED).answer == answer
            assert len(lm.requests[0].messages) > 2  # the demonstrations are shown
