"""The laws about the rule, held against the shipped one, and against those between majority and full authority."""

import re

import pytest
from hypothesis import example, given, settings

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import evidence_locked
from eldgr_dspy.laws import LAW, LAWS, LawBroken
from eldgr_dspy.laws.of_rules import OF_RULES
from eldgr_dspy.laws.trials import SILENT, Subject, Trial, require_laws
from eldgr_dspy.programs.selector import Selector
from eldgr_dspy.programs.testing import check_selector
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.rule.rules import rule_named
from eldgr_dspy.testing import check_laws, consultations
from eldgr_dspy.words import Role
from tests.case_tables import tables_of
from tests.laws.law_table import ROOT

ELDGR = Subject(evidence_locked)


def question(answers: tuple[str | None, ...], *texts: str) -> Question:
    return Question("Which?", "retrieval", answers, (), tuple(Passage("", text) for text in texts))


CONTEST = question(("Dubai", "Dubai", "Doha", "Qatar"), "Doha is the capital of Qatar.")
PENS = Question("Two boxes hold 9 pens each. How many pens?", "arithmetic", ("16", "16", "18"))
SOUND = Derivation((Step("2 * 9", "18"),), "18", "18 / 2 = 9")
CAPITAL = "Doha is the capital of Qatar"
BOTH = "Paris or Lyon, who knows"
TWINS = Question(  # two candidates of different answers have the same text, which is also a passage
    "Which?", "retrieval", ("Paris", "Lyon", "Lyon"), (BOTH, BOTH, "It is Lyon."), (Passage("", BOTH),)
)
SAYING_DOHA: dict[Role, Reply] = {"judge": Verdict(2), "repairer": Repair("Doha")}
LONE = Question("", "retrieval", ("\ud800", "\u202eabc"))


@pytest.mark.law(
    "certified_consensus_is_final inapplicable_consensus_is_final no_correct_certified_consensus_is_overridden"
    " override_needs_a_certificate certified_preference_outranks_repair repair_only_when_neither_is_certified"
    " default_is_consensus answer_is_consensus_preference_or_repair the_cases_partition lazy_equals_always"
    " judges_differ_only_where_admissible a_regression_needs_a_certified_wrong_answer"
    " evidence_order_and_duplicates_do_not_matter more_evidence_never_uncertifies scores_never_cross_strata"
    " ties_go_to_the_earliest candidate_order_does_not_matter spelling_within_a_class_does_not_matter"
    " spelling_does_not_decide failed_judge_equals_silent_judge unchecked_derivation_changes_nothing"
    " homogeneous_pools_consult_no_judge",
    "property",
)
@settings(max_examples=3 * settings().max_examples)
@given(trial=consultations())
@example(trial=Trial(question(("Doha", "Doha", "Dubai"), "Doha"), replies={"judge": Verdict(2)}))
@example(trial=Trial(question(("yes", "yes", "Doha"), "Doha"), replies=SAYING_DOHA))
@example(trial=Trial(question(("Doha", "Doha", "Dubai"), "Doha Dubai"), replies={"judge": Verdict(2)}, gold="doha"))
@example(trial=Trial(PENS, replies={"deriver": SOUND}, gold="18"))
@example(trial=Trial(CONTEST, replies={"judge": Verdict(2)}))
@example(trial=Trial(PENS, replies={"deriver": SOUND}))
@example(trial=Trial(LONE, Settings("substring")))
@example(trial=Trial(CONTEST, replies={"judge": Verdict(2), "repairer": Repair("Qatar")}))
@example(trial=Trial(question(("Bern", "Bern", "Oslo", "Doha"), "Doha"), replies={"judge": Verdict(3)}))
@example(trial=Trial(CONTEST, replies={"judge": Verdict(0), "repairer": Repair("capital")}))
@example(trial=Trial(question((None, " "), "Doha"), replies={"repairer": Repair("Doha")}))
@example(trial=Trial(question(())))
@example(trial=Trial(CONTEST, replies={"judge": Verdict(0), "repairer": Repair("Sharjah")}))
@example(trial=Trial(CONTEST, Settings(preference="stratum"), {"judge": Verdict(0, (1.0, 0.9, 0.2, 0.4))}))
@example(trial=Trial(CONTEST, replies={"judge": Verdict(3), "repairer": Repair("Doha")}))
@example(trial=Trial(LONE))
@example(trial=Trial(CONTEST, replies={"judge": Verdict(0)}))
@example(trial=Trial(PENS, replies={"judge": Verdict(0), "deriver": SOUND}))
@example(trial=Trial(CONTEST, replies={"judge": Verdict(2)}, gold="Dubai"))
@example(trial=Trial(question(("Dubai", "Doha"), "Paris", "Doha", ""), replies={"judge": Verdict(1)}))
@example(trial=Trial(CONTEST, replies={"judge": Verdict(2)}, more=(Passage("", "Dubai"),)))
@example(trial=Trial(CONTEST, replies={"judge": Verdict(0, (1.0, 0.9, 0.2, 0.4))}))
@example(trial=Trial(question(("Lyon", "Paris", "paris", "lyon"))))
@example(trial=Trial(question((None, "Paris", "Lyon"))))
@example(trial=Trial(TWINS, replies={"judge": Verdict(0)}))
@example(trial=Trial(question(("beatles", "The Beatles"), "The Beatles"), Settings("token")))
@example(trial=Trial(question(("Doha.", "Doha.", "Qatar"), CAPITAL), replies={"judge": Verdict(2)}))
@example(trial=Trial(question(("Doha", "Doha", "Qatar"), CAPITAL), replies={"judge": Verdict(2)}))
@example(trial=Trial(CONTEST, replies={"judge": Abstention("no reply within 60 s")}))
@example(trial=Trial(PENS, replies={"deriver": Derivation((Step("2 * 9", "18"),), "18", "")}))
@example(trial=Trial(question(("Doha", "doha", None), "Paris")))
def test_the_shipped_rule_keeps_every_law(trial: Trial) -> None:
    require_laws(OF_RULES, ELDGR.settle(trial))


