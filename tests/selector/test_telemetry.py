"""A decision is reported to OpenTelemetry, callbacks and a log, without texts or credentials; nothing changes by it."""

import logging
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
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
from eldgr_dspy.programs.commands import main
from eldgr_dspy.programs.requests.metered_lms import with_meter
from eldgr_dspy.programs.requests.metering import metering
from eldgr_dspy.programs.run.evaluation import Plan, evaluate
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.service.service_log import EVERY, LOG, MOST_KINDS, RareLog, log_silence
from eldgr_dspy.programs.telemetry import DecisionEvent
from eldgr_dspy.programs.testing import role_of
from eldgr_dspy.redaction import remember
from eldgr_dspy.rule.consultations import Abstention
from tests.capitals import NO_SPAN, row, selector_with, write_pool
from tests.case_tables import each_case, tables_of
from tests.lm_server import Answer, serving
from tests.modules import Does
from tests.scenes import CONTESTED, PENS, SETTLED, verdict
from tests.selecting import each_call, saying, select_sync, selector_of, with_judge

Call = Callable[[Selector, Any], Any]


class Watcher(BaseCallback):  # keeps what it is given
    def __init__(self) -> None:
        self.events: list[DecisionEvent] = []
        self.calls: list[tuple[str, object]] = []
        self.instances: dict[str, object] = {}

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.instances[call_id] = instance

    def on_decision(self, call_id: str, instance: Selector, event: DecisionEvent) -> None:
        self.calls.append((call_id, instance))
        self.events.append(event)


