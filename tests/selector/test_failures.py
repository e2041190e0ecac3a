"""In service: who fails or is late silences only itself where that is asked for, and nothing of a late call is used."""

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import dspy
import pytest
from dspy import lm15
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.certificates import Certificate
from eldgr_dspy.programs.calls import Calls
from eldgr_dspy.programs.engines.ollama import ollama
from eldgr_dspy.programs.requests.metered_lms import metered_lm
from eldgr_dspy.programs.requests.retrying import Limit, with_limit
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.rule_roles import later_roles
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.service.threads import in_thread
from eldgr_dspy.rule.consultations import Abstention
from eldgr_dspy.rule.questions import Question
from tests.case_tables import each_case
from tests.lm_server import Answer, serving
from tests.modules import Does
from tests.public_strategies import questions
from tests.scenes import ABSTAINS, CONTESTED, DERIVATION, SETTLED, SILENT, repair, verdict
from tests.scorers import Rewards
from tests.selecting import Returns, each_call, each_way, inputs_of, roles_of, saying, select_acall, selector_of

REFUSAL, SPAN = lm15.AuthError("no key"), repair("Persian Gulf", 1)
SOON, LONG = 0.05, 60.0  # seconds; what waits for an event is late whenever they end
each_binding = pytest.mark.parametrize("is_own", [False, True])


class Late(dspy.Module):  # a judge that answers when it is released; awaited, it waits until it is cancelled
    def __init__(self, *, is_rude: bool = False) -> None:
        super().__init__()
        self.is_rude = is_rude
        self.judge, self.go, self.end, self.cancel = Judge(), threading.Event(), threading.Event(), False

    def forward(self, **inputs: Any) -> Any:
        self.go.wait(30)
        try:
            return self.judge(**inputs)
        finally:
            self.end.set()

    async def aforward(self, **inputs: Any) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancel = True
            if not self.is_rude:
                raise
            raise ValueError("of no interest to anybody") from None


@pytest.fixture
def late() -> Iterator[Late]:
    role = Late()
    yield role
    role.go.set()


async def certify_never(answer: str, evidence: Any, question: str) -> Certificate:
    await asyncio.Event().wait()
    raise AssertionError(answer)


def hanging(late: Late) -> Any:
    """A scorer that does not answer while a test runs; a loop that ends waits for its threads."""
    return SimpleNamespace(score=lambda reasonings: late.go.wait(1))


@each_way
@pytest.mark.parametrize("timeout", [None, 60])
def test_consensus_ships_if_every_call_fails_and_the_failures_are_named(call: Any, timeout: Any) -> None:
    lm = saying(REFUSAL, REFUSAL)
    with dspy.context(lm=lm):
        pred = call(Selector(on_failure="abstain", timeout=timeout), CONTESTED)
    assert (pred.answer, pred.branch, pred.reason) == ("Dubai", "consensus", "default")
    assert roles_of(lm) == pred.consulted == [*pred.failures] == ["judge", "repairer"]
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
    with pytest.raises(type(error)) as info:
        call(select, CONTESTED)
    assert info.value is error


@each_call
def test_on_error_covers_replies_and_on_failure_calls_also_those_of_a_scorer(call: Any) -> None:
    with dspy.context(lm=saying("no verdict")):
        pred = call(Selector(on_failure="raise"), CONTESTED)
        assert (pred.failures, [*pred.abstentions]) == ({}, ["judge", "repairer"])
        with pytest.raises(dspy.AdapterParseError):
            call(Selector(on_failure="abstain", on_error="raise"), CONTESTED)
    with dspy.context(lm=saying(REFUSAL)):
        assert [*call(Selector(on_failure="abstain", on_error="raise"), CONTESTED).failures] == ["judge"]
        with pytest.raises(dspy.LMError):
            call(Selector(on_error="abstain"), CONTESTED)
    scorer = Rewards(ConnectionError("refused"))
    pred = call(Selector(scorers=scorer, on_error="raise", on_failure="abstain"), SETTLED)
    assert (pred.answer, pred.scores[0]["undefined"]) == ("Doha", "the scorer failed: ConnectionError: refused")


