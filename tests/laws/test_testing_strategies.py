"""`check_laws` says what it found, a broken law tells its story, and the public strategies draw what they say."""

import json
import subprocess
import sys
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from eldgr_dspy.certificates import Passage
from eldgr_dspy.decision import Steps, evidence_locked, majority_vote, scalar_judge
from eldgr_dspy.laws import LAW, LAWS, LawBroken
from eldgr_dspy.laws.of_rules import OF_RULES
from eldgr_dspy.laws.trials import Subject, Trial, describe
from eldgr_dspy.rule.consultations import Repair, Verdict
from eldgr_dspy.rule.questions import Question, Settings
from eldgr_dspy.testing import WORDS, check_laws, consultations, evidence, lm_replies, pools, questions
from tests.case_tables import each_case

pytestmark = pytest.mark.slow  # the kit on what its strategies draw

T = TypeVar("T")


def test_the_rule_of_this_package_breaks_no_law_and_each_has_something_to_say() -> None:
    counts = check_laws()
    assert list(counts) == [law.name for law in OF_RULES] == [law.name for law in LAWS if law.statement is not None]
    assert counts["the_cases_partition"] >= min(counts.values()) > 0, counts


def test_a_broken_law_is_shown_with_a_small_trial_and_the_other_laws_that_are_broken() -> None:
    with pytest.raises(LawBroken) as info:
        check_laws("judge", laws=["override_needs_a_certificate", "homogeneous_pools_consult_no_judge"])
    assert info.value.law is LAW["override_needs_a_certificate"]
    assert len(info.value.outcome.trial.question.answers) == 2
    assert "Broken too" not in str(info.value)
    with pytest.raises(LawBroken, match=r"(?s)^Law 3, .*Broken too: .*judges_differ_only_where_admissible") as info:
        check_laws(scalar_judge)
    assert info.value.__cause__ is None
    assert info.value.__notes__[0].startswith("Falsifying example: Trial(question=Question(text='Which?', ")


def test_a_law_that_is_left_out_is_not_tried() -> None:
    without = ["certified_preference_outranks_repair", "the_cases_partition"]
    counts = check_laws(majority_vote, without=without, max_examples=0)
    assert list(counts) == [law.name for law in OF_RULES if law.name not in without]
    one = "default_is_consensus"
    assert list(check_laws(laws=[one, *without], without=without, max_examples=0)) == [one]


def test_under_a_profile_without_chance_the_same_is_drawn_each_time() -> None:
    calls = list[list[Question]]()

    def notes(case: Any) -> Steps:
        calls[-1].append(case.question)
        return (yield from evidence_locked(case))

    before = settings.get_current_profile_name()
    settings.register_profile("without chance", derandomize=True)
    settings.load_profile("without chance")
    try:
        for _ in range(2):
            calls.append([])
            check_laws(notes, laws=["default_is_consensus"], max_examples=50)
    finally:
        settings.load_profile(before)
    assert calls[0] == calls[1]


STORY = Trial(
    Question("Which?", "retrieval", ("Oslo", "Rome"), (), (Passage("Norway", "Oslo"), Passage("", "x"))),
    Settings(preference="stratum"),
    {"judge": Verdict(1, (0.5, 0.25)), "repairer": Repair("x")},
)


def test_texts_are_told_where_they_say_more_than_the_answers() -> None:
    def headings(*texts: str) -> set[str]:
        outcome = Subject(scalar_judge).settle(Trial(Question("Which?", "retrieval", ("Oslo", None), texts)))
        return {heading for heading, _ in describe(outcome)}

    assert headings("Oslo", "") == headings() == headings("It is Oslo.", "") - {"texts"}
    assert "texts" in headings("It is Oslo.", "")


