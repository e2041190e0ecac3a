"""A text is one number or none, read exactly; what can be read in two ways is not read."""

import unicodedata
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.text.numbers import Number, fold_digits, fold_marks, is_ambiguous, parse_number
from tests.rule.keys import cases

any_text = st.text(st.characters())
decimals = st.decimals(-(10**9), 10**9, places=3, allow_nan=False).map("{:f}".format)


def value(text: str) -> Fraction:
    number = parse_number(text)
    assert number is not None, f"{text!r} is not read as a number"
    return number.value


# hazards 13, 14, 16, 19, 20 and 23
@pytest.mark.parametrize(("text", "expected"), cases("numbers"))
def test_a_number_is_read_exactly(text: str, expected: str) -> None:
    assert value(text) == Fraction(expected)


@pytest.mark.parametrize("text", ["$5", "5$", "$5$", "€ 5", "5\N{NO-BREAK SPACE}€", "\\$5", "£5.00", "\u20bf5"])
def test_one_currency_sign_is_dropped_and_told(text: str) -> None:  # hazard 18
    number = parse_number(text)
    assert number is not None and number.value == 5 and number.priced


@pytest.mark.parametrize("text", ["-$5", "$-5", "$ -5", "\N{MINUS SIGN}€5"])
def test_a_sign_survives_on_either_side_of_a_currency_sign(text: str) -> None:  # hazard 12
    assert value(text) == -5


@pytest.mark.parametrize("text", ["5%", "5 %", "5\\%", "5%."])
def test_percent_is_kept_apart_and_the_value_is_as_written(text: str) -> None:  # hazard 17
    assert parse_number(text) == Number(Fraction(5), percent=True)
    assert parse_number(text) != parse_number("5") and parse_number(text) != parse_number("0.05")


@pytest.mark.parametrize("digits", ["٤٢", "４２", "𝟜𝟚", "४२"])
def test_decimal_digits_of_any_script_are_folded(digits: str) -> None:  # hazard 21
    assert fold_digits(digits) == "42"
    assert parse_number(digits) == Number(Fraction(42))
    assert fold_marks(digits) == "42"


@pytest.mark.parametrize("text", ["18\u200b", "\u200e18", "1\u00ad8", "\u206118", "\ufeff 18 \u2064"])
def test_invisible_characters_are_dropped(text: str) -> None:  # hazard 35
    number = parse_number(text)
    assert number is not None and number.value == 18


# hazards 16, 22, 24 and 25
@pytest.mark.parametrize("text", [*cases("no numbers"), "1" * 5_000, "1." + "0" * 5_000, "9" * 1_001])
def test_what_is_not_a_number_or_is_two_is_not_read(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize("text", ["1,5", "-1,5", "$1,50", "0,500", "1234,567", "1.000,50", "1,5%", "١,٥", " 1,5 "])
def test_a_comma_that_may_be_a_decimal_mark_is_ambiguous(text: str) -> None:  # hazard 16
    assert is_ambiguous(text)
    assert parse_number(text) is None


@pytest.mark.parametrize(
    "text", ["", "1", "1,000", "1,000.5", "1.5", "1,2,3", "12,34,567", "a,b", ",5", "5,", "1" * 5_000 + ",5"]
)
def test_no_other_text_is_ambiguous(text: str) -> None:
    assert not is_ambiguous(text)


def test_decimals_add_up_exactly() -> None:  # hazard 26
    assert value("0.1") + value("0.2") == value(".3")


def test_a_currency_sign_does_not_count_when_numbers_are_compared() -> None:
    assert parse_number("$5") == parse_number("5.0") and hash(parse_number("$5")) == hash(parse_number("5"))


@given(any_text)
@example("\ud800")
@example("5\ud800")
@example("\x1c5")
@example("\u2189")
def test_any_text_can_be_tried(text: str) -> None:
    parse_number(text)
    is_ambiguous(text)


@given(any_text)
def test_folding_keeps_every_position(text: str) -> None:
    folded = fold_marks(text)
    assert len(folded) == len(text)
    assert all(
        old == new or old == "\N{MINUS SIGN}" or unicodedata.decimal(old) == int(new)
        for old, new in zip(text, folded, strict=True)
    )


@given(st.integers(-(10**12), 10**12))
def test_thousands_marks_and_decimals_do_not_change_an_integer(number: int) -> None:
    assert value(f"{number:,}") == value(f"{number}") == value(f"{number}.00") == value(f"{number:,}.0") == number


@given(decimals)
def test_a_decimal_is_its_exact_value_and_a_sign_negates_it(text: str) -> None:
    assert value(text) == Fraction(text)
    if not text.startswith("-"):
        assert value(f"-{text}") == value(f"\N{MINUS SIGN}{text}") == value(f"-${text}") == -Fraction(text)


@given(st.text("0123456789.,/%$-−e ½٣", max_size=8))
def test_the_minus_sign_reads_as_a_hyphen_minus(text: str) -> None:
    assert parse_number(text) == parse_number(text.replace("\N{MINUS SIGN}", "-"))
