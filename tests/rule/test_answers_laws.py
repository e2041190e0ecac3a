"""What holds of every class of answers, whatever the texts."""

from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import (
    answer_class,
    normalise,
)
from eldgr_dspy.matching.text_keys import read_answer
from eldgr_dspy.text.folding import BIDI_CONTROLS
from eldgr_dspy.text.numbers import is_ambiguous, parse_number
from eldgr_dspy.text.stripping import strip_answer
from eldgr_dspy.words import TASKS, Task
from tests.rule.keys import key

any_text = st.text(st.characters())
tasks = st.sampled_from(TASKS)
tangled = st.text("0159.,/%$-−e aAthe:'_\\½٣²\"<>#+c\u200b", max_size=7)
"""Short texts over the characters that the guard treats apart, so that near misses are common."""
numerals = st.tuples(
    st.sampled_from(("", "", "-", "+", "−", "- ")),
    st.sampled_from(("", "", "$", "$ ", "€", "\\$")),
    st.sampled_from(("", "", "", "-")),
    st.text("015٣", min_size=1, max_size=3),
    st.sampled_from(("", "", ".", ",", "/", " / ", "e", "e-", "½", " ½", " 1/", ",000.")),
    st.text("015", max_size=3),
    st.sampled_from(("", "", "%", " %", "\\%", "$", " €", ".", ".%")),
).map("".join)
"""Numbers in most spellings that are read, near misses among them."""
positive = st.one_of(
    st.integers(1, 10**9).map(str),
    st.integers(1, 10**9).map("{:,}".format),
    st.decimals("0.01", 10**6, places=2).map("{:f}".format),
    st.fractions(Fraction(1, 99), 99, max_denominator=99).map(str),
    st.sampled_from((".5", "½", "1½", "$5", "$ 5", "5%", "5 %", "1e3", "1e-3", "٤٢", "4 1/2", "US$5")),
)


@given(any_text | tangled, tasks)
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


@given(any_text | tangled)
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


@given(numerals, numerals | tangled)
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


@given(tangled, tasks)
def test_case_and_outer_space_do_not_make_another_class(text: str, task: Task) -> None:
    assert key(text, task) == key(f"  {text.upper()}\n", task)


@given(tangled)
def test_an_ambiguous_comma_is_always_noted(text: str) -> None:  # hazard 16
    if is_ambiguous(text):
        result = answer_class(text, "arithmetic")
        assert result is not None and result.note is not None and "ambiguous decimal comma" in result.note
