"""Every law has a test, the page of the laws says which and how, and what a test of a law tries is counted."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.laws.law_table import EVERY_LAW, PAGE, lines, marked_files, marks_in, missing, page, without_counts
from tests.laws.tried_counts import Tally, count, count_examples

MARKS = dict.fromkeys({mark for marks in marked_files().values() for mark in marks}, 0)


def test_every_law_has_a_test_and_the_page_of_the_laws_is_what_the_laws_and_the_markers_say() -> None:
    """Otherwise: make laws. What was tried is left out: it follows the examples that Hypothesis draws."""
    assert missing(MARKS) == []
    text = PAGE.read_text("utf-8")
    assert without_counts(text) == without_counts(page(text, MARKS))


def test_a_law_without_a_test_or_a_marker_without_a_law_is_told() -> None:
    first, *others = EVERY_LAW
    marks = {(law.name, "property"): 1 for law in others} | {("no_such_law", "proved"): 1, ("another", "guessed"): 1}
    assert missing(marks) == [
        f"Law {first.number}, {first.name}, has no test.",
        "A marker names a law 'another' that there is not.",
        "A marker names a law 'no_such_law' that there is not.",
        "A marker names a way 'guessed'; the ways are proved, exhaustive, property, differential.",
    ]


def test_a_line_has_number_name_ways_and_counts_and_markers_are_read_or_it_is_told() -> None:
    name = "default_is_consensus"
    line = next(line for line in lines({(name, "property"): 12_345, (name, "proved"): 7}) if name in line)
    assert line.split() == ["6", name, "proved,", "property", "7", "runs,", "12,345", "examples"]
    # Markers are decorators or calls, and may have a constant.
    source = 'NAME = "one"\n@pytest.mark.law(NAME, "proved")\ndef f(): ...\npytest.mark.law("two three", "property")(C)'
    assert list(marks_in(source)) == [("one", "proved"), ("two", "property"), ("three", "property")]
    with pytest.raises(ValueError, match=r"line 1: .* does not name a law and a way as text"):
        list(marks_in('pytest.mark.law(law.name, "proved")'))


def tally_of(test: Any) -> int:
    Tally.n = 0
    test()
    return Tally.n


def test_each_example_counts_drawn_or_explicit_each_run_of_a_state_machine_and_what_a_plain_test_says() -> None:
    @settings(max_examples=7, database=None)
    @given(st.integers())
    @example(-1)
    def test(n: int) -> None:
        assert isinstance(n, int)

    count_examples(test)
    assert tally_of(test) == 7 + 1

    class Machine(RuleBasedStateMachine):
        @rule(n=st.integers())
        def step(self, n: int) -> None:
            assert isinstance(n, int)

    case: Any = Machine.TestCase
    case.settings = settings(max_examples=5, stateful_step_count=2, database=None)
    count_examples(case.runTest)
    assert tally_of(case("runTest").runTest) >= 5

    def plain() -> None:
        count(3)
        count()

    count_examples(plain)
    assert tally_of(plain) == 4
