"""A late role silences only itself: each has its share of the timeout, and who was not asked is said to be that."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.certificates import Certificate
from eldgr_dspy.channels.table import StepTable
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.calls import Calls
from eldgr_dspy.programs.requests.metered_lms import metered_lm
from eldgr_dspy.programs.requests.retrying import Limit, limited
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.rule_roles import later_roles
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.consultations import Abstention
from eldgr_dspy.rule.questions import Question
from tests.lm_server import Answer, serving
from tests.public_strategies import questions
from tests.selecting import (
    CONTESTED,
    DERIVATION,
    Returns,
    each_way,
    inputs_of,
    repair,
    saying,
    select_acall,
    select_sync,
    selector_of,
    verdict,
)

SILENCE = {"abstained": "?"}
SPAN = repair("Persian Gulf", 1)
SOON, LONG = 0.02, 60.0
each_call = pytest.mark.parametrize("call", [select_sync, select_acall])


class Never(dspy.Module):
    """A role that does not answer while a test runs."""

    def __init__(self) -> None:
        super().__init__()
        self.over = threading.Event()

    def forward(self, **_: Any) -> Any:
        self.over.wait(30)
        return dspy.Prediction(**SILENCE)

    async def aforward(self, **_: Any) -> Any:
        await asyncio.Event().wait()


@pytest.fixture
def never() -> Iterator[Never]:
    role = Never()
    yield role
    role.over.set()


# -- law 15, of lateness ----------------------------------------------------------------------------------------------


@pytest.mark.law("failed_judge_equals_silent_judge", "property")
@settings(max_examples=25)
@given(
    question=questions(), span=st.sampled_from(("", "Paris", "1976")), derived=st.sampled_from((SILENCE, DERIVATION))
)
def test_a_late_judge_decides_as_a_silent_one(question: Question, span: str, derived: dict[str, Any]) -> None:
    """With any repairer and deriver, who are asked alike."""
    others = repair(span, -1), derived
    late = selector_of(SILENCE, *others, on_failure="abstain", timeout=LONG, role_timeouts={"judge": 0.002})
    late.judge = Never()
    found = select_acall(late, inputs_of(question)).toDict()
    silent = select_acall(selector_of(SILENCE, *others), inputs_of(question)).toDict()
    judged = {"judge": "TimeoutError: the judge did not answer within its timeout of 0.002 s"}
    assert found.pop("failures") == (judged if "judge" in found["consulted"] else silent["failures"])
    assert found.pop("abstentions").keys() == silent.pop("abstentions").keys()
    assert found == {name: value for name, value in silent.items() if name != "failures"}


@each_way
def test_the_repairer_is_asked_and_ships_though_the_judge_hangs(call: Any, never: Never) -> None:
    select = selector_of(SILENCE, SPAN, on_failure="abstain", timeout=1.0)
    select.judge = never
    pred = call(select, CONTESTED)
    assert (pred.answer, pred.branch, pred.consulted) == ("Persian Gulf", "repair", ["judge", "repairer"])
    late = "TimeoutError: the judge did not answer within its share of the question's timeout of 1 s"
    assert pred.failures == {"judge": late}


# -- who was not asked ------------------------------------------------------------------------------------------------


@each_call
def test_a_role_for_which_no_time_is_left_was_not_asked_and_it_is_said_who_used_it_up(call: Any, never: Never) -> None:
    """A share that one gives to the judge oneself may be all that there is."""
    select = selector_of(SILENCE, SPAN, on_failure="abstain", timeout=SOON, role_timeouts={"judge": LONG})
    select.judge = never
    pred = call(select, CONTESTED)
    assert (pred.answer, pred.branch, pred.consulted) == ("Dubai", "consensus", ["judge"])
    assert pred.failures == {
        "judge": "TimeoutError: the judge did not answer within the question's timeout of 0.02 s",
        "repairer": "TimeoutError: the repairer was not asked, because the judge used up the question's timeout of"
        " 0.02 s",
    }
    assert pred.abstentions["repairer"] == f"failed: {pred.failures['repairer']}"


def test_a_rule_that_takes_the_time_itself_is_said_to() -> None:
    calls = Calls("abstain", 1e-9)
    late = calls.ask("judge", Returns(SILENCE), {}, ["repairer"])
    assert isinstance(late, Abstention) and (late.kind, late.failed) == ("TimeoutError", True)
    assert calls.failures["judge"].endswith("not asked, because the rule used up the question's timeout of 1e-09 s")
    assert calls.unasked == {"judge"}


# -- shares -----------------------------------------------------------------------------------------------------------


def seconds_of(
    who: str, later: tuple[str, ...] = (), scorers: int = 0, on_failure: Any = "abstain", **own: Any
) -> float:
    """How long a call may take of a timeout of 12 s, to the second."""
    limit = Calls(on_failure, 12.0, own, scorers)._limit(who, later)
    assert limit is not None
    return round(limit.ends - time.monotonic())


def test_what_is_left_is_divided_among_those_who_may_still_be_asked() -> None:
    assert seconds_of("judge") == 12
    assert seconds_of("judge", ("repairer",)) == 6
    assert seconds_of("judge", ("repairer",), scorers=1) == 4
    assert seconds_of("certificate", ("judge", "repairer", "repair_certificate")) == 3
    assert seconds_of("scorer", scorers=2) == 6
    assert seconds_of("scorer", scorers=1) == 12


def test_a_timeout_of_its_own_comes_first_and_is_kept_for_a_role() -> None:
    assert seconds_of("judge", ("repairer",), judge=9) == 9
    assert seconds_of("judge", ("repairer",), judge=15) == 12
    assert seconds_of("judge", ("repairer",), repairer=2) == 10
    assert seconds_of("judge", ("repairer",), repairer=15) == 6


def test_if_a_failure_is_raised_a_call_may_take_all_that_is_left() -> None:
    """Nobody is asked after it fails, so that a share would only make it fail earlier."""
    assert seconds_of("judge", ("repairer",), on_failure="raise") == 12


@pytest.mark.parametrize(
    ("rule", "name", "heard", "later"),
    [
        ("eldgr", "judge", (), ["repairer"]),
        ("eldgr", "repairer", (), []),
        ("eldgr", "certificate", (), ["judge", "repairer"]),
        ("judge", "judge", (), []),
        ("near(1)", "repairer", (), ["judge"]),
        ("near(1)", "repairer", ("judge",), []),
        ("my_rules:own", "repairer", ("judge",), ["deriver"]),
    ],
)
def test_who_may_still_be_asked(rule: str, name: Any, heard: tuple[str, ...], later: list[str]) -> None:
    kind = Selector().type
    assert later_roles(name, rule, kind, heard, certifies=False) == later
    certified = [*later, "repair_certificate"] if "repairer" in (name, *later) else later
    assert later_roles(name, rule, kind, heard, certifies=True) == certified


class Hangs:
    """A scorer that does not answer while a test runs."""

    def __init__(self, over: threading.Event) -> None:
        self.over = over

    def score(self, reasonings: Any) -> list[StepTable]:
        self.over.wait(1)  # a loop that ends waits for its threads
        return []


async def never_certified(answer: str, evidence: Any, question: str) -> Certificate:
    await asyncio.Event().wait()
    raise AssertionError(answer)


def test_roles_and_scorers_are_asked_though_a_certificate_hangs(never: Never) -> None:
    select = Selector(
        certificate=never_certified,
        on_failure="abstain",
        timeout=LONG,
        role_timeouts={"certificate": SOON, "scorer": SOON},
        scorers=Hangs(never.over),
    )
    pred = select_acall(select, CONTESTED)
    assert pred.failures == {"certificate": "TimeoutError: the certificate did not answer within its timeout of 0.02 s"}
    assert pred.scores[0]["undefined"].endswith("the scorer did not answer within its timeout of 0.02 s")


@each_call
def test_a_timeout_of_a_role_needs_none_of_the_question(call: Any, never: Never) -> None:
    select = selector_of(SILENCE, SPAN, on_failure="abstain", role_timeouts={"judge": SOON})
    select.judge = never
    assert (call(select, CONTESTED).answer, Selector().role_timeouts) == ("Persian Gulf", {})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"referee": 5}, r"^role_timeouts must map 'judge', .*, 'scorer' to seconds; got \{'referee': 5\}\."),
        (5, r"^role_timeouts must map 'judge', .* to seconds; got 5\."),
        ({"judge": 0}, r"^role_timeouts\['judge'\] must be a number of seconds above 0 and at most .*; got 0\."),
    ],
)
def test_timeouts_of_roles_that_cannot_be_kept_are_refused(given: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        Selector(role_timeouts=given)


# -- the LM of a late call --------------------------------------------------------------------------------------------


class Watched(Judge):
    """A judge that says when its call has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = threading.Event()

    def forward(self, **inputs: Any) -> Any:
        try:
            return super().forward(**inputs)
        finally:
            self.ended.set()


