"""The laws about the rule, each tried on generated trials: a few words that collide, and anything at all.

The statements are those of `eldgr_dspy.laws`; here they are held against the shipped rule under all settings. What a
property found once is an explicit example from then on.
"""

import pytest
from hypothesis import example, given

from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import Abstention, Derivation, Repair, Step, Verdict
from eldgr_dspy.decision import evidence_locked
from eldgr_dspy.laws import LAW
from eldgr_dspy.laws.trials import Subject, Trial
from eldgr_dspy.questions import Question, Settings
from eldgr_dspy.testing import consultations

ELDGR = Subject(evidence_locked)

anything = given(trial=consultations())
retrieval = given(trial=consultations("retrieval"))
arithmetic = given(trial=consultations("arithmetic"))


def asked(answers: tuple[str | None, ...], *texts: str) -> Question:
    return Question("Which?", "retrieval", answers, (), tuple(Passage("", text) for text in texts))


CONTESTED = asked(("Dubai", "Dubai", "Doha", "Qatar"), "Doha is the capital of Qatar.")
PENS = Question("Two boxes hold 9 pens each. How many pens?", "arithmetic", ("16", "16", "18"))
SOUND = Derivation((Step("2 * 9", "18"),), "18", "18 / 2 = 9")
BOTH = "Paris or Lyon, who knows"
SHARED = Question(  # two candidates of different answers have the same text, which is also a passage
    "Which?", "retrieval", ("Paris", "Lyon", "Lyon"), (BOTH, BOTH, "It is Lyon."), (Passage("", BOTH),)
)
LONE = Question("", "retrieval", ("\ud800", "\u202eabc"))


def hold(name: str, trial: Trial) -> None:
    """The law holds of what the shipped rule does on the trial."""
    LAW[name].check(ELDGR.settle(trial))


@pytest.mark.law("certified_consensus_is_final", "property")
@retrieval
@example(trial=Trial(asked(("Doha", "Doha", "Dubai"), "Doha"), replies={"judge": Verdict(2)}))
def test_certified_consensus_is_final(trial: Trial) -> None:
    """Not that it is right: the majority may be wrong, and so may the passage."""
    hold("certified_consensus_is_final", trial)


@pytest.mark.law("inapplicable_consensus_is_final", "property")
@retrieval
@example(trial=Trial(asked(("yes", "yes", "Doha"), "Doha"), replies={"judge": Verdict(2), "repairer": Repair("Doha")}))
def test_inapplicable_consensus_is_final(trial: Trial) -> None:
    """Not that the evidence speaks for a yes or a no."""
    hold("inapplicable_consensus_is_final", trial)


@pytest.mark.law("no_correct_certified_consensus_is_overridden", "property")
@anything
@example(trial=Trial(asked(("Doha", "Doha", "Dubai"), "Doha Dubai"), replies={"judge": Verdict(2)}, gold="doha"))
@example(trial=Trial(PENS, replies={"deriver": SOUND}, gold="18"))
def test_no_correct_certified_consensus_is_overridden(trial: Trial) -> None:
    """Not that no right consensus is lost: one without a certificate may be."""
    hold("no_correct_certified_consensus_is_overridden", trial)


@pytest.mark.law("override_needs_a_certificate", "property")
@anything
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(2)}))
@example(trial=Trial(PENS, replies={"deriver": SOUND}))
@example(trial=Trial(LONE, Settings("substring")))
def test_override_needs_a_certificate(trial: Trial) -> None:
    """Not that an override is an improvement."""
    hold("override_needs_a_certificate", trial)


@pytest.mark.law("certified_preference_outranks_repair", "property")
@retrieval
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(2), "repairer": Repair("Qatar")}))
@example(trial=Trial(asked(("Bern", "Bern", "Oslo", "Doha"), "Doha"), replies={"judge": Verdict(3)}))
def test_certified_preference_outranks_repair(trial: Trial) -> None:
    """Not that the preference is the better of the two. Retrieval only."""
    hold("certified_preference_outranks_repair", trial)


@pytest.mark.law("repair_only_when_neither_is_certified", "property")
@retrieval
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(0), "repairer": Repair("capital")}))
@example(trial=Trial(asked((None, " "), "Doha"), replies={"repairer": Repair("Doha")}))
def test_repair_only_when_neither_is_certified(trial: Trial) -> None:
    """Not that a repair ships wherever neither is. Retrieval only."""
    hold("repair_only_when_neither_is_certified", trial)


@pytest.mark.law("default_is_consensus", "property")
@anything
@example(trial=Trial(asked(())))
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(0), "repairer": Repair("Sharjah")}))
def test_default_is_consensus(trial: Trial) -> None:
    """Not that there is a consensus, or that it is right."""
    hold("default_is_consensus", trial)


@pytest.mark.law("answer_is_consensus_preference_or_repair", "property")
@anything
@example(trial=Trial(CONTESTED, Settings(preference="stratum"), {"judge": Verdict(0, (1.0, 0.9, 0.2, 0.4))}))
def test_answer_is_consensus_preference_or_repair(trial: Trial) -> None:
    """Not that it is the best of the three, or a candidate."""
    hold("answer_is_consensus_preference_or_repair", trial)


@pytest.mark.law("the_cases_partition", "property")
@anything
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(3), "repairer": Repair("Doha")}))
def test_the_cases_partition(trial: Trial) -> None:
    """Not that these cases are the right ones; that they are disjoint and total, and that the rule keeps to them."""
    hold("the_cases_partition", trial)


