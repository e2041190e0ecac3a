"""Scores are the official ones, and classes refine them, so that no two different answers ever vote together."""

import gzip
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.answer_types import answers as answers_
from eldgr_dspy.answer_types.answers import Score, answer_class, exact_match, normalise, numeric_equal, score, token_f1
from eldgr_dspy.answer_types.short import ShortText
from eldgr_dspy.derivation.amounts import quantity_key
from eldgr_dspy.errors import ArgumentError
from eldgr_dspy.formats.rows import Row
from eldgr_dspy.matching.text_keys import AnswerClass, class_of_text, read_answer, short_class, text_key
from eldgr_dspy.rule.cases import Case
from eldgr_dspy.text.folding import BIDI_CONTROLS
from eldgr_dspy.text.numbers import is_ambiguous, parse_number
from eldgr_dspy.text.stripping import strip_answer
from eldgr_dspy.words import TASKS, Task
from tests.dates import TYPE_LIST
from tests.refusing import refusal
from tests.rule.keys import cases, key

any_text = st.text(st.characters())


@pytest.mark.parametrize(("text", "expected"), cases("official normalisation"))
def test_normalise_is_the_official_one(text: str, expected: str) -> None:
    assert normalise(text) == expected


def test_an_answer_is_scored_after_normalisation_as_its_task_says() -> None:
    assert exact_match("the Beatles!", ["Stones", "Beatles"])
    assert not exact_match("Beatle", ["Beatles"])
    assert score("18.0", ["18"], "arithmetic") == Score(em=True, f1=None)
    assert score("18.0", ["18"], "retrieval") == Score(em=False, f1=0.0)
    assert score("the Paris", ["Paris"], "retrieval") == Score(em=True, f1=1.0)
    assert answers_.official_score("18", ["18"], "arithmetic") == Score(em=True, f1=None)
    official = [answers_.official_score(one, ["Paris"], "retrieval") for one in ("the Paris!", "Paris I", "(the)")]
    assert [(one.em, one.f1) for one in official] == [(True, 1.0), (False, pytest.approx(2 / 3)), (False, 0.0)]
    assert ShortText().is_right("the Paris", ["Paris"])
    for answer in [None, "", " \n"]:
        assert not exact_match(answer, ["the"])
        assert token_f1(answer, ["the"]) == 0.0
        assert not numeric_equal(answer, ["18"])


@pytest.mark.parametrize(("answer", "gold", "expected"), cases("token f1"))
def test_token_f1_is_the_official_one_and_the_best_over_gold(answer: str, gold: list[str], expected: float) -> None:
    assert token_f1(answer, gold) == pytest.approx(expected)


@given(any_text, st.lists(any_text, min_size=1, max_size=3))
def test_token_f1_stays_between_nothing_and_one(answer: str, gold: list[str]) -> None:
    assert 0.0 <= token_f1(answer, gold) <= 1.0


EQUAL = ("18", "18.0", "$18", " 18. ", "36/2", "+18", "1.8e1")
APART = ("-18", "18%", "1.8", "18 dollars", "nan", "1,8", "18.0000001")


@pytest.mark.parametrize(("answer", "equal"), [*((one, True) for one in EQUAL), *((one, False) for one in APART)])
def test_numeric_equality_ignores_the_spelling_of_a_number_and_is_exact(answer: str, equal: bool) -> None:
    assert numeric_equal(answer, ["17", "18"]) is equal
    assert not numeric_equal("nan", ["nan"])  # hazard 24


@pytest.mark.parametrize("scorer", [exact_match, token_f1, numeric_equal])
@pytest.mark.parametrize("gold", [[], (), "18", ""])
def test_gold_must_be_a_sequence_of_at_least_one(scorer: Callable[..., Any], gold: Sequence[str]) -> None:
    with pytest.raises(ArgumentError) as info:
        scorer("18", gold)
    expected = f"gold must be a list of one or more gold answers; got {gold!r}. Pass one such as ['18']."
    assert str(info.value) == expected


@pytest.mark.parametrize("call", [lambda task: score("1", ["1"], task), lambda task: answer_class("1", task)])
def test_an_unknown_task_is_named(call: Callable[[Any], object]) -> None:
    assert refusal(lambda: call("maths")) == f"answer must be one of {TYPE_LIST}; got 'maths'."


