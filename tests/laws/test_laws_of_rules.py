"""Each rule between majority and full authority keeps all laws but those that the reference says it gives up."""

import re
from pathlib import Path

import pytest

from eldgr_dspy.certificates import Passage
from eldgr_dspy.laws import LAW, LAWS, LawBroken
from eldgr_dspy.laws.trials import SILENT, Subject, Trial
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector
from eldgr_dspy.rule.questions import Question
from eldgr_dspy.rule.rules import rule_named
from eldgr_dspy.testing import check_laws
from tests.case_tables import tables_of

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "rules.md"

GIVEN_UP: dict[str, list[str]] = tables_of("laws")["given up"]
TIED = "candidate_order_does_not_matter"
SPELLED = ("support(1)", "answer_is_consensus_preference_or_repair")  # broken as by support, but seldom drawn
BROKEN = [(rule, law) for rule, laws in GIVEN_UP.items() for law in laws if law != TIED and (rule, law) != SPELLED]


@pytest.mark.parametrize("rule", GIVEN_UP)
def test_a_rule_keeps_every_other_law(rule: str) -> None:
    tried = check_laws(rule, without=GIVEN_UP[rule], max_examples=10)
    vacuous = {law for law, n in tried.items() if not n}
    asks_no_judge = {"judges_differ_only_where_admissible", "failed_judge_equals_silent_judge"}
    never_repairs = {"repair_only_when_neither_is_certified"}
    assert vacuous == (asks_no_judge | never_repairs if rule == "certified" else set())


@pytest.mark.parametrize(("rule", "law"), BROKEN)
def test_a_law_that_a_rule_gives_up_is_broken(rule: str, law: str) -> None:
    with pytest.raises(LawBroken):
        check_laws(rule, laws=[law])


@pytest.mark.parametrize("rule", ["certified", "eldgr_certified"])
def test_of_certified_classes_with_as_many_votes_the_earliest_leads(rule: str) -> None:
    evidence = (Passage("", "Doha and Riga"),)
    question = Question("Where?", "retrieval", ("Oslo", "Oslo", "Doha", "Riga"), (), evidence)
    trial = Trial(question, replies={"judge": SILENT})
    with pytest.raises(LawBroken):
        LAW[TIED].check(Subject(rule_named(rule)).settle(trial))


@pytest.mark.parametrize("rule", GIVEN_UP)
def test_a_selector_of_the_rule_keeps_what_the_rule_keeps(rule: str) -> None:
    without = [law for law in GIVEN_UP[rule] if LAW[law].number <= 8]  # a selector is tried on the first 8
    assert check_selector(Selector(rule=rule), without=without, max_examples=1)


@pytest.mark.parametrize("rule", ["certified", "support", "eldgr_certified", "near(K)"])
def test_the_reference_says_which_laws_a_rule_gives_up(rule: str) -> None:
    row = next(line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| `{rule}` gives up |"))
    laws = set(GIVEN_UP[rule.replace("K", "0")])
    assert re.findall(r"\d+ `(\w+)`", row) == [law.name for law in LAWS if law.name in laws]
    assert re.findall(r"(\d+) `", row) == [str(law.number) for law in LAWS if law.name in laws]
