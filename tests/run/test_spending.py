"""A limit of dollars is passed by what requests under way together are dearer than all before them, and no further."""

from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.programs.requests.limits import Spending
from eldgr_dspy.programs.requests.metering import Entry, Meter
from eldgr_dspy.rule.consultations import Consultation

LIMIT = 1000
"""Dollars. Prices are whole numbers, so that sums are exact."""
FEW = 10


@pytest.mark.parametrize(("sent", "message"), [(1, "1 request was sent"), (2, "2 requests were sent")])
def test_a_limit_of_requests_says_how_many_were_sent(sent: int, message: str) -> None:
    spending = Spending(max_calls=sent)
    assert all(spending.admit() for _ in range(sent))
    with pytest.raises(RunStoppedError, match=rf"^{message}, and --max-calls allows {sent}; give a higher limit"):
        spending.admit()


def may_send(spending: Spending) -> bool | None:
    """Whether a request is admitted; None where the run stops."""
    try:
        return spending.admit()
    except RunStoppedError:
        return None


class Sent:  # a run that sends requests as far as it may, with at most `workers` under way
    def __init__(self, workers: int) -> None:
        self.spending, self.workers = Spending(max_cost=LIMIT), workers
        self.under_way: list[int] = []
        self.came: list[int] = []
        self.passed_by = 0
        """The most that the limit can be passed by, as of the last request that was admitted."""

    def admit(self, price: int) -> bool:
        """Send a request of a price, which nobody knows beforehand; False where none may be sent any more."""
        if len(self.under_way) == self.workers:
            return True
        admitted = may_send(self.spending)
        if admitted:
            self.under_way.append(price)
            dearest = max(self.came, default=0)
            self.passed_by = sum(max(0, one - dearest) for one in self.under_way)
        return admitted is not None

    def come_back(self, which: int) -> None:
        if self.under_way:
            price = self.under_way.pop(which % len(self.under_way))
            self.came.append(price)
            self.spending.answered(price)

    def end(self) -> int:
        """Wait for what is under way, and return what was spent."""
        while self.under_way:
            self.come_back(0)
        return sum(self.came)


@given(st.integers(1, 8), st.lists(st.tuples(st.integers(0, 400), st.none() | st.integers(0, 7)), max_size=60))
@example(3, [(100, 0), (300, None), (300, None), (300, 0), (300, 0)])
def test_a_limit_is_passed_by_no_more_than_is_under_way(workers: int, steps: list[tuple[int, int | None]]) -> None:
    sent = Sent(workers)
    for price, which in steps:
        if not sent.admit(price):
            break
        if which is not None:
            sent.come_back(which)
    assert sent.end() <= LIMIT + sent.passed_by


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_each_request_under_way_can_pass_the_limit_by_what_it_is_dearer(workers: int) -> None:
    """The bound is reached: as many as fit by the price so far are sent together, and each costs more."""
    sent = Sent(workers)
    cheap, dear = LIMIT // 10, 400
    sent.admit(cheap)
    sent.come_back(0)
    while sum(sent.came) + workers * cheap < LIMIT:
        sent.admit(cheap)
        sent.come_back(0)
    for _ in range(workers):
        assert sent.admit(dear)
    assert sent.end() == LIMIT + workers * (dear - cheap)
    assert not sent.admit(cheap)


def test_the_first_request_goes_alone_and_can_pass_the_limit_by_itself() -> None:
    sent = Sent(8)
    for _ in range(8):
        assert sent.admit(LIMIT + 7)
    assert sent.under_way == [LIMIT + 7]
    assert sent.end() == LIMIT + 7


# -- several sessions --
class Sessions:  # consultations of a few requests each, in sessions that resume each other, and the same in one session
    def __init__(self) -> None:
        self.whole, self.journal = Spending(max_cost=LIMIT), list[Consultation]()
        self.spending = Spending(max_cost=LIMIT)
        self.meters = [Meter(spending=self.spending) for _ in range(3)]
        self.came: list[float] = []
        self.passed_by = 0.0

    def admit(self, which: int) -> None:
        """One session and many admit the same."""
        admitted = may_send(self.whole)
        assert may_send(self.spending) is admitted
        if admitted:
            self.meters[which].begin()
            self.passed_by = max(0.0, 400 - max(self.came, default=0)) * sum(len(one.under_way) for one in self.meters)

    def end(self, which: int, price: float | None) -> None:
        """A request comes back, with its price or failed."""
        meter = self.meters[which]
        if not meter.under_way:
            return
        if price is None:
            meter.fail(TimeoutError())
            self.whole.failed()
        else:
            self.came.append(price)
            meter.answer(Entry(cost=price))
            self.whole.answered(price)

    def journaled(self, which: int, outcome: Literal["ok", "failed"]) -> None:
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
            self.journaled(which, "failed")
        self.spending = Spending(max_cost=LIMIT, before=self.journal)
        self.meters = [Meter(spending=self.spending) for _ in range(3)]


