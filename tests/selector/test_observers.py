"""Whoever observes DSPy sees one span a role, under the name of the module that plays it, and its calls below it."""

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
from dspy.utils import BaseCallback
from dspy.utils.callback import ACTIVE_CALL_ID

from eldgr_dspy.programs.judges import Comparer, PairwiseJudge, PointwiseJudge, SwapConsistent
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import scripted_lm
from tests.selecting import CONTESTED, SILENT, saying, select_acall, select_sync, verdict

Tree = dict[str, Any]

both_ways = pytest.mark.parametrize("call", [select_sync, select_acall])


class Spans(BaseCallback):
    """Keeps which module called which, by the names of their classes."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.parents: dict[str, str | None] = {}

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.names[call_id], self.parents[call_id] = type(instance).__name__, ACTIVE_CALL_ID.get()

    def below(self, parent: str | None = None) -> list[Any]:
        """The spans below one, each with those below itself."""
        return [[self.names[one], *self.below(one)] for one, above in self.parents.items() if above == parent]


def spans_of(call: Callable[..., Any], judge: dspy.Module, lm: Any) -> list[Any]:
    select, spans = Selector(), Spans()
    select.judge = judge
    with dspy.context(lm=lm, callbacks=[spans]):
        call(select, CONTESTED)
    return spans.below()


REPAIRED = ["Repairer", ["Predict"]]


@both_ways
def test_each_role_is_one_span_with_its_call_below_it(call: Callable[..., Any]) -> None:
    assert spans_of(call, Judge(), saying(verdict(0))) == [["Selector", ["Judge", ["Predict"]], REPAIRED]]


@both_ways
def test_a_judge_in_two_orders_is_one_span_with_two_judges_below_it(call: Callable[..., Any]) -> None:
    twice = ["SwapConsistent", ["Judge", ["Predict"]], ["Judge", ["Predict"]]]
    assert spans_of(call, SwapConsistent(Judge()), saying(verdict(0))) == [["Selector", twice, REPAIRED]]


@both_ways
def test_the_parts_of_a_judge_have_their_own_names(call: Callable[..., Any]) -> None:
    comparing = scripted_lm(lambda one: {"comparison_rationale": "", "better": 0} if _asks(one, "better") else SILENT)
    pairs = ["PairwiseJudge", ["SwapConsistent", *[["Comparer", ["Predict"]]] * 2]]
    assert spans_of(call, PairwiseJudge(SwapConsistent(Comparer())), comparing) == [["Selector", pairs, REPAIRED]]
    scores = {"candidate_rationale": "", "assessment": [5] * 8}
    scoring = scripted_lm(lambda one: scores if _asks(one, "assessment") else SILENT)
    points = ["PointwiseJudge", *[["Assessor", ["Predict"]]] * 2]
    assert spans_of(call, PointwiseJudge(), scoring) == [["Selector", points, REPAIRED]]


def _asks(request: Any, output: str) -> bool:
    return output in request.config.response_format["schema"]["properties"]


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