@pytest.mark.parametrize(("name", "first", "most"), [("gsm8k-openai4", 458, 607), ("hotpotqa-reflexion12", 32, 58)])
def test_first_and_majority_are_right_as_often_as_known(pools_dir: Path, name: str, first: int, most: int) -> None:
    with gzip.open(pools_dir / f"{name}.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
        rows = [Row.model_validate_json(line) for line in lines]
    cases = [(Case(row.to_question()), row) for row in rows]
    assert sum(score(case.first, row.gold, row.task).em for case, row in cases) == first
    assert sum(score(case.consensus, row.gold, row.task).em for case, row in cases) == most


@pytest.mark.parametrize("task", TASKS)
# hazards 12, 13, 14, 15, 16, 17, 20, 21, 22, 23, 24, 26 and 27
@pytest.mark.parametrize(("one", "other"), cases("different answers"))
def test_different_answers_do_not_vote_together(one: str, other: str, task: Task) -> None:
    assert key(one, task) != key(other, task)


@pytest.mark.parametrize("task", TASKS)
# hazards 15, 16, 18, 20, 21, 27, 35 and 38
@pytest.mark.parametrize(("one", "other"), cases("spellings of one answer"))
def test_spellings_of_one_answer_vote_together(one: str, other: str, task: Task) -> None:
    assert key(one, task) == key(other, task)


EQUAL_VALUES = (("1/2", "0.5"), ("1e3", "1000"), ("18.0", "18"), ("½", "0.5"), ("007", "7"), ("$5", "5"))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [*((*pair, False) for pair in cases("apart in arithmetic")), *((*p, True) for p in EQUAL_VALUES)],
)
def test_values_and_signs_tell_expressions_apart_in_arithmetic(one: str, other: str, equal: bool) -> None:
    assert (key(one, "arithmetic") == key(other, "arithmetic")) is equal  # hazard 14, hazard 19
    assert not equal or key(one) != key(other)


# hazard 15
@pytest.mark.parametrize(("task", "answer", "expected"), cases("keys of answers"))
def test_a_number_has_its_value_as_key_and_articles_or_marks_alone_stay(task: Task, answer: str, expected: str) -> None:
    assert key(answer, task) == expected


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("answer", [None, "", "  ", "\n", "\u200b", "\ufeff \u00ad", "\u202e", "\x00"])
def test_nothing_visible_is_not_an_answer(answer: str | None, task: Task) -> None:  # hazard 6
    assert answer_class(answer, task) is None


# hazards 16, 20, 21 and 35
@pytest.mark.parametrize(("answer", "note"), cases("notes on answers"))
@pytest.mark.parametrize("task", TASKS)
def test_the_note_says_what_was_folded_or_could_not_be_told(answer: str, note: str | None, task: Task) -> None:
    result = answer_class(answer, task)
    assert result is not None and result.note == note


def test_a_note_does_not_count_in_comparisons_and_five_thousand_digits_are_text() -> None:
    assert answer_class("$5", "arithmetic") == answer_class("5", "arithmetic") == answers_.AnswerClass("5")
    assert answer_class("\N{MINUS SIGN}5", "retrieval") == answers_.AnswerClass("-5")
    assert text_key("X-5") == "X5"
    assert key("1" * 5_000, "arithmetic") == "text:" + "1" * 5_000 != key("1" * 4_999, "arithmetic")  # hazard 25


POLAR = ("yes", "No.", "TRUE", "false!", "the yes")
NOT_POLAR = ("", "yes it is", "No Doubt", "noanswer", "1", "y", "Truex")


@pytest.mark.parametrize(("answer", "polar"), [*((one, True) for one in POLAR), *((one, False) for one in NOT_POLAR)])
def test_polar_answers_are_the_four_words(answer: str, polar: bool) -> None:  # hazard 27
    assert answers_.is_polar(answer) is polar


PLAIN = st.lists(st.sampled_from("a an the A The 0 1 12 1e5 x usd million port E".split()), min_size=1, max_size=5)


@given(PLAIN.map(" ".join))
@example("1 million an")
def test_words_without_marks_are_read_like_those_that_have_a_mark_without_meaning(words: str) -> None:
    for text in (words, words.lower()):
        assert text_key(text) == text_key(f"{text},")
        key = text_key(text.lower())
        assert class_of_text(text) == AnswerClass(key)
        assert short_class(text) == short_class(f"{text},") == AnswerClass(quantity_key(key))


