"""What is not needed to break a law goes, what is odd becomes plain, and the law is still broken."""

import unicodedata
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from eldgr_dspy.certificates import Passage
from eldgr_dspy.consultations import Abstention, Repair, Verdict
from eldgr_dspy.decision import RULES, Choice, Steps
from eldgr_dspy.laws import LAWS, LawBroken
from eldgr_dspy.laws.shrinking import smallest
from eldgr_dspy.laws.trials import SILENT, Subject, Trial
from eldgr_dspy.questions import Question, Settings
from eldgr_dspy.testing import consultations

QUESTION = Question(
    "Who wrote it?",
    "retrieval",
    ("ΩMEGA", None, "'quoted'", "ΩMEGA", "\u202eabc"),
    ("a", "b", "c", "d", "e"),
    (Passage("A title", "nothing of it"), Passage("", "and 'quoted' here")),
)
ODD = Trial(
    QUESTION,
    Settings("token", consult="always", preference="stratum"),
    {"judge": Verdict(2, (0.1, 0.2, 0.9, 0.3, 0.4), "since"), "repairer": Repair("here", 1)},
    gold="ΩMEGA",
    other_judge=Verdict(0),
    failure=Abstention("HTTP 500"),
    other_scores=(0.0, 0.0, 0.0, 0.0, 0.0),
    more=(Passage("", "much more"),),
    evidence_order=(1, 0, 1),
    pool_order=(4, 3, 2, 1, 0),
)


def breaks(name: str) -> Callable[[Trial], bool]:
    """Whether the judge with full authority breaks a law."""
    law = next(law for law in LAWS if law.name == name)

    def broken(trial: Trial) -> bool:
        try:
            law.check(Subject(RULES["judge"]).settle(trial))
        except LawBroken:
            return True
        return False

    return broken


def test_an_override_without_a_certificate_comes_down_to_two_names_and_a_verdict() -> None:
    found = smallest(ODD, breaks("default_is_consensus"))
    assert found.question == Question("Which?", "retrieval", ("Paris", "Lyon"))
    assert (found.settings, found.replies["judge"], found.replies["repairer"]) == (Settings(), Verdict(1), SILENT)
    assert (found.other_judge, found.more, found.evidence_order) == (SILENT, (), ())


def test_what_is_needed_stays() -> None:
    found = smallest(ODD, lambda trial: trial.settings.preference == "stratum" and trial.reply("repairer") != SILENT)
    assert (found.settings, found.replies) == (
        Settings(preference="stratum"),
        {"judge": SILENT, "repairer": Repair("Paris")},
    )
    assert found.question.answers == ()


def test_a_verdict_follows_its_candidate() -> None:
    def judged(trial: Trial) -> bool:
        verdict = trial.reply("judge")
        return isinstance(verdict, Verdict) and trial.question.answers[verdict.preferred] == "'quoted'"

    found = smallest(ODD, judged)
    assert (found.question.answers, found.replies["judge"]) == (("'quoted'",), Verdict(0))


def test_what_nothing_breaks_stays_as_it_is() -> None:
    assert smallest(ODD, lambda trial: False) == ODD


@pytest.mark.parametrize("name", ["override_needs_a_certificate", "judges_differ_only_where_admissible"])
def test_the_smallest_trial_still_breaks_the_law_and_fits_its_question(name: str) -> None:
    broken = breaks(name)

    @given(trial=consultations())
    def look(trial: Trial) -> None:
        if broken(trial):
            found = smallest(trial, broken)
            assert broken(found)
            assert len(found.question.answers) <= len(trial.question.answers)
            assert sorted(found.pool_order) == list(range(len(found.pool_order)))
            assert set(found.evidence_order) <= set(range(len(found.question.passages)))

    look()


@pytest.mark.parametrize(
    ("answer", "passage"), [("usa", "USA"), ("ZOÉ", "Zoé"), ("Zoé", "Zoe\u0301"), ("paris", "Paris")]
)
def test_an_answer_and_a_passage_that_spell_it_otherwise_become_one_plain_name(answer: str, passage: str) -> None:
    def occurs(trial: Trial) -> bool:
        pool, passages = trial.question.answers, trial.question.passages
        return bool(pool and passages) and folded(pool[0] or "-") == folded(passages[0].text)

    question = Question("Which?", "retrieval", (answer,), (), (Passage("", passage),))
    found = smallest(Trial(question, gold="Paris"), occurs)
    assert (found.question.answers, found.question.passages) == (("Paris",), (Passage("", "Paris"),))


def folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def test_a_passage_says_the_earlier_of_two_plain_names_where_it_may() -> None:
    question = Question("Which?", "retrieval", ("Paris",), (), (Passage("", "Lyon"),))
    trial = Trial(question, replies={"repairer": Repair("Lyon")})

    def says_a_name(smaller: Trial) -> bool:
        passages = smaller.question.passages
        return smaller.question.answers == ("Paris",) and bool(passages and passages[0].text)

    assert smallest(trial, says_a_name).question.passages == (Passage("", "Paris"),)


def ships_a_yes_or_no(case: Any) -> Steps:
    """The tutorial's rule with one slip."""
    if case.certified(case.consensus) is False and case.rival():
        preference = case.preferred((yield "judge"))
        if case.certified(preference) is not False:
            return Choice("judge", preference)
    return Choice("consensus", case.consensus)


def overrides_unsupported(trial: Trial) -> bool:
    found = Subject(ships_a_yes_or_no).settle(trial)
    return found.branch == "judge" and not found.supports(found.answer)


STRATUM = Settings(preference="stratum")
SPELLED = Question("Which?", "retrieval", ("Lyon", "yes", "Rome", "rome", "YES"), (), (Passage("", "Lyon"),))


@pytest.mark.parametrize(
    "trial",
    [
        Trial(replace(SPELLED, answers=("Lyon", "yes", "Rome", "Rome")), replies={"judge": Verdict(1)}),
        Trial(replace(SPELLED, answers=("Lyon", "yes", "Rome", "rome", "ROME", "lyon")), replies={"judge": Verdict(1)}),
    ],
    ids=["consensus behind", "two votes and three"],
)
def test_where_no_candidate_alone_may_go_two_go_or_another_comes_first(trial: Trial) -> None:
    found = smallest(trial, overrides_unsupported)
    assert len(found.question.answers) == 3
    assert overrides_unsupported(found)


def test_scores_go_together_with_the_reading_that_needs_them() -> None:
    def judged(trial: Trial) -> bool:
        return Subject(RULES["eldgr"]).settle(trial).branch == "judge"

    question = Question("Which?", "retrieval", ("Rome", "Oslo", "Lyon"), (), (Passage("", "Lyon"),))
    found = smallest(Trial(question, STRATUM, {"judge": Verdict(1, (0.1, 0.2, 0.9))}), judged)
    assert (found.settings, found.reply("judge")) == (Settings(), Verdict(1))
    assert len(found.question.answers) == 2


def test_two_spellings_of_an_answer_become_one() -> None:
    found = smallest(Trial(SPELLED), lambda trial: trial.question.answers[2:4] in (("Rome", "rome"), ("Rome", "Rome")))
    assert found.question.answers[2:4] == ("Rome", "Rome")