@pytest.mark.law("lazy_equals_always", "property")
@anything
@example(trial=Trial(LONE))
def test_lazy_equals_always(trial: Trial) -> None:
    """Answer and branch; not what it costs, nor what the record says of who was asked."""
    hold("lazy_equals_always", trial)


@pytest.mark.law("judges_differ_only_where_admissible", "property")
@anything
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(0)}, other_judge=Verdict(2)))
@example(trial=Trial(PENS, replies={"judge": Verdict(0), "deriver": SOUND}, other_judge=Verdict(2)))
def test_judges_differ_only_where_admissible(trial: Trial) -> None:
    """Not which of them is right there."""
    hold("judges_differ_only_where_admissible", trial)


@pytest.mark.law("a_regression_needs_a_certified_wrong_answer", "property")
@anything
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(2)}, gold="Dubai"))
def test_a_regression_needs_a_certified_wrong_answer(trial: Trial) -> None:
    """Not that there are none: the example is one."""
    hold("a_regression_needs_a_certified_wrong_answer", trial)


@pytest.mark.law("evidence_order_and_duplicates_do_not_matter", "property")
@anything
@example(
    trial=Trial(
        asked(("Dubai", "Doha"), "Paris", "Doha", ""), replies={"judge": Verdict(1)}, evidence_order=(2, 1, 1, 0)
    )
)
def test_evidence_order_and_duplicates_do_not_matter(trial: Trial) -> None:
    """To class and branch, with the same replies; the witness may be another, and an LM may reply otherwise."""
    hold("evidence_order_and_duplicates_do_not_matter", trial)


@pytest.mark.law("more_evidence_never_uncertifies", "property")
@anything
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(2)}, more=(Passage("", "Dubai"),)))
def test_more_evidence_never_uncertifies(trial: Trial) -> None:
    """Not that an override stays one: in the example more evidence certifies consensus."""
    hold("more_evidence_never_uncertifies", trial)


@pytest.mark.law("scores_never_cross_strata", "property")
@anything
@example(
    trial=Trial(
        CONTESTED,
        Settings(preference="stratum"),
        {"judge": Verdict(0, (1.0, 0.9, 0.2, 0.4))},
        other_scores=(0.0, 0.0, 1.0, 0.1),
    )
)
def test_scores_never_cross_strata(trial: Trial) -> None:
    """Not that scores mean nothing: within a stratum they rank, and under `stratum` they choose."""
    hold("scores_never_cross_strata", trial)


@pytest.mark.law("ties_go_to_the_earliest", "property")
@anything
@example(trial=Trial(asked(("Lyon", "Paris", "paris", "lyon"))))
@example(trial=Trial(asked((None, "Paris", "Lyon"))))
def test_ties_go_to_the_earliest(trial: Trial) -> None:
    """Not that the earliest is likelier to be right."""
    hold("ties_go_to_the_earliest", trial)


@pytest.mark.law("candidate_order_does_not_matter", "property")
@anything
@example(trial=Trial(CONTESTED, replies={"judge": Verdict(2)}, pool_order=(3, 2, 1, 0)))
@example(trial=Trial(SHARED, replies={"judge": Verdict(0)}, pool_order=(2, 1, 0)))
def test_candidate_order_does_not_matter(trial: Trial) -> None:
    """Up to ties, and to class and branch; an LM that sees another order may reply otherwise."""
    hold("candidate_order_does_not_matter", trial)


@pytest.mark.law("spelling_within_a_class_does_not_matter", "property")
@anything
@example(trial=Trial(asked(("beatles", "The Beatles"), "The Beatles"), Settings("token")))
def test_spelling_within_a_class_does_not_matter(trial: Trial) -> None:
    """Not that this spelling scores best."""
    hold("spelling_within_a_class_does_not_matter", trial)


@pytest.mark.law("spelling_does_not_decide", "property")
@anything
@example(trial=Trial(asked(("Doha.", "Doha.", "Qatar"), "Doha is the capital of Qatar"), replies={"judge": Verdict(2)}))
@example(trial=Trial(asked(("Doha", "Doha", "Qatar"), "Doha is the capital of Qatar"), replies={"judge": Verdict(2)}))
@example(trial=Trial(asked(("yes", "yes", "Doha"), "Doha"), replies={"judge": Verdict(2), "repairer": Repair("Doha")}))
@example(trial=Trial(PENS, replies={"deriver": SOUND}))
def test_spelling_does_not_decide(trial: Trial) -> None:
    """Not under `substring`, the paper's letter."""
    hold("spelling_does_not_decide", trial)


@pytest.mark.law("failed_judge_equals_silent_judge", "property")
@anything
@example(trial=Trial(CONTESTED, failure=Abstention("no reply within 60 s")))
def test_failed_judge_equals_silent_judge(trial: Trial) -> None:
    """Not that failures are free: they are counted, and with `on_error="raise"` they are errors."""
    hold("failed_judge_equals_silent_judge", trial)


@pytest.mark.law("unchecked_derivation_changes_nothing", "property")
@arithmetic
@example(trial=Trial(PENS, replies={"deriver": Derivation((Step("2 * 9", "18"),), "18", "")}))
def test_unchecked_derivation_changes_nothing(trial: Trial) -> None:
    """Not that a checked one is right."""
    hold("unchecked_derivation_changes_nothing", trial)


@pytest.mark.law("homogeneous_pools_consult_no_judge", "property")
@anything
@example(trial=Trial(asked(("Doha", "doha", None), "Paris")))
def test_homogeneous_pools_consult_no_judge(trial: Trial) -> None:
    """Not that nobody is consulted: repairer or deriver may be, by the setting `homogeneous`."""
    hold("homogeneous_pools_consult_no_judge", trial)