@pytest.fixture(autouse=True)
def logs(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What is logged, as in a process that has logged nothing yet."""
    LOG.kinds.clear()
    caplog.set_level(logging.INFO, "eldgr_dspy")
    yield caplog
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


@each_call
@pytest.mark.parametrize("timeout", [None, 60])
def test_a_callback_is_given_what_a_decision_is_and_cost_and_tokens_are_counted_once(call: Call, timeout: Any) -> None:
    """An outage is in the event by kind, without a text. A run meters each request of a selector in a program."""
    pred, watcher = decide(call, saying(verdict(2)), timeout=timeout)
    ((call_id, instance),), (event,) = watcher.calls, watcher.events
    assert watcher.instances[call_id] is instance
    assert (event.branch, event.reason, event.certified) == (pred.branch, pred.reason, True)
    assert (event.consulted, event.abstentions, event.failures) == (("judge",), {}, {})
    assert event.input_tokens and event.output_tokens
    assert event.call_seconds.keys() == {"judge"}
    assert 0 < event.call_seconds["judge"] <= event.seconds
    lm = saying(dspy.LMServerError("the passage is SECRET"))
    (event,) = decide(call, lm, on_failure="abstain", timeout=timeout)[1].events
    assert (event.failures, event.abstentions) == ({"judge": "LMServerError"}, {"repairer": "nothing to say"})
    assert event.call_seconds.keys() == {"judge", "repairer"}
    assert "SECRET" not in repr(event)
    totals = []
    for callbacks in ([], [Watcher()]):
        with dspy.context(lm=saying(verdict(0)), callbacks=callbacks), dspy.track_usage() as usage:
            call(Selector(timeout=timeout), CONTESTED)
        totals.append(usage.get_total_tokens())
        select: Any = Selector(timeout=timeout)
        select.set_lm(saying(verdict(0)))
        twin: Any = with_meter(select)
        with dspy.context(callbacks=callbacks), metering() as meter:
            call(twin, CONTESTED)
        assert [bool(entry.prompt_tokens) for entry in meter.entries] == [True, True]
        assert not meter.cache_hits
    assert totals[0] == totals[1] != {}


@each_call
@each_case("selector", "attributes of a span")
def test_a_span_has_the_event_and_whatever_is_called_is_below_it(call: Call, expected: Any, spans: Any) -> None:
    current = []

    def see(self: Any, **inputs: Any) -> Any:
        current.append(trace.get_current_span().get_span_context())
        return dspy.Prediction(abstained="no idea")

    select = with_judge(Does(see), on_failure="abstain", timeout=60)
    with dspy.context(lm=saying(repairer=dspy.LMServerError("gone"))):
        call(select, CONTESTED)
    (span,) = spans.get_finished_spans()
    assert current == [span.get_span_context()]
    assert span.name == "invoke_workflow Selector"
    reply: dict[str, Any] = dict(span.attributes or {})
    assert reply.pop("eldgr.seconds.judge") >= 0
    assert reply.pop("eldgr.seconds.repairer") >= 0
    assert {name: [*value] if isinstance(value, tuple) else value for name, value in reply.items()} == expected


@each_call
def test_a_call_that_raises_is_a_span_with_its_error_and_no_key(call: Call, spans: InMemorySpanExporter) -> None:
    remember("sk-77aYq7Yt55ab")
    with dspy.context(lm=saying(dspy.LMServerError("key sk-77aYq7Yt55ab"))), pytest.raises(dspy.LMServerError):
        call(Selector(), CONTESTED)
    (span,) = spans.get_finished_spans()
    assert span.attributes and span.attributes["error.type"] == "LMServerError"
    assert span.status.status_code is trace.StatusCode.ERROR
    assert "sk-77aYq7Yt55ab" not in span.to_json()


def test_tokens_are_those_of_all_calls_and_unknown_is_not_zero(spans: InMemorySpanExporter) -> None:
    """The names are those of the conventions."""
    ours = (telemetry.OPERATION_NAME, telemetry.AGENT_NAME, telemetry.INPUT_TOKENS, telemetry.OUTPUT_TOKENS)
    names = ("OPERATION_NAME", "AGENT_NAME", "USAGE_INPUT_TOKENS", "USAGE_OUTPUT_TOKENS")
    assert ours == tuple(getattr(gen_ai_attributes, f"GEN_AI_{name}") for name in names)
    assert telemetry.ERROR_TYPE == error_attributes.ERROR_TYPE
    lm = saying(verdict(0))
    _, watcher = decide(select_sync, lm)
    with dspy.context(lm=saying(verdict(0))), dspy.track_usage() as usage:
        Selector()(**CONTESTED)
    ((total,), (event,)) = usage.get_total_tokens().values(), watcher.events
    assert (event.input_tokens, event.output_tokens) == (total["prompt_tokens"], total["completion_tokens"])
    spans.clear()
    with dspy.context(lm=lm):
        Selector()(**SETTLED)
    (span,) = spans.get_finished_spans()
    assert (span.attributes or {}).keys().isdisjoint({telemetry.INPUT_TOKENS, telemetry.OUTPUT_TOKENS})


def test_a_callback_that_raises_or_a_missing_opentelemetry_changes_nothing(
    logs: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody watches nothing is counted."""
    trackers = []

    def see(self: Any, **inputs: Any) -> Any:
        trackers.append(dspy.settings.usage_tracker)
        return dspy.Prediction(abstained="no idea")

    class Breaks(BaseCallback):
        def on_decision(self, **event: Any) -> None:
            raise OSError("no statistics server")

    with dspy.context(callbacks=[BaseCallback()]):
        selector_of(deriver=Does(see))(**PENS)
    assert trackers == [None]
    logs.clear()
    with dspy.context(lm=saying(verdict(2)), callbacks=[Breaks()]):
        assert Selector()(**CONTESTED).answer == "Doha"
    (record,) = logs.records
    assert (record.levelno, record.name) == (logging.WARNING, "eldgr_dspy")
    assert "A callback's on_decision failed: OSError: no statistics server." in logs.text
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    telemetry._api.cache_clear()
    try:
        pred, watcher = decide(select_sync, saying(verdict(2)))
    finally:
        telemetry._api.cache_clear()
    assert (pred.answer, len(watcher.events)) == ("Doha", 1)


def lines(logs: pytest.LogCaptureFixture) -> list[tuple[str, int, str]]:
    return [one for one in logs.record_tuples if one[0] == "eldgr_dspy"]


FIRST = "Further ones are logged at most once a minute."


class Clock:  # a clock that stands still until it is moved
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_each_kind_of_reason_is_logged_once_a_role_and_minute(logs: pytest.LogCaptureFixture) -> None:
    """A reason is one short line without credentials or control characters."""
    log = RareLog(Clock())
    texts = ("unparsable: The reply is not JSON.", "unparsable: it is another text", "unparsable: x")
    replies = [Abstention(text, "unreadable") for text in texts]
    errors = (dspy.LMTimeoutError("late"), dspy.LMTimeoutError("later"), ConnectionError("gone"))
    replies += [*map(Abstention.failure, errors), Abstention("no span")]
    for index, reply in [*enumerate(replies)] * 3:
        log_silence("repairer" if index in (2, 6) else "judge", reply, log)
    messages = [f"{message} {FIRST}" for message in tables_of("selector")["lines of a log"]["cases"]]
    levels = [logging.WARNING] * 4 + [logging.INFO]
    assert lines(logs) == [("eldgr_dspy", *line) for line in zip(levels, messages, strict=True)]
    remember("sk-91uZq7Yt55ab")
    reason = "failed: LMServerError: key sk-91uZq7Yt55ab\r\nINFO forged \x1b[31m" + "x" * 100_000
    log_silence("judge", Abstention(reason, "LMServerError", failed=True))
    *_, (_, _, last) = lines(logs)
    assert len(lines(logs)) == 6
    assert not any(text in last for text in ("sk-91uZ", "\n", "\x1b")) and len(last) < 500


def test_an_outage_that_lasts_is_a_line_a_minute_whoever_logs_it_and_errors_of_any_name_fill_no_memory(
    logs: pytest.LogCaptureFixture,
) -> None:
    log = RareLog(clock := Clock())
    for _ in range(3 * EVERY + 1):
        log_silence("judge", Abstention.failure(ConnectionError("gone")), log)
        clock.now += 1
    more = f"{EVERY - 1} more since the last line."
    outage = "A call of the judge failed: ConnectionError: gone."
    assert [message for _, _, message in lines(logs)] == [f"{outage} {note}" for note in (FIRST, more, more, more)]
    clock.now += 10 * EVERY
    log_silence("judge", Abstention.failure(ConnectionError("gone")), log)
    assert lines(logs)[-1][2].endswith("gone. 0 more since the last line.")
    logs.clear()
    log = RareLog(Clock())
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda n: log_silence("judge", Abstention(f"unparsable: {n}", "unreadable"), log), range(400)))
    assert len(lines(logs)) == 1
    assert [since for _, since in log.kinds.values()] == [399]
    logs.clear()
    log = RareLog(clock := Clock())
    for number in range(3 * MOST_KINDS):
        log_silence("judge", Abstention(f"failed: Error{number}: x", f"Error{number}", failed=True), log)
    assert len(log.kinds) == len(lines(logs)) == MOST_KINDS + 1
    clock.now += EVERY
    log_silence("judge", Abstention("failed: AnotherError: x", "AnotherError", failed=True), log)
    assert lines(logs)[-1][2].endswith(f"{2 * MOST_KINDS - 1} more since the last line.")


