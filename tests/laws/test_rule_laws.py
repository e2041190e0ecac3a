"""The laws about the rule, each tried on generated trials: a few words that collide, and anything at all.

The statements are those of `eldgr_dspy.laws`; here they are held against the shipped rule under all settings. What a
property found once is an explicit example from then on.
"""

from typing import Any

import pytest
from hypothesis import example, given

from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import Abstention, Derivation, Repair, Step, Verdict
from eldgr_dspy.decision import evidence_locked
from eldgr_dspy.laws import LAW
from eldgr_dspy.laws.trials import Subject, Trial
from eldgr_dspy.questions import Question, Settings
from eldgr_dspy.testing import consultations
from eldgr_dspy.words import Task
from tests.laws.counting import tried

ELDGR = Subject(evidence_locked)


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


def kept(mark: pytest.MarkDecorator, *examples: Trial, task: Task | None = None) -> Any:
    """A law, with the task that it is about if it is about one, and trials that are tried each time."""
    return pytest.param(mark.args[0], task, examples, marks=mark, id=mark.args[0])


KEPT = [
    kept(
        pytest.mark.law("certified_consensus_is_final", "property"),
        Trial(asked(("Doha", "Doha", "Dubai"), "Doha"), replies={"judge": Verdict(2)}),
        task="retrieval",
    ),
    kept(
        pytest.mark.law("inapplicable_consensus_is_final", "property"),
        Trial(asked(("yes", "yes", "Doha"), "Doha"), replies={"judge": Verdict(2), "repairer": Repair("Doha")}),
        task="retrieval",
    ),
    kept(
        pytest.mark.law("no_correct_certified_consensus_is_overridden", "property"),
        Trial(asked(("Doha", "Doha", "Dubai"), "Doha Dubai"), replies={"judge": Verdict(2)}, gold="doha"),
        Trial(PENS, replies={"deriver": SOUND}, gold="18"),
    ),
    kept(
        pytest.mark.law("override_needs_a_certificate", "property"),
        Trial(CONTESTED, replies={"judge": Verdict(2)}),
        Trial(PENS, replies={"deriver": SOUND}),
        Trial(LONE, Settings("substring")),
    ),
    kept(
        pytest.mark.law("certified_preference_outranks_repair", "property"),
        Trial(CONTESTED, replies={"judge": Verdict(2), "repairer": Repair("Qatar")}),
        Trial(asked(("Bern", "Bern", "Oslo", "Doha"), "Doha"), replies={"judge": Verdict(3)}),
        task="retrieval",
    ),
    kept(
        pytest.mark.law("repair_only_when_neither_is_certified", "property"),
        Trial(CONTESTED, replies={"judge": Verdict(0), "repairer": Repair("capital")}),
        Trial(asked((None, " "), "Doha"), replies={"repairer": Repair("Doha")}),
        task="retrieval",
    ),
    kept(
        pytest.mark.law("default_is_consensus", "property"),
        Trial(asked(())),
        Trial(CONTESTED, replies={"judge": Verdict(0), "repairer": Repair("Sharjah")}),
    ),
    kept(
        pytest.mark.law("answer_is_consensus_preference_or_repair", "property"),
        Trial(CONTESTED, Settings(preference="stratum"), {"judge": Verdict(0, (1.0, 0.9, 0.2, 0.4))}),
    ),
    kept(
        pytest.mark.law("the_cases_partition", "property"),
        Trial(CONTESTED, replies={"judge": Verdict(3), "repairer": Repair("Doha")}),
    ),
    kept(pytest.mark.law("lazy_equals_always", "property"), Trial(LONE)),
    kept(
        pytest.mark.law("judges_differ_only_where_admissible", "property"),
        Trial(CONTESTED, replies={"judge": Verdict(0)}, other_judge=Verdict(2)),
        Trial(PENS, replies={"judge": Verdict(0), "deriver": SOUND}, other_judge=Verdict(2)),
    ),
    kept(
        pytest.mark.law("a_regression_needs_a_certified_wrong_answer", "property"),
        Trial(CONTESTED, replies={"judge": Verdict(2)}, gold="Dubai"),
    ),
    kept(
        pytest.mark.law("evidence_order_and_duplicates_do_not_matter", "property"),
        Trial(
            asked(("Dubai", "Doha"), "Paris", "Doha", ""), replies={"judge": Verdict(1)}, evidence_order=(2, 1, 1, 0)
        ),
    ),
    kept(
        pytest.mark.law("more_evidence_never_uncertifies", "property"),
        Trial(CONTESTED, replies={"judge": Verdict(2)}, more=(Passage("", "Dubai"),)),
    ),
    kept(
        pytest.mark.law("scores_never_cross_strata", "property"),
        Trial(
            CONTESTED,
            Settings(preference="stratum"),
            {"judge": Verdict(0, (1.0, 0.9, 0.2, 0.4))},
            other_scores=(0.0, 0.0, 1.0, 0.1),
        ),
    ),
    kept(
        pytest.mark.law("ties_go_to_the_earliest", "property"),
        Trial(asked(("Lyon", "Paris", "paris", "lyon"))),
        Trial(asked((None, "Paris", "Lyon"))),
    ),
    kept(
        pytest.mark.law("candidate_order_does_not_matter", "property"),
        Trial(CONTESTED, replies={"judge": Verdict(2)}, pool_order=(3, 2, 1, 0)),
        Trial(SHARED, replies={"judge": Verdict(0)}, pool_order=(2, 1, 0)),
    ),
    kept(
        pytest.mark.law("spelling_within_a_class_does_not_matter", "property"),
        Trial(asked(("beatles", "The Beatles"), "The Beatles"), Settings("token")),
    ),
    kept(
        pytest.mark.law("spelling_does_not_decide", "property"),
        Trial(asked(("Doha.", "Doha.", "Qatar"), "Doha is the capital of Qatar"), replies={"judge": Verdict(2)}),
        Trial(asked(("Doha", "Doha", "Qatar"), "Doha is the capital of Qatar"), replies={"judge": Verdict(2)}),
        Trial(asked(("yes", "yes", "Doha"), "Doha"), replies={"judge": Verdict(2), "repairer": Repair("Doha")}),
        Trial(PENS, replies={"deriver": SOUND}),
    ),
    kept(
        pytest.mark.law("failed_judge_equals_silent_judge", "property"),
        Trial(CONTESTED, failure=Abstention("no reply within 60 s")),
    ),
    kept(
        pytest.mark.law("unchecked_derivation_changes_nothing", "property"),
        Trial(PENS, replies={"deriver": Derivation((Step("2 * 9", "18"),), "18", "")}),
        task="arithmetic",
    ),
    kept(
        pytest.mark.law("homogeneous_pools_consult_no_judge", "property"), Trial(asked(("Doha", "doha", None), "Paris"))
    ),
]


@pytest.mark.parametrize(("law", "task", "examples"), KEPT)
def test_the_shipped_rule_keeps_the_law(law: str, task: Task | None, examples: tuple[Trial, ...]) -> None:
    def hold(trial: Trial) -> None:
        tried()
        LAW[law].check(ELDGR.settle(trial))

    hold.__name__ = law  # each law has trials of its own, also where the same are drawn each time
    look = given(trial=consultations(task))(hold)
    for trial in examples:
        look = example(trial=trial)(look)
    look()
