"""In service: a call that fails or is late is silence where that is asked for, and nothing of a late call is used."""

import asyncio
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dspy
import pytest
from dspy import lm15
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.questions import Question
from tests.public_strategies import questions
from tests.scorers import Rewards
from tests.selecting import (
    ABSTAINS,
    CONTESTED,
    DERIVATION,
    SETTLED,
    SILENT,
    Returns,
    asked,
    each_call,
    each_way,
    inputs_of,
    repair,
    saying,
    select_acall,
    selector_of,
    verdict,
)

REFUSED = lm15.AuthError("no key")


# -- a call that does not come through --------------------------------------------------------------------------------
@each_way
@pytest.mark.parametrize("timeout", [None, 60])
def test_consensus_ships_if_every_call_fails_and_the_failures_are_named(call: Any, timeout: Any) -> None:
    lm = saying(REFUSED, REFUSED)
    with dspy.context(lm=lm):
        pred = call(Selector(on_failure="abstain", timeout=timeout), CONTESTED)
    assert (pred.answer, pred.branch, pred.reason) == ("Dubai", "consensus", "default")
    assert asked(lm) == pred.consulted == [*pred.failures] == ["judge", "repairer"]
    assert all(text.startswith("LMAuthError: ") and "no key" in text for text in pred.failures.values())
    assert pred.abstentions == {role: f"failed: {text}" for role, text in pred.failures.items()}


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
    question=questions(), span=st.sampled_from(("", "Paris", "1976")), derived=st.sampled_from((ABSTAINS, DERIVATION))
)
def test_a_failed_judge_decides_as_a_silent_one(question: Question, span: str, derived: dict[str, Any]) -> None:
    """With any repairer and deriver, who are asked alike."""
    others = repair(span, -1), derived
    failed = selector_of(ConnectionError("down"), *others, on_failure="abstain")(**inputs_of(question)).toDict()
    silent = selector_of(ABSTAINS, *others)(**inputs_of(question)).toDict()
    judged = {"judge": "ConnectionError: down"} if "judge" in failed["consulted"] else {}
    assert (failed.pop("failures"), silent.pop("failures")) == (judged, {})
    assert failed.pop("abstentions").keys() == silent.pop("abstentions").keys()
    assert failed == silent


@each_call
def test_a_scorer_whose_call_fails_leaves_its_scores_undefined_even_if_errors_are_raised(call: Any) -> None:
    scorer = Rewards(ConnectionError("refused"))
    pred = call(Selector(scorers=scorer, on_error="raise", on_failure="abstain"), SETTLED)
    assert (pred.answer, pred.scores[0]["undefined"]) == ("Doha", "the scorer failed: ConnectionError: refused")


# -- a call that is late ----------------------------------------------------------------------------------------------

SOON = 0.05  # seconds; what waits for an event is late whenever they end


class Waits(dspy.Module):  # a judge that answers when it is released; awaited, it waits until it is cancelled
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
        select.repairer = Returns(ABSTAINS)
        with dspy.track_usage() as usage:
            select(**CONTESTED)
            judge.go.set()
            assert judge.ended.wait(30)
        assert (dspy.settings.trace, usage.get_total_tokens()) == ([], {})


@pytest.mark.parametrize(
    "timeout",
    [0, -1, float("nan"), float("inf"), 1e300, int("9" * 400), True, "5", [5]],
    ids=lambda values: f"{values!r:.12}",
)
def test_a_timeout_that_no_clock_can_count_is_refused(timeout: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^timeout must be a number of seconds above 0 and at most .*; got"):
        Selector(timeout=timeout)
    assert Selector(timeout=threading.TIMEOUT_MAX)(**SETTLED).answer == "Doha"


# -- DSPy within a timeout --------------------------------------------------------------------------------------------
@each_call
@pytest.mark.parametrize("timeout", [None, 60])
@pytest.mark.parametrize("bound", [False, True])
def test_the_trace_names_the_roles_own_predictors_and_keeps_to_its_size(call: Any, timeout: Any, bound: bool) -> None:
    select, lm = Selector(timeout=timeout), saying(verdict(0), repair("Persian Gulf", 1))
    if bound:
        select.set_lm(lm)
    with dspy.context(lm=None if bound else lm, trace=[], max_trace_size=3):
        call(select, CONTESTED)
        assert [one for one, *_ in dspy.settings.trace] == [one for _, one in select.named_predictors()]
        assert [reply.toDict() for *_, reply in dspy.settings.trace][1] == repair("Persian Gulf", 1)
        call(select, CONTESTED)
        assert len(dspy.settings.trace) == 3


@each_call
def test_a_reply_within_a_timeout_is_cached(call: Any) -> None:
    lm = saying(verdict(2), cache=True, model=f"scripted/cached-{call.__name__}")
    with dspy.context(lm=lm):
        answers = {call(Selector(timeout=60), CONTESTED).answer for _ in range(3)}
    assert (answers, len(lm.requests)) == ({"Doha"}, 1)


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
