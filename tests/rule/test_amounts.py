"""A quantity has one class in all its spellings, each is certified by any of them, and another quantity by none."""

import re
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import answer_class, exact_match
from eldgr_dspy.certificates import Passage, certify
from eldgr_dspy.derivation.amounts import is_part, quantity_key, spellings_of, value_of
from eldgr_dspy.matching.occurrences import Source, Target, letters_of
from eldgr_dspy.rule.spellings import other_spelling
from tests.naive.naive_amounts import quantity, spoken_number
from tests.rule.keys import cases, key

QUANTITIES = cases("spellings of quantities")
PARTS = cases("amounts and parts of amounts")
ALONE = [*cases("no quantities"), f"{10**15} hours", "9" * 10_000, "9" * 10_000 + " hours", "$" + "9" * 500 + "m"]
amounts = st.integers(0, 3_000) | st.integers(0, 10**12 - 1)
units = st.sampled_from(("hours", "percent", "dollars", "people", "km"))


def occurs(answer: str, text: str) -> bool | None:
    return certify(answer, [Passage("", text)]).certified


def forms(amount: int, unit: str) -> list[str]:
    """Spellings of an amount with its unit that a person may write."""
    words = spoken_number(amount)
    results = [f"{amount} {unit}", f"{amount:,} {unit}", f"{words} {unit}", f"{words.capitalize()} {unit}."]
    signs = {"percent": ["{}%", "{} %", "{} per cent"], "dollars": ["${}", "$ {}"]}
    return results + [sign.format(amount) for sign in signs.get(unit, [])]


@pytest.mark.parametrize("spellings", QUANTITIES, ids=lambda spellings: spellings[0])
def test_all_spellings_of_a_quantity_are_one_class_and_each_certifies_each(spellings: tuple[str, ...]) -> None:
    assert len({key(one) for one in spellings}) == 1
    for one, other in combinations(spellings, 2):
        for answer, text in ((one, other), (other, one)):
            assert occurs(answer, f"It said {text} then.") is True
            assert occurs(f"**{answer}**", f"({text})") is True


def test_two_quantities_are_two_classes_also_two_minutes_of_the_day_and_the_score_is_the_published_one() -> None:
    for one, other in combinations(QUANTITIES, 2):
        assert key(one[0]) != key(other[0])
        for text in other:
            assert occurs(one[0], f"It said {text} then.") is False
    times = [(hour, f"{minute:02}") for hour in range(24) for minute in range(60)]
    keys = [quantity_key(f"{(hour + 11) % 12 + 1}:{minute} {'pm' if hour > 11 else 'am'}") for hour, minute in times]
    assert len({*keys}) == 24 * 60
    clear = [quantity_key(f"{hour:02}:{minute}") for hour, minute in times]
    alike = [one == other for one, other in zip(keys, clear, strict=True)]
    assert alike == [not 1 <= hour <= 12 for hour, _ in times]
    assert answer_class("12%", "short") == answer_class("12 percent", "short")
    assert not exact_match("12%", ["12 percent"])
    assert key("12 percent", "arithmetic") != key("twelve percent", "arithmetic")


@pytest.mark.parametrize("text", ALONE, ids=lambda text: text[:20])
def test_a_text_that_is_no_quantity_is_spelled_as_it_is(text: str) -> None:
    assert spellings_of(text) == (text,)
    assert quantity_key(text) == text
    assert occurs(text, "It is not here.") is False


@pytest.mark.parametrize(("answer", "text"), cases("near misses of quantities"))
def test_a_near_miss_certifies_nothing(answer: str, text: str) -> None:
    assert occurs(answer, f"It said {text}, then.") is False


@pytest.mark.parametrize("text", cases("amounts beside others"))
def test_an_amount_beside_another_one_is_whole(text: str) -> None:
    assert occurs(re.split(",| and| or|[.]", text)[0], f"It took {text}, then.") is True


@given(amounts, units, st.data())
@example(0, "hours", None)
def test_an_amount_with_a_unit_is_certified_in_any_spelling(amount: int, unit: str, data: st.DataObject | None) -> None:
    spellings = forms(amount, unit)
    pairs = combinations(spellings, 2) if data is None else [data.draw(st.permutations(spellings))[:2]]
    for one, other in pairs:
        assert key(one) == key(other)
        assert occurs(one, f"It said {other} then.") is True


@given(amounts, amounts, units, units)
def test_another_amount_or_unit_is_another_class(one: int, other: int, unit: str, other_unit: str) -> None:
    alike = (one, unit) == (other, other_unit)
    for spelling in forms(other, other_unit):
        assert (key(forms(one, unit)[2]) == key(spelling)) is alike


