"""Who streams or observes DSPy has one span a role, with its calls below; nobody looks through what DSPy remembers."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.programs.engines.strict import StrictJSONAdapter, StrictStreamListener
from eldgr_dspy.programs.judges import Comparer, PairwiseJudge, PointwiseJudge, SwapConsistent
from eldgr_dspy.programs.lms.credentials import remember_credentials
from eldgr_dspy.programs.lms.lms import holds_lm, with_lms
from eldgr_dspy.programs.roles import Judge, Repairer
from eldgr_dspy.programs.run.fingerprints import describe
from eldgr_dspy.programs.run.role_calls import role_call
from eldgr_dspy.programs.sampled import Sampled
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm
from eldgr_dspy.programs.typed_answers import outputs
from tests.case_tables import build, each_case
from tests.modules import Announce, Spans
from tests.refusing import refuses
from tests.scenes import CONTESTED, DERIVATION, PENS, SETTLED, in_style, repair, verdict
from tests.selecting import each_call, each_way, pieces_of, saying, selector_of

EACH = [(None, {}), (None, {"timeout": 60}), (None, {"replies": "lenient"}), (StrictJSONAdapter(), {})]


def stream_of(listener: Any, is_async: bool, adapter: Any = None, lm: Any = None, **options: Any) -> Any:
    """The text of a field, the messages and the prediction of a stream."""
    streaming: dict[str, Any] = {"stream_listeners": [listener], "status_message_provider": Announce()}
    with dspy.context(lm=lm or saying(verdict(0), repair("Persian Gulf", 1)), adapter=adapter):
        stream = dspy.streamify(Selector(**options), is_async_program=is_async, **streaming)
        *pieces, pred = asyncio.run(pieces_of(stream, CONTESTED))
    chunks = [piece for piece in pieces if hasattr(piece, "chunk")]
    assert all(piece.predict_name == "repairer.predict" for piece in chunks)
    return "".join(piece.chunk for piece in chunks), [piece.message for piece in pieces if piece not in chunks], pred


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(("adapter", "options"), [*EACH, (dspy.JSONAdapter(), {})])
def test_a_field_streams_and_a_message_says_who_is_asked(is_async: bool, adapter: Any, options: dict[str, Any]) -> None:
    text, messages, pred = stream_of(StrictStreamListener("repaired_answer"), is_async, adapter, **options)
    assert (text.strip(), pred.answer, pred.branch) == ('"Persian Gulf"', "Persian Gulf", "repair")
    # A program that streamify calls in a thread begins before it can be announced.
    assert [message for message in messages if message != "Selector"] == ["Judge", "Predict", "Repairer", "Predict"]


def test_a_listener_of_ours_reads_the_user_s_chat_adapter_too_and_dspy_s_own_hears_nothing_of_strict_replies() -> None:
    """Pinned, as the reason for `StrictStreamListener`: DSPy's knows three adapters, by the names of their classes."""
    reply = "[[ ## repair_passage ## ]]\n0\n\n[[ ## repaired_answer ## ]]\nDoha\n\n[[ ## completed ## ]]"
    chat = dspy.ChatAdapter(use_json_adapter_fallback=False)
    text, _, pred = stream_of(StrictStreamListener("repaired_answer"), False, chat, saying("?", reply))
    assert text == pred.answer == "Doha"
    text, _, pred = stream_of(dspy.streaming.StreamListener("repaired_answer"), False)
    assert (text, pred.answer) == ("", "Persian Gulf")
    # Async, for a stream that breaks off may leave a sync program's thread waiting for its reader.
    listener, message = dspy.streaming.StreamListener("repaired_answer"), "streaming: StrictJSONAdapter"
    refuses(ValueError, f"Unsupported adapter for {message}", stream_of, listener, True, StrictJSONAdapter())


@each_way
def test_usage_is_counted_for_all_roles_within_a_timeout_or_without(call: Callable[..., Any]) -> None:
    usage = []
    for timeout in (None, 60):
        select = Selector(timeout=timeout)
        select.judge.set_lm(saying(verdict(0), model="scripted/judge"))
        select.repairer.set_lm(saying(model="scripted/repairer"))
        with dspy.context(track_usage=True):
            usage.append(call(select, CONTESTED).get_lm_usage())
            assert call(select, SETTLED).get_lm_usage() == {}  # nobody is asked
    assert usage[0] == usage[1]
    tokens = {name: count["total_tokens"] > 0 for name, count in usage[0].items()}
    assert tokens == {"scripted/judge": True, "scripted/repairer": True}


