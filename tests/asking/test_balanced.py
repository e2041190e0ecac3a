"""One model on several servers: which of them is asked, and what happens to a request that one does not answer."""

import asyncio
import copy
import errno
import logging
import pickle
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import dspy
import pytest
from dspy.lm15 import Message, Request
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.balanced import PATIENCE, BalancedLM
from eldgr_dspy.programs.engines.servers import FAILURES, LONGEST_REST, REST, Server, Servers
from eldgr_dspy.programs.models import lm_named
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.run.metered_lms import metered_lm
from eldgr_dspy.programs.run.metering import metering
from tests.asking.transport import GOOD
from tests.lm_server import Answer, Asked, Behaviour, LMServer, serving

NOBODY = "http://127.0.0.1:9/v1"
INPUTS = {"question": "Who?", "evidence": ["A\nIt was A."], "candidates": ["A", "B", "C"]}
BROKEN = Answer(status=500)


@pytest.fixture(autouse=True)
def loopback_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@contextmanager
def farm(*behaviours: Behaviour) -> Iterator[list[LMServer]]:
    """Servers of one model, one for each behaviour."""
    with ExitStack() as held:
        yield [held.enter_context(serving(behave)) for behave in behaviours]


def good(asked: Asked) -> Answer:
    return GOOD


def broken(asked: Asked) -> Answer:
    return BROKEN


def balanced(*where: LMServer | str, **options: Any) -> BalancedLM:
    addresses = [one if isinstance(one, str) else one.address for one in where]
    options = {"api_key": "key", "cache": False, "num_retries": 0, **options}
    return BalancedLM("openai/gpt-4o-mini", api_base=addresses, **options)


def judged(lm: dspy.BaseLM) -> int:
    with dspy.context(lm=lm):
        preferred: int = Judge()(**INPUTS).preferred
    return preferred


def ajudged(lm: dspy.BaseLM) -> int:
    with dspy.context(lm=lm):
        preferred: int = asyncio.run(Judge().acall(**INPUTS)).preferred
    return preferred


ways = pytest.mark.parametrize("way", [judged, ajudged], ids=["sync", "async"])


# -- which server is next --


def names(count: int) -> list[str]:
    return [f"http://gpu-{number}:8000/v1" for number in range(count)]


def test_the_least_busy_server_is_next_and_the_first_of_those() -> None:
    servers = Servers(names(3))
    taken = [servers.take() for _ in range(7)]
    assert [servers.all.index(one) for one in taken] == [0, 1, 2, 0, 1, 2, 0]
    for one in (taken[1], taken[2], taken[5]):
        servers.answer(one)
    assert [servers.all.index(servers.take()) for _ in range(6)] == [2, 1, 2, 1, 2, 0]


def test_a_server_that_fails_is_passed_over_for_longer_each_time() -> None:
    servers = Servers(names(2))
    ill, well = servers.all
    rests = []
    for _ in range(9):
        assert servers.take() is ill
        servers.fail(ill, "why")
        passed = 0
        while (one := servers.take()) is well:
            servers.answer(well)
            passed += 1
        servers.leave(one)
        rests.append(passed)
        ill.rest = 0  # the one that was taken and left is due again
    assert rests == [min(REST << doubled, LONGEST_REST) for doubled in range(9)]
    servers.answer(servers.take())
    assert servers.take() is ill, "an answer makes it well"


def test_failures_under_way_together_make_one_rest_and_are_reported_once() -> None:
    servers = Servers(names(1))
    taken = [servers.take() for _ in range(8)]
    reports = [servers.fail(one, "why") for one in taken]
    assert reports == [number == FAILURES - 1 for number in range(8)]
    assert (taken[0].pause, taken[0].in_a_row, taken[0].failed) == (REST, 8, 8)


def test_one_request_at_a_time_finds_out_whether_a_server_is_back() -> None:
    servers = Servers(names(2))
    ill, well = servers.all
    servers.fail(servers.take(), "why")
    for _ in range(REST):
        servers.answer(servers.take())
    assert [servers.take() for _ in range(4)] == [ill, well, well, well]


