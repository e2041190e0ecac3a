"""A choice votes for the option that it names, and the text of the option in the evidence certifies it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy import Selector
from eldgr_dspy.answer_types import answer_type
from eldgr_dspy.answer_types.choice import Choice
from eldgr_dspy.certificates import Passage
from eldgr_dspy.errors import PoolError
from eldgr_dspy.formats.rows import validate
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.rule.questions import Question, Settings
from tests.refusing import refused

OPTIONS = ("Doha", "Dubai", "Riyadh", "None of the above")
RECORD = {
    "id": "q",
    "question": "What is the capital of Qatar?",
    "task": "choice",
    "candidates": [{"answer": "A"}, {"answer": "Dubai"}],
    "options": [*OPTIONS],
}


def case_of(*answers: str | None, options: tuple[str, ...] = OPTIONS, evidence: str = "It is Doha.") -> Case:
    """Return a question with options."""
    return Case(Question("Which?", "choice", answers, (), (Passage("", evidence),), options))


@pytest.mark.parametrize(
    ("answer", "index"),
    [
        ("A", 0), ("(b)", 1), ("c.", 2), ("[D]", 3), ("option B", 1), ("Answer c", 2),
        ("Doha", 0), ("  the doha. ", 0), ("A. Doha", 0), ("(B) Dubai", 1), ("none of the above", 3),
        ("A. Dubai", None), ("E", None), ("Muscat", None), ("A or B", None), ("A. Doha and B. Dubai", None), ("", None),
        ("B Doha", None), ("Doha, Qatar", None),
    ],
)  # fmt: skip
def test_an_answer_names_an_option_by_letter_by_text_or_by_both(answer: str, index: int | None) -> None:
    assert Choice(OPTIONS).index(answer) == index


def test_a_letter_that_is_an_option_itself_is_read_as_its_text() -> None:
    assert Choice(("B", "A")).index("A") == 1


@given(st.lists(st.sampled_from(("A", "Doha", "a)", "B", "Dubai", "Muscat", "E", None)), max_size=6))
def test_letters_and_texts_of_an_option_vote_together(answers: list[str | None]) -> None:
    votes = case_of(*answers).vote.classes
    named = {"A": "doha", "Doha": "doha", "a)": "doha", "B": "dubai", "Dubai": "dubai", "Muscat": "muscat", "E": "e"}
    assert votes == tuple(answer and named[answer] for answer in answers)


def test_the_text_of_an_option_certifies_its_letter() -> None:
    case = case_of("B", "A")
    assert (case.certified("A"), case.certified("B"), case.certified("Muscat")) == (True, False, False)
    result = case.certificate("A").witness
    assert result is not None and result.text == "Doha"


def test_without_evidence_no_option_is_certified() -> None:
    assert case_of("A", evidence="").certified("A") is False


@pytest.mark.parametrize("answer", ["D", "None of the above"])
def test_an_option_about_the_others_is_inapplicable(answer: str) -> None:
    assert case_of(answer, evidence="None of the above.").certified(answer) is None


def test_yes_and_no_are_inapplicable_as_in_short_text() -> None:
    case = case_of("A", options=("Yes", "No"), evidence="Yes.")
    assert (case.certified("A"), case.certified("no")) == (None, None)


def test_an_option_that_refuses_does_so_by_its_letter_too() -> None:
    options, evidence = ("I don't know", "Doha"), "I don't know. It is Doha."
    case = case_of("A", "I don't know", "B", options=options, evidence=evidence)
    assert [case.certified(answer) for answer in case.question.answers] == [None, None, True]
    without = Case(case.question, Settings(refusal="no_answer"))
    assert without.vote.classes == (None, None, "doha")


def test_an_option_that_is_part_of_another_is_inapplicable() -> None:
    case = case_of("A", "B", options=("Paris", "Paris, Texas"), evidence="He was born in Paris, Texas.")
    assert (case.certified("A"), case.certified("B")) == (None, True)


@pytest.mark.parametrize("gold", ["A", "Doha", "(a)"])
def test_gold_is_a_letter_or_a_text(gold: str) -> None:
    kind = case_of().type
    answers = ("A", "doha", "B", "Muscat", None)
    assert [kind.is_right(answer, [gold]) for answer in answers] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "options must be two or more for the answer type 'choice'; got []."),
        (["Doha"], "options must be two or more for the answer type 'choice'; got ['Doha']."),
        (["Doha", "the doha"], "options must differ as answers; got 'Doha' and 'the doha'."),
        (["Doha", " "], "options[1] must be text that is not blank; got ' '."),
    ],
)
def test_options_that_do_not_tell_answers_apart_are_refused(options: list[str], message: str) -> None:
    assert refused(lambda: Selector(answer="choice")(question="?", candidates=["A"], options=options)) == message
    of_a_row = refused(lambda: validate({**RECORD, "options": options}, "pool.jsonl, line 1"), PoolError)
    assert of_a_row == f"pool.jsonl, line 1, id 'q': row {message}"


@pytest.mark.parametrize("options", ["AB", {"A": "Doha"}, 3, [None, "B"], ["A", {}]])
def test_options_that_are_no_texts_or_of_another_type_are_refused(options: Any) -> None:
    inputs = {"question": "?", "candidates": ["A"]}
    assert refused(lambda: Selector(answer="choice")(**inputs, options=options)).startswith("options")
    message = refused(lambda: Selector()(**inputs, options=["A", "B"]))
    assert message.startswith("options must be empty for the answer type 'short'")


def test_options_are_part_of_a_rows_content() -> None:
    row = validate(RECORD, "row")
    assert row.to_question().options == OPTIONS
    assert row.digest() != validate({**RECORD, "options": ["Doha", "Dubai"]}, "row").digest()


def test_a_selector_ships_the_certified_option() -> None:
    select = Selector(answer="choice", rule="certified")
    pred = select(question="?", candidates=["B", "B", "A"], evidence=["It is Doha."], options=OPTIONS)
    assert (pred.answer, pred.branch, pred.certified) == ("A", "certified", True)


def test_the_type_of_a_question_leaves_the_type_as_it_is() -> None:
    kind = answer_type("choice")
    assert isinstance(kind, Choice) and kind.options == () and case_of().type is not kind


def test_roles_see_the_options_behind_their_letters() -> None:
    question = case_of("A").question
    shown = "Which?\nOptions:\nA. Doha\nB. Dubai\nC. Riyadh\nD. None of the above"
    assert [question.role_inputs(role)["question"] for role in ("judge", "repairer")] == [shown] * 2


def test_an_option_beyond_the_letters_has_none() -> None:
    options = tuple(f"Town {number}" for number in range(28))
    shown = str(case_of("A", options=options).question.role_inputs("judge")["question"]).splitlines()
    assert shown[27:] == ["Z. Town 25", "- Town 26", "- Town 27"]