OBLIGING = scripted_lm(lambda request: in_style(request, 0, 0.5, n=3))
KINDS: dict[str, Any] = {"Judge": Judge, "SwapConsistent": SwapConsistent, "Comparer": Comparer}
KINDS |= {"PairwiseJudge": PairwiseJudge, "PointwiseJudge": PointwiseJudge}


@each_call
@each_case("selector", "spans of judges")
def test_each_role_is_one_span(call: Callable[..., Any], judge: Any, tree: list[Any]) -> None:
    spans = Spans()
    select = selector_of(build(judge, KINDS), Repairer(), DERIVATION)
    with dspy.context(lm=OBLIGING, callbacks=[spans]):
        call(select, CONTESTED)
        call(select, PENS)
    assert spans.below() == [["Selector", tree, ["Repairer", ["Predict"]]], ["Selector", ["Returns"]]]


# MLflow patches DSPy for good, so it is observed in a process of its own. Its imports warn; what is ours may not.
SCRIPT = """
import json, sys, warnings
import mlflow
from dspy import context
from tests.selecting import CONTESTED, PENS, saying, verdict
from eldgr_dspy.programs.selector import Selector

mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_experiment("spans")
mlflow.dspy.autolog()
with context(lm=saying(verdict(0))), warnings.catch_warnings():
    warnings.simplefilter("error")
    Selector()(**CONTESTED)
    Selector()(**PENS)

found = []
for trace in mlflow.search_traces(return_type="list"):
    names = {span.span_id: span.name for span in trace.data.spans}
    found.append([[span.name, names.get(span.parent_id)] for span in trace.data.spans])
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mlflow") is None, reason="MLflow is not installed; the extra `mlflow` has it")
def test_mlflow_s_autolog_has_one_span_a_role_under_its_name(tmp_path: Path) -> None:
    options = {
        "MLFLOW_ALLOW_FILE_STORE": "true",  # a database takes ten seconds to be made
        "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }
    command = [sys.executable, "-c", SCRIPT, (tmp_path / "store").as_uri()]
    result = subprocess.run(
        command, env={**os.environ, **options}, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 0, result.stderr
    traces = json.loads(result.stdout.splitlines()[-1])
    roles = [[name for name, above in trace if above == "Selector.forward"] for trace in traces]
    assert sorted(roles) == [["Deriver.forward"], ["Judge.forward", "Repairer.forward"]]
    for trace in traces:
        assert [name for name, above in trace if above is None] == ["Selector.forward"]
        predicts = [above for name, above in trace if name == "Predict.forward"]
        assert predicts == [name for name, above in trace if above == "Selector.forward"]


REPLY = "[[ ## answer ## ]]\nDoha\n\n[[ ## completed ## ]]"


class Desk(dspy.Module):  # a program that retrieves its own passages
    def __init__(self) -> None:
        super().__init__()
        self.respond = dspy.Predict("context: list[str], question -> answer")

    def forward(self, question: str) -> Any:
        return self.respond(context=["Doha is the capital of Qatar."], question=question)

    async def aforward(self, question: str) -> Any:
        return await self.respond.acall(context=["Doha is the capital of Qatar."], question=question)


def function_calls(work: Callable[[], Any]) -> int:
    """How many functions are called meanwhile, in this thread and in those that it starts."""
    total = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal total
        total += event in ("call", "c_call")

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return total


@each_call
def test_a_later_call_of_a_sampled_program_calls_as_many_functions_as_an_early_one(call: Any) -> None:
    program = Sampled(Desk(), n=3, num_threads=1)
    work = partial(call, program, {"question": "Which?"})
    with dspy.context(lm=scripted_lm(lambda _: REPLY)):
        for _ in range(3):
            work()
        early = function_calls(work)
        for _ in range(20):
            work()
        assert len(program.history) == 3 * 24
        assert function_calls(work) < 1.1 * early  # a walk through the history makes it twice as many


class Seal(list[Any]):  # a record that nobody may read
    def __iter__(self) -> Any:
        raise AssertionError("The record was read.")


LOOKS: list[Any] = [with_lms, remember_credentials, holds_lm, outputs, describe, role_call]


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.__name__)
def test_who_looks_for_modules_and_lms_does_not_read_what_they_remember(look: Callable[..., Any]) -> None:
    lm = scripted_lm(lambda _: REPLY)
    program: Any = Sampled(Desk(), select=Selector())
    program.program.set_lm(lm)
    several: list[Any] = [lm, program, program.program, program.program.respond, program.select, program.select.judge]
    for one in several:
        one.history = Seal([{"messages": [{"content": "Which?"}]}])
    look(program, *[lambda lm: lm] * (look is with_lms))
