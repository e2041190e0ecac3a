"""A late role silences only itself: each has its share of the timeout, and who was not asked is said to be that."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import dspy
import pytest
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
from tests.public_strategies import questions
from tests.scenes import ABSTAINS, CONTESTED, DERIVATION, SETTLED, repair
from tests.selecting import Returns, each_call, each_way, inputs_of, select_acall, selector_of

SPAN = repair("Persian Gulf", 1)
SOON, LONG = 0.02, 60.0


class Never(dspy.Module):  # a role that does not answer while a test runs
    def __init__(self) -> None:
        super().__init__()
        self.over = threading.Event()

    def forward(self, **_: Any) -> Any:
        self.over.wait(30)
        return dspy.Prediction(**ABSTAINS)

    async def aforward(self, **_: Any) -> Any:
        await asyncio.Event().wait()


@pytest.fixture
def never() -> Iterator[Never]:
    role = Never()
    yield role
    role.over.set()


spans, derivations = st.sampled_from(("", "Paris", "1976")), st.sampled_from((ABSTAINS, DERIVATION))


@pytest.mark.law("failed_judge_equals_silent_judge", "property")
@settings(max_examples=25)
@given(question=questions(), span=spans, derived=derivations)
def test_a_late_judge_decides_as_a_silent_one(question: Question, span: str, derived: dict[str, Any]) -> None:
    """With any repairer and deriver, who are asked alike."""
    others = repair(span, -1), derived
    late = selector_of(Never(), *others, on_failure="abstain", timeout=LONG, role_timeouts={"judge": 0.002})
    result = select_acall(late, inputs_of(question)).toDict()
    silent = select_acall(selector_of(ABSTAINS, *others), inputs_of(question)).toDict()
    judged = {"judge": "TimeoutError: the judge did not answer within its timeout of 0.002 s"}
    assert result.pop("failures") == (judged if "judge" in result["consulted"] else silent["failures"])
    assert result.pop("abstentions").keys() == silent.pop("abstentions").keys()
    assert result == {name: value for name, value in silent.items() if name != "failures"}


@each_way
def test_the_repairer_is_asked_and_ships_though_the_judge_hangs(call: Any, never: Never) -> None:
    select = selector_of(never, SPAN, on_failure="abstain", timeout=1.0)
    pred = call(select, CONTESTED)
    assert (pred.answer, pred.branch, pred.consulted) == ("Persian Gulf", "repair", ["judge", "repairer"])
    late = "TimeoutError: the judge did not answer within its share of the question's timeout of 1 s"
    assert pred.failures == {"judge": late}


@each_call
def test_a_role_for_which_no_time_is_left_was_not_asked_and_it_is_said_who_used_it_up(call: Any, never: Never) -> None:
    """A share that one gives to the judge oneself may be all that there is."""
    select = selector_of(never, SPAN, on_failure="abstain", timeout=SOON, role_timeouts={"judge": LONG})
    pred = call(select, CONTESTED)
    assert (pred.answer, pred.branch, pred.consulted) == ("Dubai", "consensus", ["judge"])
    late = "did not answer within the question's timeout of 0.02 s"
    unasked = "was not asked, because the judge used up the question's timeout of 0.02 s"
    assert [*pred.failures] == ["judge", "repairer"]
    assert [*pred.failures.values()] == [f"TimeoutError: the judge {late}", f"TimeoutError: the repairer {unasked}"]
    assert pred.abstentions["repairer"] == f"failed: {pred.failures['repairer']}"


def test_roles_and_scorers_are_asked_though_a_certificate_hangs_or_the_rule_takes_the_time(never: Never) -> None:
    calls = Calls("abstain", 1e-9)
    late = calls.ask("judge", Returns(ABSTAINS), {}, ["repairer"])
    assert isinstance(late, Abstention) and (late.kind, late.failed) == ("TimeoutError", True)
    assert calls.failures["judge"].endswith("not asked, because the rule used up the question's timeout of 1e-09 s")
    assert calls.unasked == {"judge"}
    options: dict[str, Any] = {"on_failure": "abstain", "timeout": LONG, "scorers": hanging(never)}
    soon = {"certificate": SOON, "scorer": SOON}
    pred = select_acall(Selector(certificate=never_certified, role_timeouts=soon, **options), CONTESTED)
    assert pred.failures == {"certificate": "TimeoutError: the certificate did not answer within its timeout of 0.02 s"}
    assert pred.scores[0]["undefined"].endswith("the scorer did not answer within its timeout of 0.02 s")


@each_case("selector", "shares of twelve seconds")
def test_what_is_left_is_divided(who: str, later: list[str], scorers: int, own: Any, seconds: int) -> None:
    """Among those who may still be asked; a timeout of its own comes first. Where a failure is raised, nobody is."""
    for on_failure in ("abstain", "raise"):
        limit = Calls(on_failure, 12.0, own, scorers)._limit(who, later)
        expected = seconds if on_failure == "abstain" else min(own.get(who) or 12, 12)
        assert limit is not None and round(limit.ends - time.monotonic()) == expected


@each_case("selector", "who may still be asked")
def test_who_may_still_be_asked(rule: str, name: Any, heard: list[str], later: list[str]) -> None:
    kind = Selector().type
    assert later_roles(name, rule, kind, heard, certifies=False) == later
    certified = [*later, "repair_certificate"] if "repairer" in (name, *later) else later
    assert later_roles(name, rule, kind, heard, certifies=True) == certified


async def never_certified(answer: str, evidence: Any, question: str) -> Certificate:
    await asyncio.Event().wait()
    raise AssertionError(answer)


def hanging(never: Never) -> Any:
    """A scorer that does not answer while a test runs; a loop that ends waits for its threads."""
    return SimpleNamespace(score=lambda reasonings: never.over.wait(1))


@each_call
def test_a_late_scorer_leaves_its_scores_undefined_and_a_timeout_of_a_role_is_enough(call: Any, never: Never) -> None:
    select = selector_of(never, SPAN, on_failure="abstain", role_timeouts={"judge": SOON})
    assert (call(select, CONTESTED).answer, Selector().role_timeouts) == ("Persian Gulf", {})
    pred = call(Selector(scorers=hanging(never), timeout=SOON), SETTLED)
    late = "the scorer failed: TimeoutError: the scorer did not answer within the question's timeout of 0.02 s"
    assert (pred.answer, pred.scores[0]["undefined"]) == ("Doha", late)


class Watched(Judge):  # a judge that says when its call has ended
    def __init__(self) -> None:
        super().__init__()
        self.ended = threading.Event()

    def forward(self, **inputs: Any) -> Any:
        try:
            return super().forward(**inputs)
        finally:
            self.ended.set()


@contextmanager
def asking(behaviour: Any, *, bound: bool = False, **options: Any) -> Iterator[tuple[Selector, Any, Any]]:
    """A selector whose LM, its own or that of the settings, has a server that behaves so; the LM, and the server."""
    with serving(behaviour) as server:
        lm, select = lm_at(server.address), Selector(on_failure="abstain", **options)
        if bound:
            select.set_lm(lm)
        with dspy.context(lm=None if bound else lm):
            yield select, lm, server


each_binding = pytest.mark.parametrize("bound", [False, True])


@each_binding
def test_a_call_of_a_server_that_hangs_leaves_no_thread(bound: bool) -> None:
    """The LM gets a timeout, and is not asked again once the call is late."""
    over, judge = threading.Event(), Watched()
    with asking(lambda _: Answer("{}" if over.wait(30) else ""), timeout=0.2) as (select, lm, server):
        select.judge = judge
        if bound:
            select.set_lm(lm)
        pred = select(**CONTESTED)
        assert judge.ended.wait(20)
        over.set()
    assert [*pred.failures] == ["judge", "repairer"]
    assert [one.role for one in server.log].count("judge") <= 1
    assert "timeout" not in lm.kwargs


@each_call
@pytest.mark.parametrize(("status", "error"), [(503, "LMServerError: "), (429, "LMRateLimitError: ")])
@each_binding
def test_a_retried_error_of_the_server_is_reported_as_such(call: Any, status: int, error: str, bound: bool) -> None:
    """If the server asks to wait for longer than the call may take, it fails at once."""
    with asking(lambda _: Answer(status=status, retry_after="30"), bound=bound, timeout=LONG / 3) as (select, *_):
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
        (limited := lm_at())._engine_spec = own
        engine = with_limit(limited, Limit(ends, 2.0))._engine_spec
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

    async def stopped() -> Any:
        return await asyncio.wait_for(in_thread(lambda: next(iter(()))), 60)

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(stopped())
