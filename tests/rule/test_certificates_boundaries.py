"""Where a word or a number begins and ends, so that no part of one is an occurrence."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eldgr_dspy.answer_types.answers import answer_class
from eldgr_dspy.certificates import Passage, certify
from eldgr_dspy.matching.wholes import JOINTS, in_word, whole
from eldgr_dspy.text.folding import BIDI_CONTROLS
from eldgr_dspy.text.reading import read
from eldgr_dspy.text.sentence_ends import sentence_ends
from eldgr_dspy.words import POLICIES, Policy
from tests.certificate_cases import ANSWERS, DENSE, value, witness_of
from tests.rule.keys import cases


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        *cases("parts of words and numbers"),
        *cases("occurrences of another class"),
        ("art", "p" + "\u200f" * 30 + "art"),
    ],  # hazards 12, 14, 17, 18, 19, 20, 22, 23, 29, 30, 35 and 37
)
@pytest.mark.parametrize("policy", ["token", "folded"])
def test_part_of_a_word_or_number_is_not_an_occurrence(answer: str, text: str, policy: Policy) -> None:
    assert value(answer, text, policy=policy) is False


@pytest.mark.parametrize(
    ("answer", "text"),
    cases("whole words and numbers"),
)
@pytest.mark.parametrize("policy", ["token", "folded"])
def test_a_whole_word_or_number_is_an_occurrence(answer: str, text: str, policy: Policy) -> None:
    assert value(answer, text, policy=policy) is True
    assert value(answer, text, policy="substring") is True


@pytest.mark.parametrize("mark", [*".,/:'^\u00b7\u00f7\u066b\u066c\u2044\u2215\uff0c\uff0e"])
def test_a_mark_that_may_join_two_digits_leaves_neither_number_standing(mark: str) -> None:  # hazard 30
    assert value("3", f"about 3{mark}5 of it", policy="token") is False
    assert value("5", f"about 3{mark}5 of it", policy="token") is False
    assert value(f"3{mark}5", f"about 3{mark}5 of it", policy="token") is True


@pytest.mark.parametrize("mark", [*";!?()|~=_ "])
def test_no_other_mark_joins_two_digits_but_the_low_line(mark: str) -> None:
    assert value("5", f"so 1999{mark}5 of it", policy="token") is (mark != "_")


# The first and the last letter of each block whose writing sets no spaces.
SPACELESS = "กຮကႎកឳ々〆ぁヿㇰㇿ㐀䶿一鿿ꧠꧾꩠꩺ豈龎𛀀𛅧𠀀𪛖"


@pytest.mark.parametrize("letter", SPACELESS)
def test_a_word_may_end_beside_a_letter_of_a_writing_without_spaces(letter: str) -> None:
    assert value(letter, f"a{letter}b", policy="token") is True
    assert value("ab", f"{letter}ab{letter}", policy="token") is True


@pytest.mark.parametrize("letter", [*"éßЖαא가ऀअᄀ"])
def test_no_word_ends_beside_a_letter_of_another_writing(letter: str) -> None:
    assert value("ab", f"{letter}ab", policy="token") is False
    assert value("ab", f"ab{letter}", policy="token") is False


def test_the_search_continues_behind_a_part_of_a_word() -> None:
    assert witness_of("art", "a party for art").start == 12
    assert witness_of("中a", "中ab中a").start == 3
    assert witness_of("art", "a party, art and art").start == 9


def test_an_occurrence_right_behind_a_part_of_a_character_is_found() -> None:
    """The square of four kana ends in one that also follows it."""
    assert value("ト", "㌀") is False
    witness = witness_of("ト", "㌀ト")
    assert (witness.start, witness.end) == (1, 2)


@pytest.mark.parametrize(
    ("answer", "text", "certified"),
    [
        ("k", "kb " * 30_000, False), ("k", "kb " * 30_000 + "k", True), ("a", "a" * 60_000, False),
        ("a" * 1_999, "a" * 60_000, False), ("1,1", "0," + "1," * 20_000, False), ("f", "ﬁ " * 30_000, False),
        ("e", "e\u0301" * 100_000, False), ("5", "-$5 " * 20_000, False), ("5", "5% " * 20_000, False),
        ("5", "5 % " * 20_000, False), ("1", "1\u200e1 " * 20_000, False), ("二", "二" * 50_000, False),
    ],
)  # fmt: skip
def test_long_evidence_is_searched_to_its_end(answer: str, text: str, certified: bool) -> None:  # hazard 45
    assert value(answer, text) is certified


@given(ANSWERS, DENSE)
@example("1", "1,1 1")
@example("k", "中k")
@example("$1", "1$1")
def test_the_search_finds_an_occurrence_wherever_there_is_one(answer: str, text: str) -> None:
    """Every span is tried: of the answer's class, at the edges of words, and so is the whole around it."""
    key, plain = answer_class(answer, "retrieval"), read(text).text
    spans = [
        (start, end)
        for start in range(len(plain))
        for end in range(start + 1, len(plain) + 1)
        if plain[start].isalnum() and plain[end - 1].isalnum() and not in_word(plain, start) and not in_word(plain, end)
    ]
    results = [span for span in spans if answer_class(plain[slice(*whole(plain, *span))], "retrieval") == key]
    crossed = [span for span in results if BIDI_CONTROLS.isdisjoint(text) and not sentence_ends(plain[slice(*span)])]
    if any(map(str.isalnum, answer)) and len(crossed) == len(results):
        assert bool(value(answer, text)) is bool(results)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("answer", ["The A Team", "the The Band", "an A", "The An Other"])
def test_an_article_behind_the_article_at_the_head_belongs_to_the_name(answer: str, policy: Policy) -> None:
    result = certify(answer, [Passage("", f"Ask {answer} about it.")], policy)
    assert result.witness is not None
    assert result.witness.text == answer
    assert certify(answer, [Passage("", f"Ask {answer.split(' ', 1)[1]} about it.")], policy).certified is False


PIECES = (
    *" 0123456789.,/:'^-+eE$€£%°&½²₂⁺<≥±*_\")]({}\\x×kmMBazİıſÉ",
    *("usd ", "eur", " million", "thirty", "five", " and ", "half", " per ", "U.S", "\\times", "\\frac{", "{,}"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("3 ½")
@example("1 / 2")
@example("-usd.5")
@example("5 km per hour")
@example("twenty-five")
@example("x^{-y")
def test_a_text_that_holds_a_joint_passes_the_quick_test_of_its_kind(text: str) -> None:
    for may_hold, joints in JOINTS:
        assert may_hold(text) or not [*joints(text)]