def test_if_every_server_fails_the_one_that_failed_least_is_asked() -> None:
    servers = Servers(names(3))
    for expected in (0, 1, 2, 0, 1, 2, 0):
        one = servers.take()
        assert servers.all.index(one) == expected
        servers.fail(one, "why")


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["answer", "fail", "leave"]))), st.integers(1, 4))
def test_the_counts_of_requests_under_way_are_those_that_have_not_ended(
    steps: list[tuple[int, str]], count: int
) -> None:
    servers = Servers([f"http://{id(steps)}/{number}" for number in range(count)])
    under_way: list[Server] = []
    ended = Counter[str]()
    for at, how in steps:
        under_way.append(servers.take())
        if at < len(under_way):
            one = under_way.pop(at)
            ended[how] += 1
            servers.fail(one, "") if how == "fail" else getattr(servers, how)(one)
    assert Counter(under_way) == Counter({one: one.under_way for one in servers.all if one.under_way})
    assert sum(one.answered for one in servers.all) == ended["answer"]
    assert sum(one.failed for one in servers.all) == ended["fail"]


@pytest.mark.parametrize(
    ("addresses", "said"),
    [
        ([], "api_base must hold addresses; got an empty list"),
        ([NOBODY, None], "api_base must hold addresses; got None"),
        ([NOBODY, ""], "api_base must hold addresses; got ''"),
        (["http://me:secret@h", NOBODY, "http://me:secret@h"], "must hold each address once; got 'h' twice"),
    ],
)
def test_a_list_without_addresses_or_with_one_twice_is_refused(addresses: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        BalancedLM("openai/m", api_base=addresses)
    with pytest.raises(ArgumentError, match=said):
        lm_named("openai/m", addresses)


# -- an LM of several servers --


@ways
def test_a_request_that_one_server_does_not_answer_goes_to_another(way: Callable[[dspy.BaseLM], int]) -> None:
    with farm(broken, good) as (first, second):
        lm = balanced(first, second)
        assert [way(lm) for _ in range(4)] == [2] * 4
        assert (len(first.log), len(second.log)) == (1, 4)
    assert [(one.answered, one.failed, one.under_way) for one in lm.servers.all] == [(0, 1, 0), (4, 0, 0)]


@pytest.mark.parametrize("status", [0, 408, 500, 503], ids=["reset", "408", "500", "503"])
def test_each_way_to_fail_sends_the_request_elsewhere(status: int) -> None:
    with farm(lambda _: Answer(status=status, retry_after="50"), good) as (first, second):
        assert judged(balanced(first, second)) == 2
        assert (len(first.log), len(second.log)) == (1, 1)


@pytest.mark.parametrize(("status", "raised"), [(400, dspy.LMInvalidRequestError), (401, dspy.LMAuthError)])
def test_a_refusal_of_the_request_is_an_answer_and_goes_nowhere_else(status: int, raised: type[Exception]) -> None:
    with farm(lambda _: Answer(status=status), good) as (first, second):
        lm = balanced(first, second, num_retries=3)
        with pytest.raises(raised):
            judged(lm)
        assert (len(first.log), len(second.log)) == (1, 0)
        assert lm.servers.one_is_well and not lm.servers.all[0].failed


@ways
def test_a_server_that_hangs_is_left_after_the_timeout(way: Callable[[dspy.BaseLM], int]) -> None:
    over = threading.Event()

    def hangs(asked: Asked) -> Answer:
        over.wait(20)
        return GOOD

    try:
        with farm(hangs, good) as (first, second):
            held = balanced(first, second)
            with dspy.context(**{PATIENCE: 1.0}):
                assert way(held) == 2
            assert way(balanced(first, second, timeout=1.0)) == 2
            assert (len(first.log), len(second.log)) == (1, 2), "what is known of a server is known to every LM"
            over.set()
    finally:
        over.set()


@ways
def test_a_refused_connection_takes_no_retry_and_if_all_refuse_the_error_is_the_usual_one(
    way: Callable[[dspy.BaseLM], int],
) -> None:
    nowhere = [NOBODY, "http://127.0.0.1:10/v1", "http://127.0.0.1:11/v1"]
    with serving(good) as server:
        assert way(balanced(*nowhere, server)) == 2
        assert len(server.log) == 1
    with pytest.raises(dspy.LMTransportError, match=r"failed to connect to 127\.0\.0\.1:"):
        way(balanced(*nowhere))


def test_if_all_servers_fail_the_retries_are_the_usual_ones() -> None:
    with farm(broken, broken, broken) as servers:
        with pytest.raises(dspy.LMServerError):
            judged(balanced(*servers, num_retries=3))
        assert sum(len(one.log) for one in servers) == 1 + 3 + 2, "a first try, three retries, two other servers"


def test_a_server_that_is_back_gets_requests_again() -> None:
    with farm(lambda asked: BROKEN if asked.times == 1 else GOOD, good) as (first, second):
        lm = balanced(first, second)
        for _ in range(REST + 3):
            assert judged(lm) == 2
        assert (len(first.log), len(second.log)) == (4, REST), "one that failed, one that tried, and two more"


def test_a_server_that_keeps_failing_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with farm(broken, good) as (first, second), caplog.at_level(logging.INFO, "eldgr_dspy"):
        lm = balanced(first, second)
        for _ in range(5):
            lm.servers.all[0].rest = 0
            assert judged(lm) == 2
    said = [one.getMessage() for one in caplog.records if "in a row" in one.getMessage()]
    assert len(said) == 1
    assert (
        f"http://127.0.0.1:{first.server_port}/v1 failed 3 times in a row and is passed over: LMServerError" in said[0]
    )


def test_a_run_counts_each_request_that_reached_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    with farm(broken, good) as servers:
        lm = metered_lm(balanced(NOBODY, *servers))
        with metering() as meter:
            assert judged(lm) == 2
        assert (meter.calls, meter.failed) == (2, 1) == (sum(len(one.log) for one in servers), 1)
    lm = metered_lm(balanced(NOBODY, "http://127.0.0.1:10/v1"))
    with metering() as meter, pytest.raises(dspy.LMTransportError):
        judged(lm)
    assert meter.calls == 1, "as with one server, where a refused connection counts too"


def test_a_connection_that_was_refused_to_the_caller_before_is_not_the_servers() -> None:
    with farm(broken, good) as servers:
        lm = metered_lm(balanced(*servers))
        with metering() as meter:
            try:
                raise ConnectionRefusedError(errno.ECONNREFUSED, "the caller's first choice")
            except ConnectionRefusedError:
                assert judged(lm) == 2
        assert meter.calls == 2


def test_the_same_number_from_two_servers_is_no_echo() -> None:
    answer = Answer(GOOD.text, changes={"id": "chatcmpl-1"})
    gate = threading.Event()

    def first(asked: Asked) -> Answer:
        gate.wait(5)
        return answer

    with farm(first, lambda _: answer) as servers:
        lm = metered_lm(balanced(*servers))
        waiting = lm.servers.take()
        with metering() as meter:
            assert judged(lm) == 2  # by the second, since the first is busy
            lm.servers.answer(waiting)
            gate.set()
            assert judged(lm) == 2
        assert meter.calls == 2
        assert [len(one.log) for one in servers] == [1, 1]


def test_copies_ask_the_same_servers_and_keep_their_options() -> None:
    lm = balanced(NOBODY, "http://127.0.0.1:10/v1", temperature=0.0)
    for twin in (lm.copy(), copy.deepcopy(lm), pickle.loads(pickle.dumps(lm)), copy.copy(lm)):  # noqa: S301
        assert [one is other for one, other in zip(twin.servers.all, lm.servers.all, strict=True)] == [True] * 2
        assert (type(twin), twin.kwargs) == (BalancedLM, lm.kwargs)
    moved = lm.copy(api_base=[NOBODY], temperature=1.0)
    assert ([one.address for one in moved.servers.all], moved.kwargs["temperature"]) == ([NOBODY], 1.0)
    loaded: Any = dspy.BaseLM.load_state(lm.dump_state(), allow_custom_lm_class=True)
    assert (type(loaded), loaded.servers.all) == (BalancedLM, lm.servers.all)


def test_names_with_several_addresses_are_balanced_and_one_address_is_plain() -> None:
    several: Any = lm_named("openai/m", [NOBODY, "http://h:8000/v1"], temperature=0.0)
    assert (type(several), several.kwargs["api_base"]) == (BalancedLM, [NOBODY, "http://h:8000/v1"])
    plain = lm_named("openai/m", [NOBODY])
    assert (type(plain), plain.kwargs["api_base"]) == (dspy.LM, NOBODY)
    with pytest.raises(ArgumentError, match=r"one address for 'ollama/q'; got 2\. Name the model openai/q"):
        lm_named("ollama/q", [NOBODY, "http://h"])


def test_a_request_in_canonical_form_goes_elsewhere_too() -> None:
    told = "[[ ## question ## ]]\n<q bcdfghjk>\nWho?\n</q bcdfghjk>\n\nRespond with JSON."
    with farm(broken, good) as servers:
        lm = balanced(*servers)
        said = lm(Request(model=lm.model, system="`preferred`", messages=(Message.user(told),)))
        assert (said.text, [len(one.log) for one in servers]) == (GOOD.text, [1, 1])
    assert len(lm.history) == 1


def test_the_calls_of_an_lm_are_in_its_history() -> None:
    with farm(good, good) as servers:
        lm = balanced(*servers)
        judged(lm)
        judged(lm.copy())
    assert len(lm.history) == 1