LATE = "TimeoutError: the judge did not answer within its timeout of 0.002 s"
FAILING: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "fails": (lambda select, inputs: select(**inputs), ConnectionError("down"), {}, "ConnectionError: down"),
    "is late": (select_acall, Late(), {"timeout": LONG, "role_timeouts": {"judge": 0.002}}, LATE),
}
spans, derivations = st.sampled_from(("", "Paris", "1976")), st.sampled_from((ABSTAINS, DERIVATION))


@pytest.mark.law("failed_judge_equals_silent_judge", "property")
@pytest.mark.parametrize("kind", FAILING)
@settings(max_examples=60)
@given(question=questions(), span=spans, derivation=derivations)
def test_a_judge_that_fails_or_is_late_decides_as_a_silent_one(
    kind: str, question: Question, span: str, derivation: Any
) -> None:
    """With any repairer and deriver, who are asked alike."""
    (call, judge, options, failure), others = FAILING[kind], (repair(span, -1), derivation)
    result = call(selector_of(judge, *others, on_failure="abstain", **options), inputs_of(question)).toDict()
    silent = call(selector_of(ABSTAINS, *others), inputs_of(question)).toDict()
    failures = {"judge": failure} if "judge" in result["consulted"] else {}
    assert (result.pop("failures"), silent.pop("failures")) == (failures, {})
    assert result.pop("abstentions").keys() == silent.pop("abstentions").keys()
    assert result == silent


@each_way
def test_the_repairer_is_asked_and_ships_though_the_judge_hangs(call: Any, late: Late) -> None:
    pred = call(selector_of(late, SPAN, on_failure="abstain", timeout=1.0), CONTESTED)
    assert (pred.answer, pred.branch, pred.consulted) == ("Persian Gulf", "repair", ["judge", "repairer"])
    reason = "TimeoutError: the judge did not answer within its share of the question's timeout of 1 s"
    assert pred.failures == {"judge": reason}


@each_call
def test_a_late_call_is_raised_by_default_and_a_role_without_time_left_is_told_who_used_it_up(
    call: Any, late: Late
) -> None:
    """A share that one gives to the judge oneself may be all that there is, and is enough as a limit."""
    limit = "did not answer within the question's timeout of 0.05 s"
    with pytest.raises(TimeoutError, match=f"^the judge {limit}$"):
        call(selector_of(late, timeout=SOON), CONTESTED)
    select = selector_of(late, SPAN, on_failure="abstain", timeout=SOON, role_timeouts={"judge": LONG})
    pred = call(select, CONTESTED)
    assert (pred.answer, pred.branch, pred.consulted) == ("Dubai", "consensus", ["judge"])
    silence = "was not asked, because the judge used up the question's timeout of 0.05 s"
    assert [*pred.failures] == ["judge", "repairer"]
    assert [*pred.failures.values()] == [f"TimeoutError: the judge {limit}", f"TimeoutError: the repairer {silence}"]
    assert pred.abstentions["repairer"] == f"failed: {pred.failures['repairer']}"
    select = selector_of(late, SPAN, on_failure="abstain", role_timeouts={"judge": SOON})
    assert (call(select, CONTESTED).answer, Selector().role_timeouts) == ("Persian Gulf", {})
    pred = call(Selector(scorers=hanging(late), timeout=SOON), SETTLED)
    reason = f"the scorer failed: TimeoutError: the scorer {limit}"
    assert (pred.answer, pred.scores[0]["undefined"]) == ("Doha", reason)


def test_roles_and_scorers_are_asked_though_a_certificate_hangs_or_the_rule_takes_the_time(late: Late) -> None:
    calls = Calls("abstain", 1e-9)
    reply = calls.ask("judge", Returns(ABSTAINS), {}, ["repairer"])
    assert isinstance(reply, Abstention) and (reply.kind, reply.failed) == ("TimeoutError", True)
    assert calls.failures["judge"].endswith("not asked, because the rule used up the question's timeout of 1e-09 s")
    assert calls.unasked == {"judge"}
    options: dict[str, Any] = {"on_failure": "abstain", "timeout": LONG, "scorers": hanging(late)}
    soon = {"certificate": SOON, "scorer": SOON}
    pred = select_acall(Selector(certificate=certify_never, role_timeouts=soon, **options), CONTESTED)
    assert pred.failures == {"certificate": "TimeoutError: the certificate did not answer within its timeout of 0.05 s"}
    assert pred.scores[0]["undefined"].endswith("the scorer did not answer within its timeout of 0.05 s")


