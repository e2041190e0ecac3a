"""Who streams or observes DSPy has one span a role, under the name of the module that plays it, and its calls below."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dspy
import pytest

from eldgr_dspy.programs.engines.strict import StrictJSONAdapter, StrictStreamListener
from eldgr_dspy.programs.judges import Comparer, PairwiseJudge, PointwiseJudge, SwapConsistent
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm
from tests.selecting import (
    CONTESTED,
    DERIVATION,
    PENS,
    SETTLED,
    SILENT,
    Announce,
    Returns,
    Spans,
    each_call,
    each_way,
    repair,
    saying,
    streamed,
    verdict,
)

EACH = [(None, {}), (None, {"timeout": 60}), (None, {"replies": "lenient"}), (StrictJSONAdapter(), {})]
REPAIRED = ["Repairer", ["Predict"]]


# -- streams ----------------------------------------------------------------------------------------------------------
def stream_of(listener: Any, is_async: bool, adapter: Any = None, lm: Any = None, **options: Any) -> Any:
    """The text of a field, the messages and the prediction of a stream."""
    streaming: dict[str, Any] = {"stream_listeners": [listener], "status_message_provider": Announce()}
    with dspy.context(lm=lm or saying(verdict(0), repair("Persian Gulf", 1)), adapter=adapter):
        stream = dspy.streamify(Selector(**options), is_async_program=is_async, **streaming)
        *pieces, pred = asyncio.run(streamed(stream, CONTESTED))
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


def test_a_listener_of_ours_reads_the_user_s_chat_adapter_too() -> None:
    reply = "[[ ## repair_passage ## ]]\n0\n\n[[ ## repaired_answer ## ]]\nDoha\n\n[[ ## completed ## ]]"
    chat = dspy.ChatAdapter(use_json_adapter_fallback=False)
    text, _, pred = stream_of(StrictStreamListener("repaired_answer"), False, chat, saying("?", reply))
    assert text == pred.answer == "Doha"


def test_dspy_s_own_listener_hears_nothing_of_strict_replies() -> None:
    """Pinned, for it is why `StrictStreamListener` exists: it knows three adapters, by the names of their classes."""
    text, _, pred = stream_of(dspy.streaming.StreamListener("repaired_answer"), False)
    assert (text, pred.answer) == ("", "Persian Gulf")
    with pytest.raises(ValueError, match="Unsupported adapter for streaming: StrictJSONAdapter"):
        # Async, for a stream that breaks off may leave a sync program's thread waiting for its reader.
        stream_of(dspy.streaming.StreamListener("repaired_answer"), True, StrictJSONAdapter())


# -- usage ------------------------------------------------------------------------------------------------------------
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
    assert {name: count["total_tokens"] > 0 for name, count in usage[0].items()} == {
        "scripted/judge": True,
        "scripted/repairer": True,
    }


# -- spans ------------------------------------------------------------------------------------------------------------
def scripted(output: str, reply: dict[str, Any]) -> Any:
    """An LM that replies where this output is wanted, and has no span."""

    def answer(request: Any) -> Any:
        return reply if output in request.config.response_format["schema"]["properties"] else SILENT

    return scripted_lm(answer)


POINTS = {"candidate_rationale": "", "assessment": [5] * 8}
TREES: dict[str, tuple[Callable[[], Any], Any, list[Any]]] = {
    "a role": (Judge, saying(verdict(0)), ["Judge", ["Predict"]]),
    "two orders": (
        lambda: SwapConsistent(Judge()),
        saying(verdict(0)),
        ["SwapConsistent", *[["Judge", ["Predict"]]] * 2],
    ),
    "pairs": (
        lambda: PairwiseJudge(SwapConsistent(Comparer())),
        scripted("better", {"comparison_rationale": "", "better": 0}),
        ["PairwiseJudge", ["SwapConsistent", *[["Comparer", ["Predict"]]] * 2]],
    ),
    "points": (PointwiseJudge, scripted("assessment", POINTS), ["PointwiseJudge", *[["Assessor", ["Predict"]]] * 2]),
}


@each_call
@pytest.mark.parametrize(("judge", "lm", "tree"), TREES.values(), ids=TREES)
def test_each_role_is_one_span(call: Callable[..., Any], judge: Callable[[], Any], lm: Any, tree: list[Any]) -> None:
    select, spans = Selector(), Spans()
    select.judge, select.deriver = judge(), Returns(DERIVATION)
    with dspy.context(lm=lm, callbacks=[spans]):
        call(select, CONTESTED)
        call(select, PENS)
    assert spans.below() == [["Selector", tree, REPAIRED], ["Selector", ["Returns"]]]


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
    done = subprocess.run(
        command, env={**os.environ, **options}, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    traces = json.loads(done.stdout.splitlines()[-1])
    roles = [[name for name, above in trace if above == "Selector.forward"] for trace in traces]
    assert sorted(roles) == [["Deriver.forward"], ["Judge.forward", "Repairer.forward"]]
    for trace in traces:
        assert [name for name, above in trace if above is None] == ["Selector.forward"]
        predicts = [above for name, above in trace if name == "Predict.forward"]
        assert predicts == [name for name, above in trace if above == "Selector.forward"]