def test_every_law_about_a_rule_is_named() -> None:
    marks = vars(test_the_shipped_rule_keeps_every_law)["pytestmark"]
    assert {name for mark in marks for name in mark.args[0].split()} == {law.name for law in OF_RULES}


GIVEN_UP: dict[str, list[str]] = tables_of("laws")["given up"]
TIES = "candidate_order_does_not_matter"
SPELLING = ("support(1)", "answer_is_consensus_preference_or_repair")  # broken as by support, but seldom drawn
BREAKS = [(rule, law) for rule, laws in GIVEN_UP.items() for law in laws if law != TIES and (rule, law) != SPELLING]


@pytest.mark.parametrize("rule", GIVEN_UP)
def test_a_rule_keeps_every_other_law(rule: str) -> None:
    counts = check_laws(rule, without=GIVEN_UP[rule], max_examples=10)
    vacuous = {law for law, n in counts.items() if not n}
    asks_no_judge = {"judges_differ_only_where_admissible", "failed_judge_equals_silent_judge"}
    never_repairs = {"repair_only_when_neither_is_certified"}
    assert vacuous == (asks_no_judge | never_repairs if rule == "certified" else set())


@pytest.mark.parametrize(("rule", "law"), BREAKS)
def test_a_law_that_a_rule_gives_up_is_broken(rule: str, law: str) -> None:
    with pytest.raises(LawBroken):
        check_laws(rule, laws=[law])


@pytest.mark.parametrize("rule", ["certified", "eldgr_certified"])
def test_of_certified_classes_with_as_many_votes_the_earliest_leads(rule: str) -> None:
    trial = Trial(question(("Oslo", "Oslo", "Doha", "Riga"), "Doha and Riga"), replies={"judge": SILENT})
    with pytest.raises(LawBroken):
        LAW[TIES].check(Subject(rule_named(rule)).settle(trial))


@pytest.mark.parametrize("rule", GIVEN_UP)
def test_a_selector_of_the_rule_keeps_what_the_rule_keeps(rule: str) -> None:
    without = [law for law in GIVEN_UP[rule] if LAW[law].number <= 8]  # a selector is tried on the first 8
    assert check_selector(Selector(rule=rule), without=without, max_examples=1)


@pytest.mark.parametrize("rule", ["certified", "support", "eldgr_certified", "near(K)"])
def test_the_reference_says_which_laws_a_rule_gives_up(rule: str) -> None:
    page = (ROOT / "docs" / "reference" / "rules.md").read_text("utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{rule}` gives up |"))
    laws = set(GIVEN_UP[rule.replace("K", "0")])
    assert re.findall(r"(\d+) `(.*?)`", row) == [(str(law.number), law.name) for law in LAWS if law.name in laws]
