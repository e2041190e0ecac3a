"""A decision is reported to OpenTelemetry and to DSPy's callbacks, without a text; who watches does not change it."""

import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import dspy
import pytest
from dspy.utils import BaseCallback
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes

from eldgr_dspy.programs import telemetry
from eldgr_dspy.programs.requests.metered_lms import with_meter
from eldgr_dspy.programs.requests.metering import metering
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.service.service_log import LOG
from eldgr_dspy.programs.telemetry import DecisionEvent
from eldgr_dspy.redaction import remember
from tests.selecting import CONTESTED, PENS, SETTLED, saying, select_acall, select_sync, verdict, with_judge

both_ways = pytest.mark.parametrize("call", [select_sync, select_acall])

Call = Callable[[Selector, Any], Any]


class Watcher(BaseCallback):  # keeps what it is given
    def __init__(self) -> None:
        self.events: list[DecisionEvent] = []
        self.calls: list[tuple[str, object]] = []
        self.started: dict[str, object] = {}

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.started[call_id] = instance

    def on_decision(self, call_id: str, instance: Selector, event: DecisionEvent) -> None:
        self.calls.append((call_id, instance))
        self.events.append(event)


@pytest.fixture(autouse=True)
def logged_anew() -> Iterator[None]:
    LOG.kinds.clear()
    yield
    LOG.kinds.clear()


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """What a service's own provider exports; a process can set one only once."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter


def decide(call: Call, lm: Any, inputs: Any = CONTESTED, **options: Any) -> tuple[Any, Watcher]:
    watcher, select = Watcher(), Selector(**options)
    with dspy.context(lm=lm, callbacks=[watcher]):
        return call(select, inputs), watcher


def attributes(spans: InMemorySpanExporter) -> dict[str, Any]:
    (span,) = spans.get_finished_spans()
    return dict(span.attributes or {})


def test_the_names_are_those_of_the_conventions() -> None:
    ours = (telemetry.OPERATION_NAME, telemetry.AGENT_NAME, telemetry.INPUT_TOKENS, telemetry.OUTPUT_TOKENS)
    names = ("OPERATION_NAME", "AGENT_NAME", "USAGE_INPUT_TOKENS", "USAGE_OUTPUT_TOKENS")
    assert ours == tuple(getattr(gen_ai_attributes, f"GEN_AI_{name}") for name in names)
    assert telemetry.ERROR_TYPE == error_attributes.ERROR_TYPE


@both_ways
def test_a_callback_is_given_what_a_decision_is_and_cost(call: Call) -> None:
    pred, watcher = decide(call, saying(verdict(2)))
    ((call_id, instance),), (event,) = watcher.calls, watcher.events
    assert watcher.started[call_id] is instance
    assert (event.branch, event.reason, event.certified) == (pred.branch, pred.reason, True)
    assert (event.consulted, event.abstentions, event.failures) == (("judge",), {}, {})
    assert event.input_tokens and event.output_tokens
    assert event.call_seconds.keys() == {"judge"}
    assert 0 < event.call_seconds["judge"] <= event.seconds


@both_ways
@pytest.mark.parametrize("timeout", [None, 60])
def test_an_outage_is_in_the_event_by_kind_without_a_text(call: Call, timeout: Any) -> None:
    lm = saying(dspy.LMServerError("the passage is SECRET"))
    _, watcher = decide(call, lm, on_failure="abstain", timeout=timeout)
    (event,) = watcher.events
    assert event.failures == {"judge": "LMServerError"}
    assert event.abstentions == {"repairer": "nothing to say"}
    assert event.call_seconds.keys() == {"judge", "repairer"}
    assert "SECRET" not in repr(event)


@both_ways
def test_a_span_has_the_event_and_whatever_is_called_is_below_it(call: Call, spans: InMemorySpanExporter) -> None:
    current = []

    class Seen(dspy.Module):
        def forward(self, **inputs: Any) -> Any:
            current.append(trace.get_current_span().get_span_context())
            return dspy.Prediction(abstained="no idea")

        async def aforward(self, **inputs: Any) -> Any:
            return self.forward()

    select = with_judge(Seen(), on_failure="abstain", timeout=60)
    with dspy.context(lm=saying(repairer=dspy.LMServerError("gone"))):
        call(select, CONTESTED)
    (span,) = spans.get_finished_spans()
    assert current == [span.get_span_context()]
    assert span.name == "invoke_workflow Selector"
    reply: dict[str, Any] = dict(span.attributes or {})
    assert reply.pop("eldgr.seconds.judge") >= 0
    assert reply.pop("eldgr.seconds.repairer") >= 0
    assert reply == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.agent.name": "Selector",
        "eldgr.branch": "consensus",
        "eldgr.reason": "default",
        "eldgr.certificate": "uncertified",
        "eldgr.consulted": ("judge", "repairer"),
        "eldgr.abstentions.judge": "nothing to say",
        "eldgr.failures.repairer": "LMServerError",
    }


@both_ways
def test_a_call_that_raises_is_a_span_with_its_error_and_no_key(call: Call, spans: InMemorySpanExporter) -> None:
    remember("sk-77aYq7Yt55ab")
    with dspy.context(lm=saying(dspy.LMServerError("key sk-77aYq7Yt55ab"))), pytest.raises(dspy.LMServerError):
        call(Selector(), CONTESTED)
    (span,) = spans.get_finished_spans()
    assert attributes(spans)["error.type"] == "LMServerError"
    assert span.status.status_code is trace.StatusCode.ERROR
    assert "sk-77aYq7Yt55ab" not in span.to_json()


def test_tokens_are_those_of_all_calls_and_unknown_is_not_zero(spans: InMemorySpanExporter) -> None:
    lm = saying(verdict(0))
    _, watcher = decide(select_sync, lm)
    with dspy.context(lm=saying(verdict(0))), dspy.track_usage() as usage:
        Selector()(**CONTESTED)
    ((total,), (event,)) = usage.get_total_tokens().values(), watcher.events
    assert (event.input_tokens, event.output_tokens) == (total["prompt_tokens"], total["completion_tokens"])
    spans.clear()
    with dspy.context(lm=lm):
        Selector()(**SETTLED)
    assert attributes(spans).keys().isdisjoint({telemetry.INPUT_TOKENS, telemetry.OUTPUT_TOKENS})


@both_ways
@pytest.mark.parametrize("timeout", [None, 60])
def test_who_counts_tokens_around_a_selector_counts_each_once_watched_or_not(call: Call, timeout: Any) -> None:
    totals = []
    for callbacks in ([], [Watcher()]):
        with dspy.context(lm=saying(verdict(0)), callbacks=callbacks), dspy.track_usage() as usage:
            call(Selector(timeout=timeout), CONTESTED)
        totals.append(usage.get_total_tokens())
    assert totals[0] == totals[1]
    assert totals[0]


@both_ways
@pytest.mark.parametrize("callbacks", [[], [Watcher()]], ids=["unwatched", "watched"])
@pytest.mark.parametrize("timeout", [None, 60])
def test_a_run_meters_each_request_of_a_selector_in_a_program(call: Call, callbacks: Any, timeout: Any) -> None:
    select: Any = Selector(timeout=timeout)
    select.set_lm(saying(verdict(0)))
    twin: Any = with_meter(select)
    with dspy.context(callbacks=callbacks), metering() as meter:
        call(twin, CONTESTED)
    assert [bool(entry.prompt_tokens) for entry in meter.entries] == [True, True]
    assert not meter.cached


def test_where_nobody_watches_nothing_is_counted() -> None:
    trackers = []

    class Seen(dspy.Module):
        def forward(self, **inputs: Any) -> Any:
            trackers.append(dspy.settings.usage_tracker)
            return dspy.Prediction(abstained="no idea")

    select = Selector()
    select.deriver = Seen()
    with dspy.context(callbacks=[BaseCallback()]):
        select(**PENS)
    assert trackers == [None]


def test_a_callback_that_raises_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(BaseCallback):
        def on_decision(self, **event: Any) -> None:
            raise OSError("no statistics server")

    caplog.set_level(logging.WARNING, "eldgr_dspy")
    with dspy.context(lm=saying(verdict(2)), callbacks=[Broken()]):
        assert Selector()(**CONTESTED).answer == "Doha"
    assert "A callback's on_decision failed: OSError: no statistics server." in caplog.text


def test_a_selector_decides_where_opentelemetry_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    telemetry._api.cache_clear()
    try:
        pred, watcher = decide(select_sync, saying(verdict(2)))
    finally:
        telemetry._api.cache_clear()
    assert (pred.answer, len(watcher.events)) == ("Doha", 1)
