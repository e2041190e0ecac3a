"""What a test of a law tries is counted: examples, runs of a state machine, and what the test itself says."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.laws.tried_counts import Tally, count_examples, tried


def counted(test: Any) -> int:
    """How many a test tries."""
    Tally.n = 0
    test()
    return Tally.n


def test_each_example_counts_drawn_or_explicit() -> None:
    @settings(max_examples=7, database=None)
    @given(st.integers())
    @example(-1)
    def test(n: int) -> None:
        assert isinstance(n, int)

    count_examples(test)
    assert counted(test) == 7 + 1


def test_each_run_of_a_state_machine_counts() -> None:
    class Machine(RuleBasedStateMachine):
        @rule(n=st.integers())
        def step(self, n: int) -> None:
            assert isinstance(n, int)

    case: Any = Machine.TestCase
    case.settings = settings(max_examples=5, stateful_step_count=2, database=None)
    count_examples(case.runTest)
    assert counted(case("runTest").runTest) >= 5


def test_a_plain_test_says_what_it_tried() -> None:
    def test() -> None:
        tried(3)
        tried()

    count_examples(test)
    assert counted(test) == 4
