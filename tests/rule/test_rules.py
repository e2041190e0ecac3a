"""Rules by name: the package's own, and a user's, which is held to what a rule may yield and return."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eldgr_dspy.decision import MARGINS, RULES, Choice, Rule, drive
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.consultations import Abstention
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.rules import margin_in, rule_given, rule_named
from eldgr_dspy.testing import check_laws
from tests.refusing import refuses
from tests.rule.keys import cases

CASE = Case(Question("Which?", "retrieval", ("Paris", "Lyon", "Paris")))

MODULE = """
from eldgr_dspy.decision import Choice

NUMBER = 3

def last(case):
    yield from ()
    return Choice("consensus", case.question.answers[-1])

def plain(case):
    return Choice("consensus", case.consensus)

def asks_anybody(case):
    yield "oracle"

def asks_a_list(case):
    yield ["judge"]

def returns_text(case):
    yield from ()
    return "Paris"

def returns_no_branch(case):
    yield from ()
    return Choice("gut", "Paris")

def returns_a_number(case):
    yield from ()
    return Choice("consensus", 3)

def divides(case):
    yield from ()
    return 1 / 0
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mine(here: Path, request: pytest.FixtureRequest) -> str:
    """The name of a module of rules in the working directory, another for each test."""
    name = "rules_of_" + re.sub(r"\W", "_", request.node.name)
    (here / f"{name}.py").write_text(MODULE, encoding="utf-8")
    return name


def decide(name: str) -> object:
    return drive(rule_named(name)(CASE), lambda role: None).answer


def asks_without_end(case: Any) -> Any:
    while (preference := case.stated((yield "judge"))) is None:
        pass
    return Choice("judge", preference)


def test_rules_go_by_their_names_and_one_that_asks_without_end_is_stopped() -> None:
    assert {name: rule_named(name) for name in RULES} == RULES
    assert [rule_given(rule)[0] for rule in RULES.values()] == list(RULES)
    names = "'first', 'majority', 'certified', 'judge', 'eldgr', 'eldgr_certified', 'support', 'support(K)', 'near(K)'"
    refuses(ArgumentError, re.escape(f"rule='best' is not known; use one of {names}."), rule_named, "best")
    rule = rule_named("tests.rule.test_rules:asks_without_end")
    case = Case(Question("Who?", "retrieval", ("Ada", "Bob")))
    with pytest.raises(ArgumentError, match="has asked 100 times on one question"):
        drive(rule(case), lambda _: Abstention("nothing to say"))


@pytest.mark.parametrize(("name", "rule"), MARGINS.items())
def test_a_rule_with_a_margin_goes_by_its_k(name: str, rule: Callable[[int], Rule]) -> None:
    assert rule_named(f"{name}(0)") is rule(0)
    assert rule_given(rule(12)) == (f"{name}(12)", rule(12))
    assert (margin_in(f"{name}(12)"), margin_in("eldgr"), margin_in("support")) == ((name, 12), None, None)


@pytest.mark.parametrize("name", ["near", "near()", "support(-1)", "near(01)", "near(1.5)", "near(k)", " near(1)"])
def test_a_margin_of_no_whole_number_is_not_known(name: str) -> None:
    refuses(ArgumentError, r"is not known; use one of .*'support\(K\)', 'near\(K\)'", rule_named, name)


def test_a_rule_of_the_working_directory_is_found_and_nothing_stays_on_the_path(mine: str) -> None:
    before = list(sys.path)
    assert decide(f"{mine}:last") == "Paris"
    assert sys.path == before


def test_a_module_of_the_working_directory_hides_no_other_and_its_faults_are_named(here: Path) -> None:
    (here / "json.py").write_text("raise RuntimeError('run')", encoding="utf-8")
    refuses(ArgumentError, r"the module 'json' has no 'last'", rule_named, "json:last")
    (here / "broken_rules.py").write_text("import nowhere_at_all", encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"^rules='broken_rules:f': the module .* \(ModuleNotFoundError: No module"):
        rule_named("broken_rules:f", "rules")


@pytest.mark.parametrize(("function", "message"), cases("what is not a rule"))
def test_what_is_not_a_rule_is_said_in_a_sentence(mine: str, function: str, message: str) -> None:
    refuses(ArgumentError, message, decide, f"{mine}:{function}")


@pytest.mark.parametrize("name", ["a:", ":b", "a.py:", "a b:c", "a/b:c", "../a:b", "a:b:c", "1a:b", "a:b()"])
def test_a_name_of_another_form_imports_nothing(here: Path, name: str) -> None:
    message = r"must name a rule; got .*\. Write MODULE:FUNCTION, such as my_rules:cautious\."
    refuses(ArgumentError, message, rule_named, name)


@pytest.mark.parametrize("name", ["judge[x]", "near(1)[x]", "eldgr[gpt4]"])
def test_where_no_judge_has_a_name_a_rule_cannot_name_one(name: str) -> None:
    for call in (lambda: rule_given(name), lambda: Selector(rule=name), lambda: check_laws(name)):
        refuses(ArgumentError, f"rule={re.escape(repr(name))} must not name a judge", call)
