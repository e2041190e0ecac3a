"""The score of a mutation run, and the list of what may survive."""

import importlib
import inspect
from operator import attrgetter

import pytest

from tests.mutation.check import Mutant, equivalents, faults, idle, modules, side, state, table

ONE = Mutant("ranking.rank", "a < b", "a <= b")
OTHER = Mutant("ranking.rank", "a < b", "a > b")


@pytest.mark.parametrize("mutant", equivalents(), ids=lambda mutant: mutant.function)
def test_what_the_list_says_is_changed_stands_in_the_code_and_has_a_reason(mutant: Mutant) -> None:
    module, _, name = mutant.function.partition(".")
    source = inspect.getsource(attrgetter(name)(importlib.import_module(modules()[module])))
    assert set(mutant.was.splitlines()) <= {line.strip() for line in source.splitlines()}
    assert equivalents()[mutant].endswith(".")


def test_a_diff_is_read_without_its_header_and_indentation_and_the_score_has_a_line_a_module_and_one_for_all() -> None:
    diff = "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n def f():\n-    return a < b\n+    return a <= b"
    assert (side(diff, "-"), side(diff, "+")) == ("return a < b", "return a <= b")
    head, ranking, total = table([(ONE, "killed"), (OTHER, "open")])
    assert head.split() == ["module", "mutants", "killed", "timeout", "equivalent", "open"]
    assert ranking.split() == ["ranking", "2", "1", "0", "0", "1"]
    assert total.split() == ["all", "2", "1", "0", "0", "1"]


def test_a_mutant_that_was_not_told_apart_is_a_fault_and_one_on_the_list_may_survive_once_or_be_slow() -> None:
    statuses = ("survived", "no tests", "suspicious", "not checked", "segfault")
    lines = [[*faults([(ONE, "killed"), (OTHER, status)], {})] for status in statuses]
    assert lines == [[f"{status}: ranking.rank\n- a < b\n+ a > b"] for status in statuses]
    assert list(faults([(ONE, "survived")], {ONE: "why"})) == []
    assert list(faults([(ONE, "timeout")], {ONE: "why"})) == []
    assert (state(ONE, "timeout", {ONE: "why"}), state(ONE, "timeout", {})) == ("equivalent", "timeout")
    assert len(list(faults([(ONE, "survived")] * 2, {ONE: "why"}))) == 1
    assert len(list(faults([(ONE, "killed")], {ONE: "why"}))) == 1


def test_a_module_that_no_test_was_run_against_is_a_fault() -> None:
    """It was not changed at all, or every test of it timed out."""
    assert list(idle([(ONE, "killed")], ["ranking"])) == []
    for run in ([], [(ONE, "timeout"), (OTHER, "timeout")]):
        (fault,) = idle(run, ["ranking"])
        assert fault.startswith("ranking: no mutant was killed")
    assert {one.module for one in equivalents()} < set(modules())
