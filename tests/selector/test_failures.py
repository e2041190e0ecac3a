"""In service: a call that fails or is late is silence where that is asked for, and nothing of a late call is used."""

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dspy
import pytest
from dspy import lm15
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.channels.table import StepTable
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.engines.strict import StrictStreamListener
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.questions import Question
from tests.public_strategies import questions
from tests.selecting import (
    CONTESTED,
    DERIVATION,
    PENS,
    SETTLED,
    SILENT,
    Returns,
    asked,
    each_way,
    inputs_of,
    repair,
    saying,
    select_acall,
    select_sync,
    selector_of,
    streamed,
    verdict,
)

SILENCE = {"abstained": "?"}
REFUSED = lm15.AuthError("no key")
each_call = pytest.mark.parametrize("call", [select_sync, select_acall])

# -- a call that does not come through --------------------------------------------------------------------------------


@each_way
@pytest.mark.parametrize("timeout", [None, 60])
def test_consensus_ships_if_every_call_fails_and_the_failures_are_named(call: Any, timeout: Any) -> None:
    lm = saying(REFUSED, REFUSED)
    with dspy.context(lm=lm):
        pred = call(Selector(on_failure="abstain", timeout=timeout), CONTESTED)
    assert (pred.answer, pred.branch, pred.reason) == ("Dubai", "consensus", "default")
    assert asked(lm) == pred.consulted == [*pred.failures] == ["judge", "repairer"]
    assert all(said.startswith("LMAuthError: ") and "no key" in said for said in pred.failures.values())
    assert pred.abstentions == {role: f"failed: {said}" for role, said in pred.failures.items()}


@each_way
@pytest.mark.parametrize("timeout", [None, 60])
def test_the_repairer_is_still_asked_if_the_judge_fails(call: Any, timeout: Any) -> None:
    with dspy.context(lm=saying(REFUSED, repair("Persian Gulf", 1))):
        pred = call(Selector(on_failure="abstain", timeout=timeout), CONTESTED)
    assert (pred.answer, pred.branch, [*pred.failures]) == ("Persian Gulf", "repair", ["judge"])


@each_call
@pytest.mark.parametrize("error", [ConnectionError("refused"), TimeoutError("late"), dspy.LMRateLimitError("slow")])
@pytest.mark.parametrize("timeout", [None, 60])
def test_by_default_a_failed_call_is_raised_as_it_is(call: Any, error: Exception, timeout: Any) -> None:
    with pytest.raises(type(error)) as raised:
        call(selector_of(error, timeout=timeout), CONTESTED)
    assert raised.value is error


@each_call
@pytest.mark.parametrize("on_failure", ["raise", "abstain"])
def test_a_bug_in_a_role_is_raised_and_no_failure(call: Any, on_failure: Any) -> None:
    with pytest.raises(KeyError, match="a bug"):
        call(selector_of(KeyError("a bug"), on_failure=on_failure, timeout=60), CONTESTED)


@each_call
def test_on_error_covers_replies_and_on_failure_calls(call: Any) -> None:
    with dspy.context(lm=saying("no verdict")):
        pred = call(Selector(on_failure="raise"), CONTESTED)
        assert (pred.failures, [*pred.abstentions]) == ({}, ["judge", "repairer"])
        with pytest.raises(dspy.AdapterParseError):
            call(Selector(on_failure="abstain", on_error="raise"), CONTESTED)
    with dspy.context(lm=saying(REFUSED)):
        assert [*call(Selector(on_failure="abstain", on_error="raise"), CONTESTED).failures] == ["judge"]
        with pytest.raises(dspy.LMError):
            call(Selector(on_error="abstain"), CONTESTED)


@pytest.mark.law("failed_judge_equals_silent_judge", "property")
@settings(max_examples=60)
@given(
    question=questions(), span=st.sampled_from(("", "Paris", "1976")), derived=st.sampled_from((SILENCE, DERIVATION))
)
def test_a_failed_judge_decides_as_a_silent_one(question: Question, span: str, derived: dict[str, Any]) -> None:
    """With any repairer and deriver, who are asked alike."""
    others = repair(span, -1), derived
    failed = selector_of(ConnectionError("down"), *others, on_failure="abstain")(**inputs_of(question)).toDict()
    silent = selector_of(SILENCE, *others)(**inputs_of(question)).toDict()
    judged = {"judge": "ConnectionError: down"} if "judge" in failed["consulted"] else {}
    assert (failed.pop("failures"), silent.pop("failures")) == (judged, {})
    assert failed.pop("abstentions").keys() == silent.pop("abstentions").keys()
    assert failed == silent


