"""Classes refine the official scores, so that no two different answers ever vote together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import (
    AnswerClass,
    answer_class,
    is_polar,
)
from eldgr_dspy.matching.text_keys import class_of_text, short_class, text_key
from eldgr_dspy.words import TASKS, Task
from tests.rule.keys import cases, key


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("one", "other"),
    cases("different answers"),  # hazards 12, 13, 14, 15, 16, 17, 20, 21, 22, 23, 24, 26 and 27
)
def test_different_answers_do_not_vote_together(one: str, other: str, task: Task) -> None:
    assert key(one, task) != key(other, task)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("one", "other"),
    cases("spellings of one answer"),  # hazards 15, 16, 18, 20, 21, 27, 35 and 38
)
def test_spellings_of_one_answer_vote_together(one: str, other: str, task: Task) -> None:
    assert key(one, task) == key(other, task)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x-1", "x+1"), ("x - 1", "x1"), ("F-16", "F16"), ("-\\infty", "\\infty"), ("-\\sqrt{2}", "\\sqrt{2}"),
        ("f'(x)", "f(x)"), ("(1,2)", "[1,2]"), ("(1,2]", "(1,2)"), ("[0, 1)", "(0, 1)"), ("-Infinity", "infinity"),
        ("2*x", "2/x"),
    ],
)  # fmt: skip
def test_signs_and_operators_tell_expressions_apart_in_arithmetic(one: str, other: str) -> None:
    assert key(one, "arithmetic") != key(other, "arithmetic")


@pytest.mark.parametrize(
    ("one", "other"), [("1/2", "0.5"), ("1e3", "1000"), ("18.0", "18"), ("½", "0.5"), ("007", "7"), ("$5", "5")]
)
def test_equal_values_vote_together_in_arithmetic_alone(one: str, other: str) -> None:  # hazard 14, hazard 19
    assert key(one, "arithmetic") == key(other, "arithmetic")
    assert key(one) != key(other)


@pytest.mark.parametrize(
    ("task", "answer", "expected"),
    [
        ("retrieval", "A", "a"), ("retrieval", "The  A.", "the a"), ("retrieval", ": .", ": ."),  # hazard 15
        ("retrieval", ":\n:", ": :"), ("retrieval", "The  Beatles", "beatles"), ("arithmetic", "$1,000", "1000"),
        ("arithmetic", "0.50", "1/2"), ("arithmetic", "-3", "-3"), ("arithmetic", "5 %", "5%"),
        ("arithmetic", "The Beatles", "text:beatles"),
    ],
)  # fmt: skip
def test_the_key_of_a_number_is_its_value_and_articles_or_marks_alone_are_kept(
    task: Task, answer: str, expected: str
) -> None:
    assert key(answer, task) == expected


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("answer", [None, "", "  ", "\n", "\u200b", "\ufeff \u00ad", "\u202e", "\x00"])
def test_nothing_visible_is_not_an_answer(answer: str | None, task: Task) -> None:  # hazard 6
    assert answer_class(answer, task) is None


@pytest.mark.parametrize(
    ("answer", "note"),
    cases("notes on answers"),  # hazards 16, 20, 21 and 35
)
@pytest.mark.parametrize("task", TASKS)
def test_the_note_says_what_was_folded_or_could_not_be_told(answer: str, note: str | None, task: Task) -> None:
    result = answer_class(answer, task)
    assert result is not None and result.note == note


def test_the_note_does_not_count_when_classes_are_compared() -> None:
    assert answer_class("$5", "arithmetic") == answer_class("5", "arithmetic") == AnswerClass("5")
    assert answer_class("\N{MINUS SIGN}5", "retrieval") == AnswerClass("-5")


def test_an_integer_of_five_thousand_digits_is_text() -> None:  # hazard 25
    assert key("1" * 5_000, "arithmetic") == "text:" + "1" * 5_000 != key("1" * 4_999, "arithmetic")


POLAR = ("yes", "No.", "TRUE", "false!", "the yes")
NOT_POLAR = ("", "yes it is", "No Doubt", "noanswer", "1", "y", "Truex")


@pytest.mark.parametrize(("answer", "polar"), [*((one, True) for one in POLAR), *((one, False) for one in NOT_POLAR)])
def test_polar_answers_are_the_four_words(answer: str, polar: bool) -> None:  # hazard 27
    assert is_polar(answer) is polar


PLAIN = st.lists(st.sampled_from("a an the A The 0 1 12 1e5 x usd million port E".split()), min_size=1, max_size=5)


@given(PLAIN.map(" ".join))
def test_words_without_marks_are_read_like_those_that_have_a_mark_without_meaning(words: str) -> None:
    for text in (words, words.lower()):
        assert text_key(text) == text_key(f"{text},")
        assert short_class(text) == short_class(f"{text},") == class_of_text(text)
