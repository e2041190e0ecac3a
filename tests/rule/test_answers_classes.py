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
from tests.rule.keys import key


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("-5", "5"), ("(-5)", "(5)"), ("*-5*", "*5*"), ("- 5", "5"), ("-$5", "$5"), ("-US$5", "US$5"),  # hazard 12
        ("it is -5", "it is 5"), ("-x", "x"), ("1e-5", "1e5"), ("_-5_", "5"), ("-½", "½"), ("-x²", "x²"),  # hazard 12
        (">50", "<50"), (">50", "50"), ("<50", "50"), ("≤50", "50"), ("50+", "50"), (">=50", ">50"),  # hazard 12
        ("3.14", "314"), (".5", "5"), ("1.2.3", "123"), ("1.5 m", "15 m"), ("-.5", "-5"),  # hazard 13
        ("1/2", "12"), ("10-3", "103"), ("10:30", "1030"), ("2^10", "210"), ("2+2", "22"), ("5'", '5"'),  # hazard 14
        ("5'", "5"), ('5"', "5"), ("5' 10\"", "5 10"), ("5''", "5'"), ("(5')", "(5)"),  # hazard 14
        ("A", "the"), ("The The", "the"), (":", "A"), (":", "."), ("A", "B"), ("A+", "A-"), ("A+", "A"),  # hazard 15
        ("A-", "A"), ("A\N{MINUS SIGN}", "A"), ("AB+", "AB-"), ("O-.", "O+."), ("C", "C++"), ("C", "C#"),  # hazard 15
        ("C++", "C#"), ("F# major", "F major"), ("C++11", "C11"),  # hazard 15
        ("1,5", "15"), ("1,5", "1.5"), ("1,00", "100"), ("0,500", "0500"), ("1,2,3", "123"),  # hazard 16
        ("5%", "5"), ("5%", "0.05"), ("5 %", "5"), ("5\\%", "5"), ("5.%", "5"), ("5% of it", "5 of it"),  # hazard 17
        ("\N{MINUS SIGN}5", "5"), ("٣\u066b١٤", "٣١٤"),  # hazard 20, hazard 21
        ("10²", "102"), ("10²", "10"), ("1½", "11/2"), ("1½", "112"), ("½", "12"),  # hazard 22, hazard 23
        ("10²-3", "10²3"), ("10².5", "10²5"), ("10²%", "10²"), ("1½-2", "1½2"),  # hazards 12, 13, 14, 17
        ("it is -①", "it is ①"), ("①-②", "①②"), ("①.5", "①5"), ("①%", "①"),  # hazards 12, 13, 14, 17
        ("①", "1"), ("⑫", "12"), ("①②", "12"), ("10①", "101"), ("〇", "0"),  # hazard 21: not read
        ("1_000", "1000"), ("nan", "0"), ("inf", "nan"),  # hazard 24
        ("0.1+0.2", "0.10.2"), ("0.1+0.2", ".3"),  # hazard 26: an expression is not an answer
        ("true", "yes"), ("false", "no"), ("yes", "no"), ("true", "1"),  # hazard 27
    ],
)  # fmt: skip
def test_different_answers_do_not_vote_together(one: str, other: str, task: Task) -> None:
    assert key(one, task) != key(other, task)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,000", "1000"), ("1,234,567.5", "1234567.5"), ("10,000 men", "10000 men"),  # hazard 16
        ("$ 5", "$5"), ("$1,000", "$1000"), ("5 $", "5$"),  # hazard 18
        ("\N{MINUS SIGN}5", "-5"), ("(\N{MINUS SIGN}5)", "(-5)"),  # hazard 20
        ("٤٢", "42"), ("４２", "42"), ("४२ km", "42 km"),  # hazard 21
        ("5 %", "5%"), ("+5", "5"), ("5.", "5"), ("(①)", "①"), ("①.", "①"), ("World War Ⅱ.", "world war ⅱ"),
        ("H₂O-rich", "h₂orich"), ("The Beatles", "beatles"), ("U.S.", "US"), ("-Paris", "Paris"),
        ("- Paris", "paris"), ("'Paris'", "Paris"), ('"Route 66"', "Route 66"), ("('Call 911')", "Call 911"),
        ("1980's", "1980s"), ('"Don\'t call 911"', "dont call 911"), ("'Don't call 911'", "dont call 911"),
        ("O'Neill", "ONeill"), ("A+", "a+."), ("A\N{MINUS SIGN}", "A-"), ("e-mail", "email"), ("Paris -", "Paris"),
        ("> x", "x"),
        ("A", "a."), ("(A)", '"a"'), ("The The", "the the"),  # hazard 15
        ("January 10, 1920", "january 10 1920"), ("Yes.", "yes"), ("No", "no!"),  # hazard 27
        ("Paris", "Paris\u200b"), ("Paris", "Pa\u00adris\u2064"), ("18", "18\u200b"), ("-5", "\u200e-5"),  # hazard 35
        ("Beyonc\u00e9", "Beyonce\u0301"), ("\uac00 5", "\u1100\u1161 5"),  # hazard 38
    ],
)  # fmt: skip
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
    ("answer", "expected"),
    [("A", "a"), ("The  A.", "the a"), (": .", ": ."), (":\n:", ": :"), ("The  Beatles", "beatles")],
)
def test_an_answer_of_articles_or_marks_alone_keeps_them_as_its_key(answer: str, expected: str) -> None:  # hazard 15
    assert key(answer) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("$1,000", "1000"), ("0.50", "1/2"), ("-3", "-3"), ("5 %", "5%"), ("The Beatles", "text:beatles")],
)
def test_the_key_of_a_number_is_its_value_in_arithmetic(answer: str, expected: str) -> None:
    assert key(answer, "arithmetic") == expected


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("answer", [None, "", "  ", "\n", "\u200b", "\ufeff \u00ad", "\u202e", "\x00"])
def test_nothing_visible_is_not_an_answer(answer: str | None, task: Task) -> None:  # hazard 6
    assert answer_class(answer, task) is None


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        ("1,5", "ambiguous decimal comma"),  # hazard 16
        ("- 5", "detached sign"), ("\N{MINUS SIGN}٥", "digits folded; minus sign folded"), ("18", None),
        ("18\u200b", "invisible characters dropped"), ("\u200e-5", "invisible characters dropped"), ("1,000", None),
        ("Paris", None), ("Beyonce\u0301", None),
        ("\N{MINUS SIGN}5", "minus sign folded"),  # hazard 20
        ("٥", "digits folded"),  # hazard 21
        ("Paris\u200b", "invisible characters dropped"),  # hazard 35
    ],
)  # fmt: skip
@pytest.mark.parametrize("task", TASKS)
def test_the_note_says_what_was_folded_or_could_not_be_told(answer: str, note: str | None, task: Task) -> None:
    found = answer_class(answer, task)
    assert found is not None and found.note == note