@each_case("laws", "story")
def test_the_story_of_a_broken_law_is_whole_and_tells_both_outcomes_that_it_compares(lines: list[str]) -> None:
    with pytest.raises(LawBroken) as info:
        LAW["override_needs_a_certificate"].check(Subject(scalar_judge).settle(STORY))
    assert repr(info.value.outcome) == "<Outcome: 'Rome' (uncertified), by branch judge; asked judge>"
    assert str(info.value).splitlines() == lines
    trial = Trial(Question("Which?", "retrieval", ("Oslo", "Rome")), replies={"judge": Verdict(1)})
    with pytest.raises(LawBroken, match=r"  but there   'Oslo' \(uncertified\), by branch consensus\Z"):
        LAW["judges_differ_only_where_admissible"].check(Subject(scalar_judge).settle(trial))


def test_the_laws_are_twenty_one_and_a_number_may_have_several_names() -> None:
    assert [law.number for law in LAWS] == sorted(law.number for law in LAWS)
    assert {law.number for law in LAWS} == set(range(1, 22))
    assert len(LAW) == len(LAWS)
    assert all(law.claim.endswith(".") for law in LAWS)
    assert all(law.statement is None or law.statement.__name__ == law.name for law in LAWS)
    outcome = Subject(evidence_locked).settle(Trial(Question("Which?", "retrieval", ())))
    assert LAW["no_lm_text_breaks_a_law"].check(outcome) is False  # one about the selector says nothing of a rule


def test_a_certificate_is_not_asked_about_an_empty_answer() -> None:
    calls: list[str] = []

    def certificate(answer: str, passages: tuple[Passage, ...]) -> bool:
        calls.append(answer)
        return False

    check_laws(certificate=certificate)
    assert calls
    assert all(answer.strip() for answer in calls)


def test_without_hypothesis_one_is_told_which_extra_to_install() -> None:
    script = "import sys; sys.modules['hypothesis'] = None\ntry: import eldgr_dspy.testing\n"
    script += "except ImportError as error: print(error)"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    message = "eldgr_dspy.testing draws its examples with Hypothesis, which is not installed; run `pip install '{}'`.\n"
    assert process.stdout == message.format("eldgr_dspy[testing]"), process.stderr


@given(st.data())
def test_pools_and_evidence_are_made_of_the_words_that_they_are_given(data: st.DataObject) -> None:
    assert set(data.draw(pools(["a", "b"]))) <= {"a", "b", None}
    for passage in data.draw(evidence(["a", "b"])):
        assert set(passage.text.split()) <= {"a", "b"}
        assert passage.text


@pytest.mark.parametrize("task", ["retrieval", "arithmetic"])
@given(st.data())
def test_a_question_or_a_trial_is_of_the_task_and_a_verdict_about_a_candidate_with_an_answer(
    task: Any, data: st.DataObject
) -> None:
    trial = data.draw(consultations(task))
    reply = trial.reply("judge")
    assert data.draw(questions(task)).task == trial.question.task == task
    assert not isinstance(reply, Verdict) or trial.question.answers[reply.preferred]


def draw(strategy: st.SearchStrategy[T], n: int) -> list[T]:
    draws = list[T]()

    @settings(max_examples=n, database=None, phases=[Phase.generate], deadline=None, derandomize=True)
    @given(strategy)
    def look(one: T) -> None:
        draws.append(one)

    look()
    return draws


def test_pools_of_any_words_have_candidates_without_an_answer_and_every_word() -> None:
    answers = {answer for pool in draw(pools(), 2_000) for answer in pool}
    assert None in answers
    assert len(answers) > len(set(WORDS)) * 0.9


def test_some_evidence_has_an_answer_in_two_passages_and_in_neither_of_them() -> None:
    def is_apart(question: Question) -> bool:
        texts = [passage.text for passage in question.passages]
        answers = [answer for answer in question.answers if answer and len(answer.split()) > 1]
        return any(one in " ".join(texts) and not any(one in text for text in texts) for one in answers)

    assert sum(map(is_apart, draw(questions("retrieval"), 500))) >= 10


def test_some_of_what_an_lm_may_return_is_json_and_some_is_not() -> None:
    def is_json(reply: str) -> bool:
        try:
            json.loads(reply)
        except (ValueError, RecursionError):
            return False
        return True

    assert set(map(is_json, draw(lm_replies(), 100))) == {True, False}