def asking(address: str, **options: Any) -> Any:
    return dspy.LM("openai/gpt-4o-mini", api_base=address, api_key="k", cache=False, **options)


@pytest.mark.parametrize("bound", [False, True])
def test_a_call_of_a_server_that_hangs_leaves_no_thread(bound: bool) -> None:
    """The LM gets a timeout, and is not asked again once the call is late."""
    over = threading.Event()
    with serving(lambda _: Answer("{}" if over.wait(30) else "")) as server:
        lm, select = asking(server.address), Selector(on_failure="abstain", timeout=0.2)
        select.judge = Watched()
        if bound:
            select.set_lm(lm)
        with dspy.context(lm=None if bound else lm):
            pred = select(**CONTESTED)
        assert select.judge.ended.wait(20)
        over.set()
    assert [*pred.failures] == ["judge", "repairer"]
    assert [one.role for one in server.log].count("judge") <= 1
    assert "timeout" not in lm.kwargs


@each_call
@pytest.mark.parametrize(("status", "error"), [(503, "LMServerError: "), (429, "LMRateLimitError: ")])
@pytest.mark.parametrize("bound", [False, True])
def test_an_error_of_the_server_that_is_retried_is_reported_as_such(
    call: Any, status: int, error: str, bound: bool
) -> None:
    """If the server asks to wait for longer than the call may take, it fails at once."""
    with serving(lambda _: Answer(status=status, retry_after="30")) as server:
        select, lm = Selector(on_failure="abstain", timeout=LONG / 3), asking(server.address)
        if bound:
            select.set_lm(lm)
        with dspy.context(lm=None if bound else lm):
            pred = call(select, CONTESTED)
    assert [said.startswith(error) for said in pred.failures.values()] == [True, True]
    assert [*pred.failures] == ["judge", "repairer"]


