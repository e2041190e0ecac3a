"""The laws about the rule, each held against the shipped one on generated trials under all settings."""

import pytest
from hypothesis import example, given, settings

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import evidence_locked
from eldgr_dspy.laws.of_rules import OF_RULES
from eldgr_dspy.laws.trials import Subject, Trial
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Reply, Step, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.testing import consultations
from eldgr_dspy.words import Role

ELDGR = Subject(evidence_locked)


def question(answers: tuple[str | None, ...], *texts: str) -> Question:
    return Question("Which?", "retrieval", answers, (), tuple(Passage("", text) for text in texts))


CONTESTED = question(("Dubai", "Dubai", "Doha", "Qatar"), "Doha is the capital of Qatar.")
PENS = Question("Two boxes hold 9 pens each. How many pens?", "arithmetic", ("16", "16", "18"))
SOUND = Derivation((Step("2 * 9", "18"),), "18", "18 / 2 = 9")
CAPITAL = "Doha is the capital of Qatar"
BOTH = "Paris or Lyon, who knows"
SHARED = Question(  # two candidates of different answers have the same text, which is also a passage
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
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(2)}))
@example(trial=Trial(PENS, replies={"deriver": SOUND}))
@example(trial=Trial(LONE, Settings("substring")))
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(2), "repairer": Repair("Qatar")}))
@example(trial=Trial(question(("Bern", "Bern", "Oslo", "Doha"), "Doha"), replies={"judge": Verdict(3)}))
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(0), "repairer": Repair("capital")}))
@example(trial=Trial(question((None, " "), "Doha"), replies={"repairer": Repair("Doha")}))
@example(trial=Trial(question(())))
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(0), "repairer": Repair("Sharjah")}))
@example(trial=Trial(CONTESTED, Settings(preference="stratum"), {"judge": Verdict(0, (1.0, 0.9, 0.2, 0.4))}))
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(3), "repairer": Repair("Doha")}))
@example(trial=Trial(LONE))
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(0)}))
@example(trial=Trial(PENS, replies={"judge": Verdict(0), "deriver": SOUND}))
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(2)}, gold="Dubai"))
@example(trial=Trial(question(("Dubai", "Doha"), "Paris", "Doha", ""), replies={"judge": Verdict(1)}))
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(2)}, more=(Passage("", "Dubai"),)))
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(0, (1.0, 0.9, 0.2, 0.4))}))
@example(trial=Trial(question(("Lyon", "Paris", "paris", "lyon"))))
@example(trial=Trial(question((None, "Paris", "Lyon"))))
@example(trial=Trial(SHARED, replies={"judge": Verdict(0)}))
@example(trial=Trial(question(("beatles", "The Beatles"), "The Beatles"), Settings("token")))
@example(trial=Trial(question(("Doha.", "Doha.", "Qatar"), CAPITAL), replies={"judge": Verdict(2)}))
@example(trial=Trial(question(("Doha", "Doha", "Qatar"), CAPITAL), replies={"judge": Verdict(2)}))
@example(trial=Trial(CONTESTED, replies={"judge": Abstention("no reply within 60 s")}))
@example(trial=Trial(PENS, replies={"deriver": Derivation((Step("2 * 9", "18"),), "18", "")}))
@example(trial=Trial(question(("Doha", "doha", None), "Paris")))
def test_the_shipped_rule_keeps_every_law(trial: Trial) -> None:
    outcome = ELDGR.settle(trial)
    for law in OF_RULES:
        law.check(outcome)


def test_every_law_about_a_rule_is_named() -> None:
    named = vars(test_the_shipped_rule_keeps_every_law)["pytestmark"]
    assert {name for mark in named for name in mark.args[0].split()} == {law.name for law in OF_RULES}