tasks = st.sampled_from(TASKS)
tangles = st.text("0159.,/%$-−e aAthe:'_\\½٣²\"<>#+c\u200b", max_size=7)
"""Short texts over the characters that the guard treats apart, so that near misses are common."""
numerals = st.tuples(
    st.sampled_from(("", "", "-", "+", "−", "- ")), st.sampled_from(("", "", "$", "$ ", "€", "\\$")),
    st.sampled_from(("", "", "", "-")), st.text("015٣", min_size=1, max_size=3),
    st.sampled_from(("", "", ".", ",", "/", " / ", "e", "e-", "½", " ½", " 1/", ",000.")), st.text("015", max_size=3),
    st.sampled_from(("", "", "%", " %", "\\%", "$", " €", ".", ".%")),
).map("".join)  # fmt: skip
"""Numbers in most spellings that are read, near misses among them."""
positive = st.one_of(
    st.integers(1, 10**9).map(str),
    st.integers(1, 10**9).map("{:,}".format),
    st.decimals("0.01", 10**6, places=2).map("{:f}".format),
    st.fractions(Fraction(1, 99), 99, max_denominator=99).map(str),
    st.sampled_from((".5", "½", "1½", "$5", "$ 5", "5%", "5 %", "1e3", "1e-3", "٤٢", "4 1/2", "US$5")),
)


@given(any_text | tangles, tasks)
@example("\ud800", "retrieval")
@example("-" * 50_000, "retrieval")  # once took minutes
@example("'a" * 50_000, "retrieval")
@example("'" + "b'b" * 50_000, "retrieval")
@example("5' " * 50_000, "retrieval")
@example(">" * 50_000, "retrieval")
@example("5" + '"' * 50_000, "retrieval")
@example("1,111" * 20_000, "arithmetic")
def test_every_text_has_a_class_or_nothing_to_show(text: str, task: Task) -> None:
    result = answer_class(text, task)
    assert result is None or any(character.strip() for character in result.key.removeprefix("text:"))


@given(any_text | tangles)
@example("5 %a")
@example("-a")
@example("- a")
@example("5%a")
@example("ΑΣ.")
@example("J. R. R.")
@example("5 °C")
@example("A:−0")
@example("0%:A")
@example("0 %:0")
@example('"5".5')
@example("a+ a# a- >5")
@example("e\u0301")
@example("0\u00ad")
@example("0'−A")
def test_a_class_refines_the_official_normalisation(text: str) -> None:
    """The text is stripped, folded and respelled first. A text without letters and digits is left out."""
    result = key(text)
    if result is not None and any(map(str.isalnum, text)) and BIDI_CONTROLS.isdisjoint(text):
        assert normalise(result) == normalise(read_answer(text))


@given(numerals, numerals, tasks)
@example("5.%", "5", "retrieval")
@example("5\\%", "5", "retrieval")
@example("1e-3", "1e3", "retrieval")
@example("-$ 5", "5", "retrieval")
@example("1 /2", "1 2", "retrieval")
def test_numbers_of_one_class_are_equal(one: str, other: str, task: Task) -> None:
    first, second = parse_number(one), parse_number(other)
    if first is not None and second is not None and key(one, task) == key(other, task):
        assert first == second


@given(numerals, numerals | tangles)
@example("-1,000.", "-1,000..")  # two full stops: a number only after stripping
def test_arithmetic_classes_are_equality_of_numbers_and_no_text_joins_them(one: str, other: str) -> None:
    first, second = parse_number(one), parse_number(strip_answer(other))
    if first is not None:
        assert (key(one, "arithmetic") == key(other, "arithmetic")) == (first == second)


@given(st.integers(), st.integers(), tasks)
def test_different_integers_never_share_a_class(one: int, other: int, task: Task) -> None:
    assert (key(str(one), task) == key(f"{other:,}", task)) == (one == other)


@given(st.integers(1), st.integers(0, 10**6), st.integers(0, 6), tasks)
def test_different_decimals_never_share_a_class(whole: int, part: int, places: int, task: Task) -> None:
    text = f"{whole}.{part:0{places}d}"
    assert key(text, task) != key(f"{whole}{part:0{places}d}", task)
    assert (key(text, task) == key(str(whole), task)) == (task == "arithmetic" and part == 0)


@given(positive, tasks, st.sampled_from(("{}", "({})", '"{}"', "*{}*", "x = {}", "  {}.", "it was {} then")))
def test_a_sign_is_never_lost(text: str, task: Task, frame: str) -> None:  # hazard 12
    assert key(frame.format(f"-{text}"), task) != key(frame.format(text), task)


@given(tangles, tasks)
def test_case_and_outer_space_do_not_make_another_class(text: str, task: Task) -> None:
    assert key(text, task) == key(f"  {text.upper()}\n", task)


@given(tangles)
def test_an_ambiguous_comma_is_always_noted(text: str) -> None:  # hazard 16
    if is_ambiguous(text):
        result = answer_class(text, "arithmetic")
        assert result is not None and result.note is not None and "ambiguous decimal comma" in result.note