@given(
    st.lists(
        st.tuples(st.just("admit"), st.integers(0, 2))
        | st.tuples(st.just("end"), st.integers(0, 2), st.none() | st.integers(0, 400))
        | st.tuples(st.just("journaled"), st.integers(0, 2), st.sampled_from(["ok", "failed"]))
        | st.just(("resume",)),
        max_size=80,
    )
)
@example([("admit", 0), ("end", 0, 400), ("journaled", 0, "failed"), ("resume",)] * 4)
@example(
    [("admit", 0), ("end", 0, 300), ("admit", 0), ("end", 0, 300), ("journaled", 0, "ok"), ("resume",), ("admit", 0)]
)
@example([("admit", 0), ("end", 0, None), ("journaled", 0, "ok"), ("resume",), ("admit", 0)])
def test_many_sessions_admit_what_one_would_and_spend_no_more(steps: list[tuple[Any, ...]]) -> None:
    run = Sessions()
    for name, *arguments in steps:
        getattr(run, name)(*arguments)
        assert sum(run.came) <= LIMIT + run.passed_by


def test_of_a_consultation_without_its_dearest_request_each_is_taken_to_have_cost_the_same() -> None:
    consultation = Consultation("p", "q", "judge", "ok", content={}, calls=2, cost=2.0)
    assert Spending(max_cost=3.0, before=[consultation]).admit()
    with pytest.raises(
        RunStoppedError, match=r"^\$2\.0000 was spent and the dearest request took \$1\.5000, so one more may"
    ):
        Spending(max_cost=3.0, before=[replace(consultation, dearest=1.5)]).admit()


def test_a_failed_consultation_that_had_a_reply_without_a_price_ends_the_next_session_too() -> None:
    consultation = Consultation("p", "q", "judge", "failed", calls=2, prompt_characters=0)
    with pytest.raises(RunStoppedError, match=r"^A reply came without a price"):
        Spending(max_cost=3.0, before=[consultation]).admit()
    assert Spending(max_cost=3.0, before=[replace(consultation, prompt_characters=None)]).admit()


def test_a_request_that_is_given_up_is_counted_once_and_its_late_price_too() -> None:
    """As long as no price is known one request goes alone, and one that nobody waits for keeps no other from going."""
    spending = Spending(max_calls=2, max_cost=1.0)
    meter = Meter(spending=spending)
    assert spending.admit()
    meter.begin()
    assert not spending.admit()
    meter.close()
    assert spending.admit()
    spending.answered(0.25)
    meter.answer(Entry(cost=0.5))
    assert (meter.calls, meter.sums()["cost"]) == (1, None)
    with pytest.raises(RunStoppedError, match=r"^2 requests were sent"):
        spending.admit()
    cost = Spending(max_cost=1.0)
    late = Meter(spending=cost)
    cost.admit()
    late.begin()
    late.close()
    late.answer(Entry(cost=0.75))
    with pytest.raises(RunStoppedError, match=r"^\$0\.7500 was spent"):
        cost.admit()


# -- sessions of one run, killed --
class Killed:
    """Sessions of one run, each on the journal that the one before left; `lost` was under way when one was killed."""

    def __init__(self, max_calls: int | None, max_cost: float | None) -> None:
        self.limits = (max_calls, max_cost)
        self.journal = list[Consultation]()
        self.sent = self.under_way = self.lost = 0
        self.spending = Spending(max_calls, max_cost)

    def send(self) -> None:
        """Send a request, if it is admitted."""
        admitted = bool(may_send(self.spending))
        self.under_way += admitted
        self.sent += admitted

    def end(self) -> None:
        """Have a request come back, for a dollar, and journal it."""
        if self.under_way:
            self.under_way -= 1
            self.spending.answered(1.0)
            self.journal.append(Consultation("p", f"q{self.sent}", "judge", "ok", content={}, calls=1, cost=1.0))

    def fail(self) -> None:
        """Have a request fail, and journal it: it was sent, and cost nothing."""
        if self.under_way:
            self.under_way -= 1
            self.spending.failed()
            self.journal.append(Consultation("p", f"q{self.sent}", "judge", "failed", calls=1))

    def withdraw(self) -> None:
        """Do not send a request that was admitted."""
        if self.under_way:
            self.under_way -= 1
            self.sent -= 1
            self.spending.withdraw()

    def kill(self) -> None:
        """End the process at once: what is under way is in no consultation."""
        self.lost += self.under_way
        self.under_way = 0
        self.spending = Spending(self.limits[0], self.limits[1], self.journal)


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
    run = Killed(*limits)
    for name in steps:
        getattr(run, name)()
        assert run.sent <= FEW + run.lost or limits[0] != FEW
        assert sum(one.cost or 0.0 for one in run.journal) <= FEW
