"""The laws about the rule, each tried on generated trials: a few words that collide, and anything at all.

The statements are those of `eldgr_dspy.laws`; here they are held against the shipped rule under all settings. What a
property found once is an explicit example from then on.
"""

import pytest
from hypothesis import example, given, settings

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import evidence_locked
from eldgr_dspy.laws import LAWS
from eldgr_dspy.laws.trials import Subject, Trial
from eldgr_dspy.rule.consultations import Abstention, Derivation, Repair, Step, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.testing import consultations

ELDGR = Subject(evidence_locked)


def question(answers: tuple[str | None, ...], *texts: str) -> Question:
    return Question("Which?", "retrieval", answers, (), tuple(Passage("", text) for text in texts))


CONTESTED = question(("Dubai", "Dubai", "Doha", "Qatar"), "Doha is the capital of Qatar.")
PENS = Question("Two boxes hold 9 pens each. How many pens?", "arithmetic", ("16", "16", "18"))
SOUND = Derivation((Step("2 * 9", "18"),), "18", "18 / 2 = 9")
BOTH = "Paris or Lyon, who knows"
SHARED = Question(  # two candidates of different answers have the same text, which is also a passage
    "Which?", "retrieval", ("Paris", "Lyon", "Lyon"), (BOTH, BOTH, "It is Lyon."), (Passage("", BOTH),)
)
LONE = Question("", "retrieval", ("\ud800", "\u202eabc"))


LAWS_OF_A_RULE = [law for law in LAWS if law.statement is not None]


@pytest.mark.law("certified_consensus_is_final", "property")
@pytest.mark.law("inapplicable_consensus_is_final", "property")
@pytest.mark.law("no_correct_certified_consensus_is_overridden", "property")
@pytest.mark.law("override_needs_a_certificate", "property")
@pytest.mark.law("certified_preference_outranks_repair", "property")
@pytest.mark.law("repair_only_when_neither_is_certified", "property")
@pytest.mark.law("default_is_consensus", "property")
@pytest.mark.law("answer_is_consensus_preference_or_repair", "property")
@pytest.mark.law("the_cases_partition", "property")
@pytest.mark.law("lazy_equals_always", "property")
@pytest.mark.law("judges_differ_only_where_admissible", "property")
@pytest.mark.law("a_regression_needs_a_certified_wrong_answer", "property")
@pytest.mark.law("evidence_order_and_duplicates_do_not_matter", "property")
@pytest.mark.law("more_evidence_never_uncertifies", "property")
@pytest.mark.law("scores_never_cross_strata", "property")
@pytest.mark.law("ties_go_to_the_earliest", "property")
@pytest.mark.law("candidate_order_does_not_matter", "property")
@pytest.mark.law("spelling_within_a_class_does_not_matter", "property")
@pytest.mark.law("spelling_does_not_decide", "property")
@pytest.mark.law("failed_judge_equals_silent_judge", "property")
@pytest.mark.law("unchecked_derivation_changes_nothing", "property")
@pytest.mark.law("homogeneous_pools_consult_no_judge", "property")
@settings(max_examples=3 * settings().max_examples)
@given(trial=consultations())
@example(trial=Trial(question(("Doha", "Doha", "Dubai"), "Doha"), replies={"judge": Verdict(2)}))
@example(
    trial=Trial(question(("yes", "yes", "Doha"), "Doha"), replies={"judge": Verdict(2), "repairer": Repair("Doha")})
)
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
@example(
    trial=Trial(question(("Doha.", "Doha.", "Qatar"), "Doha is the capital of Qatar"), replies={"judge": Verdict(2)})
)
@example(
    trial=Trial(question(("Doha", "Doha", "Qatar"), "Doha is the capital of Qatar"), replies={"judge": Verdict(2)})
)
@example(trial=Trial(CONTESTED, replies={"judge": Abstention("no reply within 60 s")}))
@example(trial=Trial(PENS, replies={"deriver": Derivation((Step("2 * 9", "18"),), "18", "")}))
@example(trial=Trial(question(("Doha", "doha", None), "Paris")))
def test_the_shipped_rule_keeps_every_law(trial: Trial) -> None:
    outcome = ELDGR.settle(trial)
    for law in LAWS_OF_A_RULE:
        law.check(outcome)


def test_every_law_about_a_rule_is_named() -> None:
    named = vars(test_the_shipped_rule_keeps_every_law)["pytestmark"]
    assert {mark.args[0] for mark in named} == {law.name for law in LAWS_OF_A_RULE}
