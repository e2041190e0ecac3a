"""A meter counts every request that was sent, answered or not, as the server itself counts them."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import dspy
import pytest
from dspy import lm15
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.programs.lms.consulting import aask, ask
from eldgr_dspy.programs.requests.limits import Spending
from eldgr_dspy.programs.requests.metered_lms import metered_lm, with_meter
from eldgr_dspy.programs.requests.metering import Entry, Meter, metering
from eldgr_dspy.programs.requests.retrying import Retries
from eldgr_dspy.programs.roles import Judge
from eldgr_dspy.programs.testing import Line, scripted_lm, text_of
from eldgr_dspy.rule.consultations import Consultation
from tests.lm_server import Answer, obliging, serving
from tests.modules import Does
from tests.refusing import refuses

INPUTS = {"question": "Who?", "evidence": ["A\nIt was A."], "candidates": ["A", "B"]}


def test_a_request_that_is_admitted_when_its_consultation_has_just_ended_is_not_sent() -> None:
    spending = Spending(max_calls=1)
    meter = Meter(spending=spending)
    assert spending.admit()
    meter.close()
    assert (meter.begin(), meter.calls, meter.under_way) == (False, 0, [])
    assert spending.admit()  # the place is free again


def consult(module: dspy.Module) -> Meter:
    with metering() as meter:
        ask(module, INPUTS)
    return meter


def aconsult(module: dspy.Module) -> Meter:
    with metering() as meter:
        asyncio.run(aask(module, INPUTS))
    return meter


@pytest.mark.parametrize("consults", [consult, aconsult])
@pytest.mark.parametrize("status", [429, 500])
def test_retries_are_counted(consults: Callable[[dspy.Module], Meter], status: int) -> None:
    with serving(lambda request: Answer(status=status) if request.times <= 2 else obliging(request)) as server:
        module = Judge()
        module.set_lm(dspy.LM("openai/gpt-4o-mini", api_base=server.address, api_key="key", cache=False, num_retries=3))
        meter = consults(with_meter(module))
        assert [entry.status for entry in server.log] == [status, status, 200]
    sums = meter.sums()
    assert (meter.calls, meter.n_failures, sums["served"]) == (3, 2, "gpt-4o-mini-2024-07-18")
    assert sums["completion_tokens"] > 0 and sums["cost"]


@pytest.mark.parametrize(("pause", "wait"), [(3600.0, 60.0), (59.0, 59.0), (0.0, 0.0), (None, 4.0), (-1.0, 4.0)])
def test_a_server_may_ask_for_a_minute_s_pause_and_no_more(pause: float | None, wait: float) -> None:  # hazard 79
    lm = metered_lm(scripted_lm([], num_retries=3))
    again = Retries(3)
    for _ in range(2):
        again.pause_after(dspy.LMRateLimitError("busy"))
    assert sum(lm._pauses(dspy.LMRateLimitError("busy", retry_after=pause), again)) == pytest.approx(wait)


def test_a_pause_ends_in_the_failure_where_the_run_stops_meanwhile() -> None:
    lm, stops = metered_lm(scripted_lm([], num_retries=3)), list[bool]()
    failure = dspy.LMRateLimitError("busy", retry_after=60.0)
    with metering(Meter(is_stopped=lambda: bool(stops))):
        pause = lm._pauses(failure, Retries(3))
        next(pause)
        stops.append(True)
        with pytest.raises(dspy.LMRateLimitError) as info:
            next(pause)
    assert info.value is failure


def test_an_lm_that_a_role_brings_by_itself_is_not_counted_nor_what_was_never_sent(monkeypatch: Any) -> None:
    """A cut reply of such an LM does not count either."""
    lm = scripted_lm([Line('{"judge_rationale": "", "assessments": [], "preferred": 0', cut=True)])

    def bring(role: Any, **inputs: Any) -> Any:
        with dspy.context(lm=lm):
            return role.judge(**inputs)

    with metering() as meter:
        reply = ask(with_meter(Does(bring, judge=Judge())), INPUTS)
    assert (len(lm.requests), meter.calls) == (1, 0)
    assert reply.content["abstained"].startswith("cut off: ")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    module = Judge()
    module.set_lm(dspy.LM("openai/gpt-4o-mini", cache=False))
    with metering() as meter, pytest.raises(dspy.LMConfigurationError):
        ask(with_meter(module), INPUTS)
    assert meter.calls == 0


def test_a_metered_lm_is_one_copy_and_the_original_keeps_its_retries_and_history() -> None:
    with serving() as server:
        lm = dspy.LM("openai/gpt-4o-mini", api_base=server.address, api_key="key", cache=False, num_retries=2)
        module = Judge()
        module.set_lm(lm)
        consult(with_meter(module))
        assert (lm.history, lm.num_retries, type(lm)) == ([], 2, dspy.LM)
        ask(module, INPUTS)
        assert len(lm.history) == 1
    two: Any = dspy.ChainOfThought("question -> answer")
    two.other = dspy.Predict("question -> answer")
    two.set_lm(scripted_lm([]))
    assert with_meter(two).get_lm() is not two.get_lm()


class Opaque(dspy.Module):  # a module that is compiled, so that DSPy's own walk over parameters passes it by
    def __init__(self, lm: Any) -> None:
        super().__init__()
        self.predict = dspy.Predict("question -> answer")
        self.predict.set_lm(lm)
        self._compiled = True


HOLDERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "an attribute": (lambda lm: lm, lambda holder: holder),
    "a list": (lambda lm: [lm], lambda holder: holder[0]),
    "a tuple in a dict": (lambda lm: {"first": ("x", lm)}, lambda holder: holder["first"][1]),
    "a predictor": (lambda lm: Opaque(lm).predict, lambda holder: holder.lm),
    "a compiled module": (Opaque, lambda holder: holder.predict.lm),
    "a list of compiled modules": (lambda lm: [Opaque(lm)], lambda holder: holder[0].predict.lm),
}


@pytest.mark.parametrize(("hold", "reach"), HOLDERS.values(), ids=HOLDERS)
def test_an_lm_is_metered_wherever_a_module_holds_it_in_threads_too(hold: Any, reach: Any) -> None:
    """It is asked eight times. The module itself is left as it was."""

    def act(role: Any, **_: Any) -> dspy.Prediction:
        parallel: Any = dspy.Parallel(num_threads=4, max_errors=99, disable_progress_bar=True)
        parallel([(reach(role.holder), {"prompt": f"number {number}"}) for number in range(8)])
        return dspy.Prediction(abstained="asked")

    for fails, n_failures in (("number 3", 1), ("number", 8)):

        def reply(request: Any, fails: str = fails) -> Any:
            return lm15.ServerError("down") if fails in text_of(request) else "hello"

        lm = scripted_lm(reply)
        module = Does(act, holder=hold(lm))
        with metering() as meter:
            assert ask(with_meter(module), INPUTS).content == {"abstained": "asked"}
        assert (len(lm.requests), meter.calls, meter.n_failures) == (8, 8, n_failures)
        assert reach(module.holder) is lm


def test_a_consultation_is_held_for_as_long_as_all_of_it_waits_and_no_longer() -> None:
    now = time.monotonic()
    meter = Meter()
    meter.hold(now - 5.0)
    assert 5.0 <= meter.wait < 50.0
    before = meter.wait
    meter.hold(now - 5.0)  # another request of it that has waited as long
    assert before <= meter.wait < before + 45.0
    before = meter.wait
    meter.begin()
    meter.hold(now - 500.0)  # while one of it is under way, it waits for itself
    assert meter.wait == before


LIMIT = 1000
"""Dollars. Prices are whole numbers, so that sums are exact."""
FEW = 10


def may_send(spending: Spending) -> bool | None:
    """Whether a request is admitted; None where the run stops."""
    try:
        return spending.admit()
    except RunStoppedError:
        return None


class Sender:  # a run that sends requests as far as it may, with at most `workers` under way
    def __init__(self, workers: int) -> None:
        self.spending, self.workers = Spending(max_cost=LIMIT), workers
        self.under_way: list[int] = []
        self.costs: list[int] = []
        self.passed_by = 0
        """The most that the limit can be passed by, as of the last request that was admitted."""

    def admit(self, price: int) -> bool:
        """Send a request of a price, which nobody knows beforehand; False where none may be sent any more."""
        if len(self.under_way) == self.workers:
            return True
        admission = may_send(self.spending)
        if admission:
            self.under_way.append(price)
            dearest = max(self.costs, default=0)
            self.passed_by = sum(max(0, one - dearest) for one in self.under_way)
        return admission is not None

    def come_back(self, which: int) -> None:
        if self.under_way:
            price = self.under_way.pop(which % len(self.under_way))
            self.costs.append(price)
            self.spending.count_reply(price)

    def end(self) -> int:
        """Wait for what is under way, and return what was spent."""
        while self.under_way:
            self.come_back(0)
        return sum(self.costs)


@given(st.integers(1, 8), st.lists(st.tuples(st.integers(0, 400), st.none() | st.integers(0, 7)), max_size=60))
@example(3, [(100, 0), (300, None), (300, None), (300, 0), (300, 0)])
def test_a_limit_is_passed_by_no_more_than_is_under_way(workers: int, steps: list[tuple[int, int | None]]) -> None:
    sender = Sender(workers)
    for price, which in steps:
        if not sender.admit(price):
            break
        if which is not None:
            sender.come_back(which)
    assert sender.end() <= LIMIT + sender.passed_by


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_each_request_under_way_can_pass_the_limit_by_what_it_is_dearer(workers: int) -> None:
    """The bound is reached: as many as fit by the price so far are sent together, and each costs more."""
    sender, (cheap, dear) = Sender(workers), (LIMIT // 10, 400)
    while not sender.costs or sum(sender.costs) + workers * cheap < LIMIT:
        sender.admit(cheap)
        sender.come_back(0)
    assert all(sender.admit(dear) for _ in range(workers))
    assert sender.end() == LIMIT + workers * (dear - cheap)
    assert not sender.admit(cheap)


def test_the_first_request_goes_alone_and_a_limit_of_requests_says_how_many_were_sent() -> None:
    """It can pass the limit of dollars by itself."""
    alone = Sender(8)
    assert all(alone.admit(LIMIT + 7) for _ in range(8))
    assert alone.under_way == [LIMIT + 7]
    assert alone.end() == LIMIT + 7
    for number, words in ((1, "1 request was sent"), (2, "2 requests were sent")):
        spending = Spending(max_calls=number)
        assert all(spending.admit() for _ in range(number))
        refuses(RunStoppedError, rf"^{words}, and --max-calls allows {number}; give a higher limit", spending.admit)


class Sessions:  # consultations of a few requests each, in sessions that resume each other, and the same in one session
    def __init__(self) -> None:
        self.whole, self.journal = Spending(max_cost=LIMIT), list[Consultation]()
        self.spending = Spending(max_cost=LIMIT)
        self.meters = [Meter(spending=self.spending) for _ in range(3)]
        self.costs: list[float] = []
        self.passed_by = 0.0

    def admit(self, which: int) -> None:
        """One session and many admit the same."""
        admission = may_send(self.whole)
        assert may_send(self.spending) is admission
        if admission:
            self.meters[which].begin()
            self.passed_by = max(0.0, 400 - max(self.costs, default=0)) * sum(len(one.under_way) for one in self.meters)

    def end(self, which: int, price: float | None) -> None:
        """A request comes back, with its price or failed."""
        meter = self.meters[which]
        if not meter.under_way:
            return
        if price is None:
            meter.fail(TimeoutError())
            self.whole.count_failure()
        else:
            self.costs.append(price)
            meter.answer(Entry(cost=price))
            self.whole.count_reply(price)

    def settle(self, which: int, outcome: Literal["ok", "failed"]) -> None:
        """A consultation ends."""
        meter = self.meters[which]
        while meter.under_way:
            self.end(which, 7)
        meter.close()
        name = f"q{len(self.journal)}"
        self.journal.append(Consultation("p", name, "judge", outcome, content={}, **meter.sums()))
        self.meters[which] = Meter(spending=self.spending)

    def resume(self) -> None:
        """The run stops, or is killed once all is journaled, and is resumed."""
        for which in range(3):
            self.settle(which, "failed")
        self.spending = Spending(max_cost=LIMIT, before=self.journal)
        self.meters = [Meter(spending=self.spending) for _ in range(3)]


WHICH = st.integers(0, 2)
END = [("settle", 0, "ok"), ("resume",), ("admit", 0)]


@given(
    st.lists(
        st.tuples(st.just("admit"), WHICH)
        | st.tuples(st.just("end"), WHICH, st.none() | st.integers(0, 400))
        | st.tuples(st.just("settle"), WHICH, st.sampled_from(["ok", "failed"]))
        | st.just(("resume",)),
        max_size=80,
    )
)
@example([("admit", 0), ("end", 0, 400), ("settle", 0, "failed"), ("resume",)] * 4)
@example([*[("admit", 0), ("end", 0, 300)] * 2, *END])
@example([("admit", 0), ("end", 0, None), *END])
def test_many_sessions_admit_what_one_would_and_spend_no_more(steps: list[tuple[Any, ...]]) -> None:
    run = Sessions()
    for name, *arguments in steps:
        getattr(run, name)(*arguments)
        assert sum(run.costs) <= LIMIT + run.passed_by


def test_what_a_session_before_spent_counts_by_its_dearest_request_and_a_reply_without_a_price_ends_it() -> None:
    """Without its dearest request each of a consultation is taken to have cost the same."""
    first = Consultation("p", "q", "judge", "ok", content={}, calls=2, cost=2.0)
    failure = Consultation("p", "q", "judge", "failed", calls=2)
    for one in (first, failure):
        assert Spending(max_cost=3.0, before=[one]).admit()
    message = r"^\$2\.0000 was spent and the dearest request took \$1\.5000, so one more may"
    refuses(RunStoppedError, message, Spending(max_cost=3.0, before=[replace(first, dearest=1.5)]).admit)
    spending = Spending(max_cost=3.0, before=[replace(failure, prompt_characters=0)])
    refuses(RunStoppedError, r"^A reply came without a price", spending.admit)


def test_a_request_that_is_given_up_is_counted_once_and_its_late_price_too() -> None:
    """As long as no price is known one request goes alone, and one that nobody waits for keeps no other from going."""
    spending = Spending(max_calls=2, max_cost=1.0)
    meter = Meter(spending=spending)
    assert spending.admit()
    meter.begin()
    assert not spending.admit()
    meter.close()
    assert spending.admit()
    spending.count_reply(0.25)
    meter.answer(Entry(cost=0.5))
    assert (meter.calls, meter.sums()["cost"]) == (1, None)
    refuses(RunStoppedError, r"^2 requests were sent", spending.admit)
    cost = Spending(max_cost=1.0)
    late = Meter(spending=cost)
    cost.admit()
    late.begin()
    late.close()
    late.answer(Entry(cost=0.75))
    refuses(RunStoppedError, r"^\$0\.7500 was spent", cost.admit)


class Kills:  # sessions of one run, each on the journal that the one before left; `losses` were under way at a kill
    def __init__(self, max_calls: int | None, max_cost: float | None) -> None:
        self.limits = (max_calls, max_cost)
        self.journal = list[Consultation]()
        self.requests = self.under_way = self.losses = 0
        self.spending = Spending(max_calls, max_cost)

    def send(self) -> None:
        admission = bool(may_send(self.spending))
        self.under_way += admission
        self.requests += admission

    def come_back(self, outcome: Literal["ok", "failed"], **more: Any) -> None:
        self.under_way -= 1
        self.journal.append(Consultation("p", f"q{self.requests}", "judge", outcome, calls=1, **more))

    def end(self) -> None:
        """Have a request come back, for a dollar, and journal it."""
        if self.under_way:
            self.spending.count_reply(1.0)
            self.come_back("ok", content={}, cost=1.0)

    def fail(self) -> None:
        """Have a request fail, and journal it: it was sent, and cost nothing."""
        if self.under_way:
            self.spending.count_failure()
            self.come_back("failed")

    def withdraw(self) -> None:
        """Do not send a request that was admitted."""
        if self.under_way:
            self.under_way -= 1
            self.requests -= 1
            self.spending.withdraw()

    def kill(self) -> None:
        """End the process at once: what is under way is in no consultation."""
        self.losses, self.under_way = self.losses + self.under_way, 0
        self.spending = Spending(*self.limits, self.journal)


STEPS = ("send", "send", "send", "end", "fail", "withdraw")


@given(
    st.lists(st.sampled_from(STEPS), max_size=60) | st.lists(st.sampled_from((*STEPS, "kill")), max_size=60),
    st.sampled_from([(FEW, None), (None, float(FEW)), (FEW, 100.0), (1_000, float(FEW))]),
)
@example([*["send"] * 8, "kill"] * 5, (FEW, None))
@example(["send"] * 12, (FEW, None))
@example(["send", "fail"] * 12, (FEW, None))
@example(["send", "end", *["send"] * 12, *["end"] * 12], (None, float(FEW)))
def test_a_kill_passes_a_limit_by_what_was_under_way(steps: list[str], limits: tuple[int | None, float | None]) -> None:
    run = Kills(*limits)
    for name in steps:
        getattr(run, name)()
        assert run.requests <= FEW + run.losses or limits[0] != FEW
        assert sum(one.cost or 0.0 for one in run.journal) <= FEW
