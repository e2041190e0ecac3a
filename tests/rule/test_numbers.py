"""A text is one number or none, read exactly; what can be read in two ways is not read."""

import unicodedata
from fractions import Fraction
from typing import Any

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


# hazards 12, 16, 17, 18 and 35
@pytest.mark.parametrize(("text", "expected", "marks"), cases("numbers with marks"))
def test_signs_of_currency_and_percent_are_told_and_an_ambiguous_comma_too(
    text: str, expected: Any, marks: Any
) -> None:
    number = parse_number(text)
    assert (number and number.value) == (expected and Fraction(expected))
    names = [name for name in ("percent", "is_price") if getattr(number, name, False)]
    assert [*names, *["ambiguous"] * is_ambiguous(text)] == marks
    assert "percent" not in marks or number == Number(Fraction(5), percent=True) != parse_number("5")
    assert number is None or "percent" not in marks or number != parse_number("0.05")


@pytest.mark.parametrize("digits", ["٤٢", "４２", "𝟜𝟚", "४२"])
def test_decimal_digits_of_any_script_are_folded(digits: str) -> None:  # hazard 21
    assert fold_digits(digits) == "42"
    assert parse_number(digits) == Number(Fraction(42))
    assert fold_marks(digits) == "42"


# hazards 16, 22, 24 and 25
@pytest.mark.parametrize("text", [*cases("no numbers"), "1" * 5_000, "1." + "0" * 5_000, "9" * 1_001])
def test_what_is_not_a_number_or_is_two_is_not_read(text: str) -> None:
    assert parse_number(text) is None


def test_decimals_add_up_and_currency_signs_do_not_count() -> None:
    assert not is_ambiguous("1" * 5_000 + ",5")
    assert value("0.1") + value("0.2") == value(".3")  # hazard 26
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
