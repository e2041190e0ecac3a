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

from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.questions import Question
from tests.modules import Does
from tests.public_strategies import questions
from tests.scenes import ABSTAINS, CONTESTED, DERIVATION, SETTLED, SILENT, repair, verdict
from tests.scorers import Rewards
from tests.selecting import asked, each_call, each_way, inputs_of, saying, select_acall, selector_of, with_judge

REFUSED = lm15.AuthError("no key")


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


ERRORS = [ConnectionError("refused"), TimeoutError("late"), dspy.LMRateLimitError("slow"), KeyError("a bug")]


@each_call
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("on_failure", "timeout"), [("raise", None), ("raise", 60), ("abstain", 60)])
def test_a_failed_call_is_raised_as_it_is_and_a_bug_always(
    call: Any, error: Exception, on_failure: Any, timeout: Any
) -> None:
    select = selector_of(error, on_failure=on_failure, timeout=timeout)
    if on_failure == "abstain" and not isinstance(error, KeyError):
        assert [*call(select, CONTESTED).failures] == ["judge"]
        return
    with pytest.raises(type(error)) as raised:
        call(select, CONTESTED)
    assert raised.value is error


@each_call
def test_on_error_covers_replies_and_on_failure_calls_also_those_of_a_scorer(call: Any) -> None:
    with dspy.context(lm=saying("no verdict")):
        pred = call(Selector(on_failure="raise"), CONTESTED)
        assert (pred.failures, [*pred.abstentions]) == ({}, ["judge", "repairer"])
        with pytest.raises(dspy.AdapterParseError):
            call(Selector(on_failure="abstain", on_error="raise"), CONTESTED)
    with dspy.context(lm=saying(REFUSED)):
        assert [*call(Selector(on_failure="abstain", on_error="raise"), CONTESTED).failures] == ["judge"]
        with pytest.raises(dspy.LMError):
            call(Selector(on_error="abstain"), CONTESTED)
    scorer = Rewards(ConnectionError("refused"))
    pred = call(Selector(scorers=scorer, on_error="raise", on_failure="abstain"), SETTLED)
    assert (pred.answer, pred.scores[0]["undefined"]) == ("Doha", "the scorer failed: ConnectionError: refused")


spans, derivations = st.sampled_from(("", "Paris", "1976")), st.sampled_from((ABSTAINS, DERIVATION))


@pytest.mark.law("failed_judge_equals_silent_judge", "property")
@settings(max_examples=60)
@given(question=questions(), span=spans, derived=derivations)
def test_a_failed_judge_decides_as_a_silent_one(question: Question, span: str, derived: dict[str, Any]) -> None:
    """With any repairer and deriver, who are asked alike."""
    others = repair(span, -1), derived
    failed = selector_of(ConnectionError("down"), *others, on_failure="abstain")(**inputs_of(question)).toDict()
    silent = selector_of(ABSTAINS, *others)(**inputs_of(question)).toDict()
    judged = {"judge": "ConnectionError: down"} if "judge" in failed["consulted"] else {}
    assert (failed.pop("failures"), silent.pop("failures")) == (judged, {})
    assert failed.pop("abstentions").keys() == silent.pop("abstentions").keys()
    assert failed == silent


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
    judge = Waits()
    try:
        yield with_judge(judge, timeout=SOON, **options), judge
    finally:
        judge.go.set()


@each_call
def test_a_late_call_is_raised_by_default(call: Any) -> None:
    late = "^the judge did not answer within the question's timeout of 0.05 s$"
    with waiting() as (select, _), dspy.context(lm=saying()), pytest.raises(TimeoutError, match=late):
        call(select, CONTESTED)


def test_a_late_call_that_is_awaited_is_cancelled_and_so_is_one_of_a_selection_that_is() -> None:
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

    async def cancel(select: Selector) -> None:
        task = asyncio.ensure_future(select.acall(**CONTESTED))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    judge = Waits()
    asyncio.run(cancel(with_judge(judge, timeout=60, on_failure="abstain")))
    assert judge.cancelled


def test_nothing_of_a_late_call_is_used_and_a_role_without_async_is_late_too() -> None:
    with waiting(on_failure="abstain") as (select, judge), dspy.context(lm=saying(verdict(2)), trace=[]):
        select.repairer = Does(lambda _, **inputs: dspy.Prediction(**ABSTAINS))
        with dspy.track_usage() as usage:
            select(**CONTESTED)
            judge.go.set()
            assert judge.ended.wait(30)
        assert (dspy.settings.trace, usage.get_total_tokens()) == ([], {})
    go = threading.Event()
    blocks = Does(lambda _, **inputs: go.wait(30) and dspy.Prediction(**SILENT))
    assert "judge" in select_acall(selector_of(blocks, timeout=SOON, on_failure="abstain"), CONTESTED).failures
    go.set()


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
    assert call(Selector(timeout=threading.TIMEOUT_MAX), SETTLED).answer == "Doha"