def test_a_run_logs_what_its_roles_could_not_say(logs: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    def reply(request: Any) -> Any:
        return NO_SPAN if role_of(request) == "repairer" else "I would take the third."

    pool = write_pool(tmp_path / "p.jsonl", (row(number, answers=("Nice", "Oslo", "Rome")) for number in range(4)))
    evaluate(selector_with(reply)[0], Plan([pool], tmp_path / "run", workers=3))
    silences = {"The judge gave no usable reply (unreadable)": logging.WARNING, "The repairer abstained": logging.INFO}
    assert sorted((message.partition(":")[0], level) for _, level, message in lines(logs)) == [*silences.items()]
    selector, _ = selector_with(lambda request: dspy.LMServerError("away"))
    evaluate(selector, Plan([pool], tmp_path / "failing", max_failures="100%"))
    assert [message for _, _, message in lines(logs)[2:]] == [
        f"A call of the {role} failed: LMServerError: away. {FIRST}" for role in ("judge", "repairer")
    ]


@each_call
def test_a_selector_logs_what_nobody_could_say(logs: pytest.LogCaptureFixture, call: Any) -> None:
    async def unreachable(answer: str, evidence: Any) -> bool:
        raise ConnectionError("gone")

    select = selector_of(ConnectionError("gone"), on_failure="abstain")
    for _ in range(3):
        call(select, CONTESTED)
    call(Selector(certificate=unreachable, on_failure="abstain"), CONTESTED)
    failures = [f"A call of the {name} failed: ConnectionError: gone. {FIRST}" for name in ("judge", "certificate")]
    assert [one[2] for one in lines(logs)] == [failures[0], f"The repairer abstained: no span. {FIRST}", failures[1]]


def test_by_default_a_warning_is_on_standard_error_and_the_command_leaves_it_to_its_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # as in a program that configures no logging
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    pool = write_pool(tmp_path / "p.jsonl", [row(0)])
    with serving(lambda query: Answer("the third")) as server:
        arguments = ["--judge", "openai/m", "--api-base", server.address, "--rules", "judge"]
        assert main(["evaluate", str(pool), *arguments, "--out", str(tmp_path / "command"), "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    LOG.kinds.clear()
    evaluate(selector_with(lambda request: "the third")[0], Plan([pool], tmp_path / "program", ["judge"]))
    assert capsys.readouterr().err.startswith("The judge gave no usable reply (unreadable): unparsable: ")
