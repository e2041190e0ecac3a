"""A limit of dollars is passed by what requests under way together are dearer than all before them, and no further."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.errors import RunStoppedError
from eldgr_dspy.programs.run.spending import Spending

LIMIT = 1000
"""Dollars. Prices are whole numbers, so that sums are exact."""


class Sent:
    """A run that sends requests as far as it may, with at most `workers` under way."""

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
        try:
            admitted = self.spending.admit()
        except RunStoppedError:
            return False
        if admitted:
            self.under_way.append(price)
            dearest = max(self.came, default=0)
            self.passed_by = sum(max(0, one - dearest) for one in self.under_way)
        return True

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
def test_a_limit_is_passed_by_no_more_than_what_requests_under_way_are_dearer_than_the_dearest_before(
    workers: int, steps: list[tuple[int, int | None]]
) -> None:
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