@each_call
def test_an_error_is_reported_if_the_request_after_it_hangs(call: Any) -> None:
    over = threading.Event()

    def once(asked: Any) -> Answer:
        return Answer(status=503) if asked.times == 1 or not over.wait(30) else Answer("{}")

    with serving(once) as server:
        select = Selector(rule="judge", on_failure="abstain", role_timeouts={"judge": 1.0})
        with dspy.context(lm=asking(server.address)):
            pred = call(select, CONTESTED)
        over.set()
    assert [said.startswith("LMServerError: ") for said in pred.failures.values()] == [True]


@each_call
def test_an_error_that_passes_in_time_is_none(call: Any) -> None:
    def once(asked: Any) -> Answer:
        return Answer(status=503) if asked.times == 1 else Answer('{"preferred": 2}')

    with serving(once) as server, dspy.context(lm=asking(server.address)):
        pred = call(Selector(on_failure="abstain", timeout=LONG, replies="lenient"), CONTESTED)
    assert (pred.answer, pred.failures) == ("Doha", {})


def test_an_lm_whose_requests_somebody_else_sends_again_is_left_as_it_is() -> None:
    lm = metered_lm(asking("http://127.0.0.1:9/v1"))
    assert limited(lm, Limit(time.monotonic(), 1.0)) is lm
    once = limited(asking("http://127.0.0.1:9/v1"), Limit(time.monotonic(), 1.0))
    assert limited(once, Limit(time.monotonic(), 1.0)) is once


def test_the_trace_names_the_roles_own_predictors_though_their_lms_keep_to_a_limit() -> None:
    select = Selector(timeout=LONG)
    select.set_lm(saying(verdict(0), SPAN))
    with dspy.context(trace=[]):
        select(**CONTESTED)
        trace = dspy.settings.trace
    assert [one for one, *_ in trace] == [one for _, one in select.named_predictors()]


def test_the_trace_within_a_timeout_keeps_to_its_size() -> None:
    with dspy.context(lm=saying(verdict(0), SPAN), trace=[], max_trace_size=3):
        select = Selector(timeout=LONG)
        for _ in range(3):
            select(**CONTESTED)
        assert len(dspy.settings.trace) == 3