class Scores:
    """A scorer that does what it is given."""

    def __init__(self, outcome: Callable[[], Any]) -> None:
        self.outcome = outcome

    def score(self, reasonings: Any) -> list[StepTable]:
        self.outcome()
        return []


@each_call
def test_a_scorer_whose_call_fails_leaves_its_scores_undefined_even_if_errors_are_raised(call: Any) -> None:
    def refuse() -> None:
        raise ConnectionError("refused")

    select = Selector(scorers=Scores(refuse), on_error="raise", on_failure="abstain")
    pred = call(select, SETTLED)
    assert (pred.answer, pred.scores[0]["undefined"]) == ("Doha", "the scorer failed: ConnectionError: refused")
    with pytest.raises(ConnectionError):
        call(Selector(scorers=Scores(refuse), on_error="raise"), SETTLED)


# -- a call that is late ----------------------------------------------------------------------------------------------

SOON = 0.05  # seconds; what waits for an event is late whenever they end


class Waits(dspy.Module):
    """A judge that answers when it is released; awaited, it waits until it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.judge, self.go, self.ended, self.cancelled = Judge(), threading.Event(), threading.Event(), False

    def forward(self, **inputs: Any) -> Any:
        self.go.wait(30)
        try:
            return self.judge(**inputs)
        finally:
            self.ended.set()

    async def aforward(self, **inputs: Any) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise ValueError("of no interest to anybody") from None


@contextmanager
def waiting(**options: Any) -> Iterator[tuple[Selector, Waits]]:
    """A selector whose judge is late."""
    select, judge = Selector(timeout=SOON, **options), Waits()
    select.judge = judge
    try:
        yield select, judge
    finally:
        judge.go.set()


LATE = "did not answer within the question's timeout of 0.05 s"


@each_call
def test_a_late_call_is_raised_by_default(call: Any) -> None:
    with waiting() as (select, _), dspy.context(lm=saying()), pytest.raises(TimeoutError, match=f"^the judge {LATE}$"):
        call(select, CONTESTED)


def test_a_late_call_that_is_awaited_is_cancelled_and_what_it_then_raises_is_dropped() -> None:
    unseen = list[Any]()

    async def select_once(select: Selector) -> Any:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
        pred = await select.acall(**CONTESTED)
        await asyncio.sleep(0)
        gc.collect()
        return pred

    with waiting(on_failure="abstain") as (select, judge), dspy.context(lm=saying()):
        assert "judge" in asyncio.run(select_once(select)).failures
    assert judge.cancelled
    assert unseen == []


def test_cancelling_a_selection_cancels_the_call_under_way() -> None:
    async def cancel(select: Selector, judge: Waits) -> None:
        task = asyncio.ensure_future(select.acall(**CONTESTED))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    select, judge = Selector(timeout=60, on_failure="abstain"), Waits()
    select.judge = judge
    asyncio.run(cancel(select, judge))
    assert judge.cancelled


def test_nothing_of_a_late_call_reaches_the_trace_and_the_usage() -> None:
    with waiting(on_failure="abstain") as (select, judge), dspy.context(lm=saying(verdict(2)), trace=[]):
        select.repairer = Returns(SILENCE)
        with dspy.track_usage() as usage:
            select(**CONTESTED)
            judge.go.set()
            assert judge.ended.wait(30)
        assert (dspy.settings.trace, usage.get_total_tokens()) == ([], {})


@each_call
def test_a_late_scorer_leaves_its_scores_undefined(call: Any) -> None:
    go = threading.Event()
    pred = call(Selector(scorers=Scores(lambda: go.wait(2)), timeout=SOON), SETTLED)
    go.set()
    assert (pred.answer, pred.scores[0]["undefined"]) == ("Doha", f"the scorer failed: TimeoutError: the scorer {LATE}")


@pytest.mark.parametrize(
    "timeout",
    [0, -1, float("nan"), float("inf"), 1e300, int("9" * 400), True, "5", [5]],
    ids=lambda given: f"{given!r:.12}",
)
def test_a_timeout_that_no_clock_can_count_is_refused(timeout: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^timeout must be a number of seconds above 0 and at most .*; got"):
        Selector(timeout=timeout)


def test_the_longest_timeout_is_one() -> None:
    with dspy.context(lm=saying(verdict(2))):
        assert Selector(timeout=threading.TIMEOUT_MAX)(**CONTESTED).answer == "Doha"


# -- DSPy within a timeout --------------------------------------------------------------------------------------------


def selected_with(timeout: float | None, call: Any, inputs: dict[str, Any] = CONTESTED, **context: Any) -> Any:
    with dspy.context(lm=saying(verdict(0), repair("Persian Gulf", 1)), **context):
        return call(Selector(timeout=timeout), inputs)


@each_way
@pytest.mark.parametrize("inputs", [CONTESTED, SETTLED, PENS])
def test_a_timeout_that_is_kept_changes_nothing(call: Any, inputs: dict[str, Any]) -> None:
    assert selected_with(60, call, inputs).toDict() == selected_with(None, call, inputs).toDict()


@each_way
def test_usage_is_counted_within_a_timeout(call: Any) -> None:
    usage = [selected_with(timeout, call, track_usage=True).get_lm_usage() for timeout in (60, None)]
    assert usage[0] == usage[1] != {}


@each_call
def test_the_trace_is_kept_within_a_timeout(call: Any) -> None:
    traces: list[list[Any]] = [[], []]
    for timeout, trace in zip((60, None), traces, strict=True):
        selected_with(timeout, call, trace=trace)
    names = [[(step[0].signature.__name__, step[2].toDict()) for step in trace] for trace in traces]
    assert names[0] == names[1]
    assert len(names[0]) == 2


@each_call
def test_a_reply_within_a_timeout_is_cached(call: Any) -> None:
    lm = saying(verdict(2), cache=True, model=f"scripted/cached-{call.__name__}")
    with dspy.context(lm=lm):
        answers = {call(Selector(timeout=60), CONTESTED).answer for _ in range(3)}
    assert (answers, len(lm.requests)) == ({"Doha"}, 1)


class Announce(dspy.streaming.StatusMessageProvider):
    def module_start_status_message(self, instance: Any, inputs: dict[str, Any]) -> str:
        return type(instance).__name__


@pytest.mark.parametrize("is_async", [False, True])
def test_a_stream_within_a_timeout_has_the_same_pieces_and_messages(is_async: bool) -> None:
    def heard(timeout: float | None) -> tuple[str, list[str], Any]:
        listener = StrictStreamListener("repaired_answer")
        options: dict[str, Any] = {"stream_listeners": [listener], "status_message_provider": Announce()}
        with dspy.context(lm=saying(verdict(0), repair("Persian Gulf", 1))):
            stream = dspy.streamify(Selector(timeout=timeout), is_async_program=is_async, **options)
            *pieces, pred = asyncio.run(streamed(stream, CONTESTED))
        text = "".join(piece.chunk for piece in pieces if hasattr(piece, "chunk")).strip()
        return text, [piece.message for piece in pieces if hasattr(piece, "message")], pred.toDict()

    text, messages, _ = found = heard(60)
    assert text == '"Persian Gulf"'
    assert messages[-4:] == ["Judge", "Predict", "Repairer", "Predict"]
    assert found == heard(None)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_late_call_ends_no_stream(is_async: bool) -> None:
    with waiting(on_failure="abstain") as (select, _), dspy.context(lm=saying()):
        stream = dspy.streamify(select, is_async_program=is_async)
        pred = asyncio.run(streamed(stream, CONTESTED))[-1]
    assert (pred.answer, "judge" in pred.failures) == ("Dubai", True)


def test_a_role_without_async_is_late_too_if_it_is_awaited() -> None:
    go = threading.Event()

    class Blocks(dspy.Module):
        def forward(self, **_: Any) -> Any:
            go.wait(30)
            return dspy.Prediction(**SILENT)

    select = Selector(timeout=SOON, on_failure="abstain")
    select.judge, select.repairer = Blocks(), Returns(SILENT)
    assert "judge" in select_acall(select, CONTESTED).failures
    go.set()