def test_the_note_does_not_count_when_classes_are_compared() -> None:
    assert answer_class("$5", "arithmetic") == answer_class("5", "arithmetic") == AnswerClass("5")
    assert answer_class("\N{MINUS SIGN}5", "retrieval") == AnswerClass("-5")


def test_an_integer_of_five_thousand_digits_is_text() -> None:  # hazard 25
    assert key("1" * 5_000, "arithmetic") == "text:" + "1" * 5_000 != key("1" * 4_999, "arithmetic")


@pytest.mark.parametrize("answer", ["yes", "No.", "TRUE", "false!", "the yes"])
def test_polar_answers_are_the_four_words(answer: str) -> None:  # hazard 27
    assert is_polar(answer)


@pytest.mark.parametrize("answer", ["", "yes it is", "No Doubt", "noanswer", "1", "y", "Truex"])
def test_nothing_else_is_polar(answer: str) -> None:  # hazard 27
    assert not is_polar(answer)


PLAIN = st.lists(st.sampled_from("a an the A The 0 1 12 1e5 x usd million port E".split()), min_size=1, max_size=5)


@given(PLAIN.map(" ".join))
def test_words_without_marks_are_read_like_those_that_have_a_mark_without_meaning(words: str) -> None:
    for text in (words, words.lower()):
        assert text_key(text) == text_key(f"{text},")
        assert short_class(text) == short_class(f"{text},") == class_of_text(text)