@given(amounts)
def test_a_bare_number_is_in_no_class_with_another_spelling(amount: int) -> None:
    for bare in (f"{amount}", spoken_number(amount)):
        assert len(spellings_of(bare)) == 1
        assert key(bare) not in {key(f"{amount} {unit}") for unit in ("hours", "%")}


@given(
    st.lists(
        st.sampled_from(
            "two 12 5000000 0.5 one hundred and million % percent per cent $ € pm am : 22 30 hours dollars m of".split()
        ),
        max_size=5,
    ).flatmap(lambda parts: st.sampled_from((" ".join(parts), "".join(parts))))
    | st.text(max_size=12)
)
@example("25:00")  # was 1 pm
@example("$0.5k")
@example("0.5%")
@example("$1 trillion")
@example("777000000000 percent")
def test_each_spelling_has_the_same_spellings_and_spells_the_naive_quantity(text: str) -> None:
    spellings = spellings_of(text)
    assert all(spellings_of(one) == spellings for one in spellings)
    if len(spellings) > 1:
        assert {quantity(one) for one in spellings} == {quantity(text)} != {None}


def test_under_token_a_unit_keeps_its_case_and_the_witness_its_spelling() -> None:
    passages = [Passage("", "It took two Hours, until 22:00.")]
    assert certify("2 Hours", passages, "token").certified
    assert not certify("2 hours", passages, "token").certified
    assert certify("10 pm", passages, "token").certified
    assert not certify("10 PM", passages, "token").certified
    assert not certify("10 pm", passages, "substring").certified
    passages = [Passage("", "Then 2 hours, later two hours.")]
    for answer, text in (("two hours", "two hours"), ("2 hours.", "2 hours"), ("TWO HOURS", "2 hours")):
        witness = certify(answer, passages).witness
        assert witness is not None and witness.text == text


class Counting(Source):
    """A text that counts the places that are looked at."""

    looks = 0

    def _stands(self, start: int, end: int, key: str) -> tuple[int, int] | None:
        self.looks += 1
        return super()._stands(start, end, key)


@pytest.mark.parametrize("part", ["1", "1,", "two hundred and ", "2 hour ", "one-", "2 hours 3 "])
def test_places_without_the_letters_of_a_spelling_are_never_looked_at(part: str) -> None:
    target = Target("7 hours", "7 hours", tuple(map(letters_of, spellings_of("7 hours"))))
    source = Counting(part * (1_000_000 // len(part)))
    assert source.first(target) is None
    assert source.looks == 0


def test_a_place_is_looked_at_once_for_each_spelling_that_has_its_letters() -> None:
    target = Target("7 hours", "7 hours", tuple(map(letters_of, spellings_of("7 hours"))))
    source = Counting("27 hours, twenty-seven hours, " * 50 + "seven hours")
    assert source.first(target) is not None
    assert source.looks == 101


def test_what_is_near_an_answer_is_told_in_its_spelling() -> None:
    far = "2 hours" + " " * 80 + "30 minutes"
    assert not is_part("2 hours", far, 0, 7)
    assert is_part("2 hours", "2 hours 30 minutes", 0, 7)
    assert is_part("30 minutes", "2 hours 30 minutes", 8, 18)
    assert not is_part("Paris", "2 hours 30 minutes", 0, 7)
    for text, amount, part in PARTS:
        start = text.index(amount)
        assert is_part(amount.lower(), text, start, start + len(amount)) is part
    assert value_of("twenty twelve") is None
    passages = [Passage("", "2 hours; a TWO-hour film, the 2-hour film"), Passage("", "2-hours")]
    assert other_spelling("two hours", passages) == "two-hour"


ALIKE = cases("other spellings")
ONE_CLASS = [("12%", "12 percent"), ("10 pm", "22:00"), ("$5 million", "$5,000,000"), ("2 hours", "two hours")]


@pytest.mark.parametrize(("one", "other"), [*ALIKE, *((other, one) for one, other in ALIKE)])
def test_an_answer_is_found_in_another_spelling(one: str, other: str) -> None:
    assert other_spelling(one.removeprefix("a "), [Passage("", f"It took {other}, he said.")]) is not None
    assert other_spelling(f"**{one.removeprefix('a ')}**", [Passage(other, "")]) is not None


@pytest.mark.parametrize(("one", "other"), cases("no other spellings") + ONE_CLASS)
def test_another_number_and_another_spelling_of_its_class_are_not_found(one: str, other: str) -> None:
    assert other_spelling(one, [Passage("", f"It took {other}, he said.")]) is None


@given(st.text(), st.text())
def test_any_answer_may_be_looked_for_in_any_text(answer: str, text: str) -> None:
    result = other_spelling(answer, [Passage("", text)])
    assert result is None or any(map(str.isalnum, result))