@each_case("selector", "shares of twelve seconds")
def test_what_is_left_is_divided(who: str, later: list[str], scorers: int, own: Any, seconds: int) -> None:
    """Among those who may still be asked; a timeout of its own comes first. Where a failure is raised, nobody is."""
    for on_failure in ("abstain", "raise"):
        limit = Calls(on_failure, 12.0, own, scorers)._limit(who, later)
        expected = seconds if on_failure == "abstain" else min(own.get(who) or 12, 12)
        assert limit is not None and round(limit.ends - time.monotonic()) == expected


@each_case("selector", "who may still be asked")
def test_who_may_still_be_asked(rule: str, name: Any, voices: list[str], later: list[str]) -> None:
    kind = Selector().type
    assert later_roles(name, rule, kind, voices, certifies=False) == later
    roles = [*later, "repair_certificate"] if "repairer" in (name, *later) else later
    assert later_roles(name, rule, kind, voices, certifies=True) == roles


def test_a_late_call_that_is_awaited_is_cancelled_and_so_is_one_of_a_selection_that_is() -> None:
    contexts, judge = list[Any](), Late(is_rude=True)

    async def select_once(select: Selector) -> Any:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: contexts.append(context))
        pred = await select.acall(**CONTESTED)
        await asyncio.sleep(0)
        gc.collect()
        return pred

    pred = asyncio.run(select_once(selector_of(judge, timeout=SOON, on_failure="abstain")))
    assert ("judge" in pred.failures, judge.cancel, contexts) == (True, True, [])

    async def cancel(select: Selector) -> None:
        task = asyncio.ensure_future(select.acall(**CONTESTED))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel(selector_of(judge := Late(is_rude=True), timeout=60, on_failure="abstain")))
    assert judge.cancel


def test_nothing_of_a_late_call_is_used_and_a_role_without_async_is_late_too(late: Late) -> None:
    with dspy.context(lm=saying(verdict(2)), trace=[]):
        with dspy.track_usage() as usage:
            selector_of(late, ABSTAINS, timeout=SOON, on_failure="abstain")(**CONTESTED)
            late.go.set()
            assert late.end.wait(30)
        assert (dspy.settings.trace, usage.get_total_tokens()) == ([], {})
    go = threading.Event()
    blocks = Does(lambda _, **inputs: go.wait(30) and dspy.Prediction(**SILENT))
    assert "judge" in select_acall(selector_of(blocks, timeout=SOON, on_failure="abstain"), CONTESTED).failures
    go.set()


@each_call
@pytest.mark.parametrize("timeout", [None, 60])
@each_binding
def test_the_trace_names_the_roles_own_predictors_and_keeps_to_its_size(call: Any, timeout: Any, is_own: bool) -> None:
    select, lm = Selector(timeout=timeout), saying(verdict(0), SPAN)
    if is_own:
        select.set_lm(lm)
    with dspy.context(lm=None if is_own else lm, trace=[], max_trace_size=3):
        call(select, CONTESTED)
        assert [one for one, *_ in dspy.settings.trace] == [one for _, one in select.named_predictors()]
        assert [reply.toDict() for *_, reply in dspy.settings.trace][1] == SPAN
        call(select, CONTESTED)
        assert len(dspy.settings.trace) == 3


@each_call
def test_a_reply_within_a_timeout_is_cached(call: Any) -> None:
    lm = saying(verdict(2), cache=True, model=f"scripted/cached-{call.__name__}")
    with dspy.context(lm=lm):
        answers = {call(Selector(timeout=60), CONTESTED).answer for _ in range(3)}
    assert (answers, len(lm.requests)) == ({"Doha"}, 1)
    assert call(Selector(timeout=threading.TIMEOUT_MAX), SETTLED).answer == "Doha"


@contextmanager
def asking(behaviour: Any, *, is_own: bool = False, **options: Any) -> Iterator[tuple[Selector, Any, Any]]:
    """A selector whose LM, its own or that of the settings, has a server that behaves so; the LM, and the server."""
    with serving(behaviour) as server:
        lm, select = lm_at(server.address), Selector(on_failure="abstain", **options)
        if is_own:
            select.set_lm(lm)
        with dspy.context(lm=None if is_own else lm):
            yield select, lm, server


