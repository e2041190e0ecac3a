"""A late role silences only itself: each has its share of the timeout, and who was not asked is said to be that."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eldgr_dspy.certificates import Certificate
from eldgr_dspy.channels.step_table import StepTable
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.calls import Calls
from eldgr_dspy.programs.requests.metered_lms import metered_lm
from eldgr_dspy.programs.requests.retrying import Limit, with_limit
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.rule_roles import later_roles
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.service.threads import in_thread
from eldgr_dspy.rule.consultations import Abstention
from eldgr_dspy.rule.questions import Question
from tests.lm_server import Answer, serving
from tests.public_strategies import questions
from tests.selecting import (
    ABSTAINS,
    CONTESTED,
    DERIVATION,
    SETTLED,
    Returns,
    each_call,
    each_way,
    inputs_of,
    repair,
    select_acall,
    selector_of,
)

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


# -- law 15, of lateness ----------------------------------------------------------------------------------------------
@pytest.mark.law("failed_judge_equals_silent_judge", "property")
@settings(max_examples=25)
@given(
    question=questions(), span=st.sampled_from(("", "Paris", "1976")), derived=st.sampled_from((ABSTAINS, DERIVATION))
)
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


# -- who was not asked ------------------------------------------------------------------------------------------------
@each_call
def test_a_role_for_which_no_time_is_left_was_not_asked_and_it_is_said_who_used_it_up(call: Any, never: Never) -> None:
    """A share that one gives to the judge oneself may be all that there is."""
    select = selector_of(never, SPAN, on_failure="abstain", timeout=SOON, role_timeouts={"judge": LONG})
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
    late = calls.ask("judge", Returns(ABSTAINS), {}, ["repairer"])
    assert isinstance(late, Abstention) and (late.kind, late.failed) == ("TimeoutError", True)
    assert calls.failures["judge"].endswith("not asked, because the rule used up the question's timeout of 1e-09 s")
    assert calls.unasked == {"judge"}


# -- shares -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("who", "later", "scorers", "own", "seconds"),
    [
        ("judge", (), 0, {}, 12),
        ("judge", ("repairer",), 0, {}, 6),
        ("judge", ("repairer",), 1, {}, 4),
        ("certificate", ("judge", "repairer", "repair_certificate"), 0, {}, 3),
        ("scorer", (), 2, {}, 6),
        ("scorer", (), 1, {}, 12),
        ("judge", ("repairer",), 0, {"judge": 9}, 9),
        ("judge", ("repairer",), 0, {"judge": 15}, 12),
        ("judge", ("repairer",), 0, {"repairer": 2}, 10),
        ("judge", ("repairer",), 0, {"repairer": 15}, 6),
    ],
)
def test_what_is_left_of_twelve_seconds_is_divided_among_those_who_may_still_be_asked(
    who: str, later: tuple[str, ...], scorers: int, own: dict[str, float | None], seconds: int
) -> None:
    """A timeout of its own comes first and is kept for a role. Where a failure is raised, nobody is asked after it."""
    for on_failure in ("abstain", "raise"):
        limit = Calls(on_failure, 12.0, own, scorers)._limit(who, later)
        expected = seconds if on_failure == "abstain" else min(own.get(who) or 12, 12)
        assert limit is not None and round(limit.ends - time.monotonic()) == expected


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


async def never_certified(answer: str, evidence: Any, question: str) -> Certificate:
    await asyncio.Event().wait()
    raise AssertionError(answer)


class Hangs:  # a scorer that does not answer while a test runs
    def __init__(self, over: threading.Event) -> None:
        self.over = over

    def score(self, reasonings: Any) -> list[StepTable]:
        self.over.wait(1)  # a loop that ends waits for its threads
        return []


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
def test_a_late_scorer_leaves_its_scores_undefined(call: Any, never: Never) -> None:
    pred = call(Selector(scorers=Hangs(never.over), timeout=SOON), SETTLED)
    never.over.set()
    late = "the scorer failed: TimeoutError: the scorer did not answer within the question's timeout of 0.02 s"
    assert (pred.answer, pred.scores[0]["undefined"]) == ("Doha", late)


@each_call
def test_a_timeout_of_a_role_needs_none_of_the_question(call: Any, never: Never) -> None:
    select = selector_of(never, SPAN, on_failure="abstain", role_timeouts={"judge": SOON})
    assert (call(select, CONTESTED).answer, Selector().role_timeouts) == ("Persian Gulf", {})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"referee": 5}, r"^role_timeouts must map 'judge', .*, 'scorer' to seconds; got \{'referee': 5\}\."),
        (5, r"^role_timeouts must map 'judge', .* to seconds; got 5\."),
        ({"judge": 0}, r"^role_timeouts\['judge'\] must be a number of seconds above 0 and at most .*; got 0\."),
    ],
)
def test_timeouts_of_roles_that_cannot_be_kept_are_refused(value: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Selector(role_timeouts=value)


# -- the LM of a late call --------------------------------------------------------------------------------------------
class Watched(Judge):  # a judge that says when its call has ended
    def __init__(self) -> None:
        super().__init__()
        self.ended = threading.Event()

    def forward(self, **inputs: Any) -> Any:
        try:
            return super().forward(**inputs)
        finally:
            self.ended.set()


def lm_at(address: str) -> Any:
    return dspy.LM("openai/gpt-4o-mini", api_base=address, api_key="k", cache=False)


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


def test_an_lm_whose_requests_somebody_else_sends_again_is_left_as_it_is() -> None:
    lm = metered_lm(lm_at("http://127.0.0.1:9/v1"))
    assert with_limit(lm, Limit(time.monotonic(), 1.0)) is lm
    once = with_limit(lm_at("http://127.0.0.1:9/v1"), Limit(time.monotonic(), 1.0))
    assert with_limit(once, Limit(time.monotonic(), 1.0)) is once


def test_selectors_in_threads_of_dspy_do_not_wait_for_one_another() -> None:
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


def test_a_program_that_ends_by_stop_iteration_fails_when_it_is_awaited() -> None:
    async def stopped() -> Any:
        return await asyncio.wait_for(in_thread(lambda: next(iter(()))), 60)

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(stopped())