@each_binding
def test_a_call_of_a_server_that_hangs_leaves_no_thread(is_own: bool) -> None:
    """The LM gets a timeout, and is not asked again once the call is late."""
    over, judge = threading.Event(), Late()
    judge.go.set()
    with asking(lambda _: Answer("{}" if over.wait(30) else ""), timeout=0.2) as (select, lm, server):
        select.judge = judge
        if is_own:
            select.set_lm(lm)
        pred = select(**CONTESTED)
        assert judge.end.wait(20)
        over.set()
    assert [*pred.failures] == ["judge", "repairer"]
    assert [one.role for one in server.log].count("judge") <= 1
    assert "timeout" not in lm.kwargs


@each_call
@pytest.mark.parametrize(("status", "error"), [(503, "LMServerError: "), (429, "LMRateLimitError: ")])
@each_binding
def test_a_retried_error_of_the_server_is_reported_as_such(call: Any, status: int, error: str, is_own: bool) -> None:
    """If the server asks to wait for longer than the call may take, it fails at once."""
    with asking(lambda _: Answer(status=status, retry_after="30"), is_own=is_own, timeout=LONG / 3) as (select, *_):
        failures = call(select, CONTESTED).failures
    assert {role: text.startswith(error) for role, text in failures.items()} == {"judge": True, "repairer": True}


@each_call
@pytest.mark.parametrize("passes", [True, False])
def test_an_error_is_reported_if_the_request_after_it_hangs_and_is_none_if_it_passes(call: Any, passes: bool) -> None:
    over = threading.Event()

    def once(request: Any) -> Answer:
        if request.times == 1:
            return Answer(status=503)
        return Answer('{"preferred": 2}' if passes or over.wait(30) else "")

    options: dict[str, Any] = {"replies": "lenient", "role_timeouts": {"judge": LONG if passes else 1.0}}
    with asking(once, rule="judge", **options) as (select, *_):
        pred = call(select, CONTESTED)
        over.set()
    assert [text.startswith("LMServerError: ") for text in pred.failures.values()] == [True] * (not passes)
    assert pred.answer == ("Doha" if passes else "Dubai")


@dataclass
class Engine:
    timeout: Any
    connection: object = field(init=False, compare=False, default_factory=object)


def lm_at(address: str = "http://127.0.0.1:9/v1") -> Any:
    return dspy.LM("openai/gpt-4o-mini", api_base=address, api_key="k", cache=False)


def test_a_late_call_of_ollama_ends_with_its_limit() -> None:
    """Else it keeps its thread for the five minutes that the engine waits."""
    ends = time.monotonic() + LONG
    twins = [with_limit(ollama("tiny", timeout=seconds), Limit(ends, 2.0)) for seconds in (300.0, 1.0)]
    engines = [engine for one in twins for engine in (one._engine_spec, one._async_engine_spec)]
    assert [engine.timeout for engine in engines] == [2.0, 2.0, 1.0, 1.0]
    for own in (SimpleNamespace(timeout=9.0), Engine(None), Engine((3, 10)), Engine(9.0)):
        (other := lm_at())._engine_spec = own
        engine = with_limit(other, Limit(ends, 2.0))._engine_spec
        assert (engine.timeout, own.timeout) == (2.0, 9.0) if own == Engine(9.0) else engine is own
    # An LM whose requests somebody else sends again is left as it is.
    for lm in (metered_lm(lm_at()), with_limit(lm_at(), Limit(time.monotonic(), 1.0))):
        assert with_limit(lm, Limit(time.monotonic(), 1.0)) is lm


def test_selectors_in_threads_of_dspy_do_not_wait_for_one_another_and_stop_iteration_fails() -> None:
    """Eight calls hold all threads of `dspy.asyncify`; each still awaits a certificate that is not async."""

    class Slow(dspy.Module):
        def forward(self, answer: str, evidence: Any, question: str) -> dspy.Prediction:
            time.sleep(0.01)
            return dspy.Prediction(certified=False)

    select: Any = dspy.asyncify(Selector(certificate=Slow(), rule="certified"))

    async def several() -> list[Any]:
        calls = (select(question=f"q{n}", candidates=["Doha", "Dubai"], evidence=["It rains."]) for n in range(8))
        return await asyncio.wait_for(asyncio.gather(*calls), 60)

    assert [one.answer for one in asyncio.run(several())] == ["Doha"] * 8

    async def stop() -> Any:
        return await asyncio.wait_for(in_thread(lambda: next(iter(()))), 60)

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(stop())
